"""The table of keys: what is in it can be trusted, and what is not is refused with a reason."""

from __future__ import annotations

import pytest

from mobula.actors.config.definitions import (
    BROKER_KEYS,
    TOPIC_KEYS,
    ConfigError,
    Key,
    Scope,
    definition,
    problems,
    validate,
)

ALL = [*BROKER_KEYS.values(), *TOPIC_KEYS.values()]


@pytest.mark.parametrize("key", ALL, ids=lambda key: f"{key.scope.value}:{key.name}")
def test_every_default_passes_its_own_checks(key: Key) -> None:
    assert key.doc
    if key.default is not None:
        key.parse(key.default)


def test_every_topic_key_has_a_default() -> None:
    assert all(key.default is not None for key in TOPIC_KEYS.values())


def test_the_broker_key_of_a_topic_key_has_its_type_unless_the_unit_differs() -> None:
    for key in TOPIC_KEYS.values():
        for synonym in key.synonyms:
            broker_key = BROKER_KEYS[synonym.key]
            if synonym.factor == 1:
                assert broker_key.type == key.type, key.name


def test_a_topic_key_has_the_default_that_its_broker_keys_give() -> None:
    for key in TOPIC_KEYS.values():
        for synonym in key.synonyms:
            default = BROKER_KEYS[synonym.key].default
            if default is not None and synonym.factor == 1:
                assert default == key.default, key.name
            elif default is not None:
                assert key.default is not None
                assert int(default) * synonym.factor == int(key.default), key.name


def test_of_the_broker_keys_that_give_a_topics_default_the_finest_is_dynamic() -> None:
    given = {key.synonyms[0].key for key in TOPIC_KEYS.values() if key.synonyms}
    assert {key.name for key in BROKER_KEYS.values() if key.dynamic} == given


@pytest.mark.parametrize(
    ("name", "default"),
    [
        ("log.segment.bytes", "1073741824"),
        ("message.max.bytes", "1048588"),
        ("replica.lag.time.max.ms", "30000"),
        ("fetch.max.bytes", "57671680"),
        ("broker.session.timeout.ms", "9000"),
        ("socket.request.max.bytes", "104857600"),
        ("queued.max.requests", "500"),
    ],
)
def test_defaults_are_kafkas(name: str, default: str) -> None:
    assert BROKER_KEYS[name].default == default
    assert not BROKER_KEYS[name].why


@pytest.mark.parametrize(
    "name",
    [
        "num.network.threads",
        "num.io.threads",
        "queued.max.request.bytes",
        "socket.send.buffer.bytes",
        "socket.receive.buffer.bytes",
        "socket.listen.backlog.size",
    ],
)
def test_a_default_that_is_not_kafkas_says_why(name: str) -> None:
    assert BROKER_KEYS[name].why


def test_an_unknown_key_is_refused_with_the_nearest_match() -> None:
    with pytest.raises(ConfigError) as refused:
        definition("log.segmnt.bytes", Scope.BROKER)
    assert str(refused.value) == (
        "there is no broker configuration key 'log.segmnt.bytes'; "
        "the nearest match is log.segment.bytes"
    )


def test_a_key_like_no_other_is_refused_without_a_guess() -> None:
    with pytest.raises(ConfigError) as refused:
        definition("qqqqqqq", Scope.TOPIC)
    assert str(refused.value) == "there is no topic configuration key 'qqqqqqq'"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("zookeeper.connect", "there is no ZooKeeper"),
        ("ssl.keystore.location", "TLS, SASL and authorization are not supported yet"),
        ("group.consumer.assignors", "groups with the consumer protocol are not supported yet"),
        ("num.recovery.threads.per.data.dir", "a replica actor recovers its logs one after"),
        ("remote.log.storage.system.enable", "there is no tiered storage"),
    ],
)
def test_a_key_of_kafka_that_means_nothing_here_says_why(name: str, reason: str) -> None:
    with pytest.raises(ConfigError) as refused:
        definition(name, Scope.BROKER)
    assert str(refused.value).startswith(f"{name} is a key of Kafka that Mobula does not have")
    assert reason in str(refused.value)


def test_no_key_is_both_honoured_and_refused() -> None:
    from mobula.actors.config import unsupported

    exact = [name for name in unsupported._EXACT if name in {**BROKER_KEYS, **TOPIC_KEYS}]
    assert exact == []


def test_a_topic_key_among_broker_keys_names_the_broker_key() -> None:
    assert problems({"segment.bytes": "1000"}) == [
        "segment.bytes is a key of topics, not of brokers; for all topics set log.segment.bytes"
    ]


def test_a_broker_key_on_a_topic_names_the_topic_key() -> None:
    with pytest.raises(ConfigError) as refused:
        validate("log.retention.hours", "1", Scope.TOPIC)
    assert str(refused.value) == (
        "log.retention.hours is a key of brokers, not of topics; a topic's own is retention.ms"
    )


def test_what_the_launcher_gives_cannot_be_set() -> None:
    assert problems({"log.dirs": "/data"}) == ["log.dirs cannot be set: use `mobula up --data-dir`"]


def test_unclean_election_can_be_refused_and_not_asked_for() -> None:
    validate("unclean.leader.election.enable", "false", Scope.TOPIC)
    with pytest.raises(ConfigError) as refused:
        validate("unclean.leader.election.enable", "true", Scope.TOPIC)
    assert "unclean elections are not supported yet" in str(refused.value)


def test_every_problem_has_its_own_sentence() -> None:
    found = problems({"num.io.threads": "0", "no.such": "1", "min.insync.replicas": "2"})
    assert len(found) == 2


def test_settings_that_contradict_each_other_are_refused() -> None:
    assert problems({"broker.session.timeout.ms": "1000"}) == [
        "broker.heartbeat.interval.ms (2000) must be less than broker.session.timeout.ms (1000)"
    ]
    assert (
        problems({"replica.lag.time.max.ms": "30001", "replica.fetch.wait.max.ms": "30000"}) == []
    )
