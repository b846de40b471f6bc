"""AlterConfigs: what is given replaces all that was set, of topics and brokers; and refused.

A resource is never named twice here: to that Apache Kafka 4.3.1 gives no answer at all.
"""

from __future__ import annotations

from mobula.protocol.api import ApiKey
from tests.conformance.configs import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
    changes,
    describe,
    own_settings,
    wait_until_set,
)
from tests.conformance.scenario import just_outside, scenario
from tests.conformance.side import Side
from tests.conformance.wire import Tree, encode_request, is_flexible, with_null

API = ApiKey.ALTER_CONFIGS
KEYS = ("retention.ms", "cleanup.policy", "segment.ms")


def settings(kind: int, name: str, *wanted: tuple[str, str | None]) -> Tree:
    configs = [{"name": key, "value": value} for key, value in wanted]
    return {"resource_type": kind, "resource_name": name, "configs": configs}


@scenario(API, good=True)
def settings_of_a_topic(on: Side, version: int) -> None:
    name = on.topic("a", configs={"segment.ms": "1000"}).name
    first = ("retention.ms", "5000"), ("cleanup.policy", "compact")
    on.ask(0, API, version, changes(settings(TOPIC, name, *first)))
    wait_until_set(on, TOPIC, name, {**dict(first), "segment.ms": None})
    describe(on, TOPIC, name, *KEYS)
    on.ask(0, API, version, changes(settings(TOPIC, name, ("segment.ms", "2000"))))
    wait_until_set(on, TOPIC, name, {"segment.ms": "2000", "retention.ms": None})
    describe(on, TOPIC, name, *KEYS)
    on.ask(0, API, version, changes(settings(TOPIC, name)))
    wait_until_set(on, TOPIC, name, {"segment.ms": None})
    describe(on, TOPIC, name, *KEYS)


@scenario(API, good=True)
def several_resources_asked_of_any_broker(on: Side, version: int) -> None:
    names = [on.topic(suffix).name for suffix in ("a", "b")]
    for broker in range(3):
        value = str(1_000 * (broker + 1))
        wanted = [settings(TOPIC, name, ("retention.ms", value)) for name in names]
        on.ask(broker, API, version, changes(*wanted))
    for name in names:
        wait_until_set(on, TOPIC, name, {"retention.ms": "3000"})


@scenario(API, good=True)
def settings_of_a_broker(on: Side, version: int) -> None:
    wanted = ("log.roll.ms", "7200000"), ("message.max.bytes", "2000000")
    on.ask(0, API, version, changes(settings(BROKER, "0", *wanted)))
    wait_until_set(on, BROKER, "0", dict(wanted))
    describe(on, BROKER, "0", "log.roll.ms", "message.max.bytes")
    on.ask(0, API, version, changes(settings(BROKER, "0", ("log.roll.ms", "7200000"))))
    wait_until_set(on, BROKER, "0", {"message.max.bytes": None})
    describe(on, BROKER, "0", "log.roll.ms", "message.max.bytes")
    on.ask(0, API, version, changes(settings(BROKER, "0")))
    wait_until_set(on, BROKER, "0", {"log.roll.ms": None})


@scenario(API, good=True)
def settings_of_all_brokers(on: Side, version: int) -> None:
    everywhere = settings(BROKER, "", ("log.roll.ms", "7200000"))
    on.ask(0, API, version, changes(everywhere, validate_only=True))


@scenario(API, good=True)
def without_changing_anything(on: Side, version: int) -> None:
    name = on.topic("a").name
    wanted = settings(TOPIC, name, ("retention.ms", "5000"))
    on.ask(0, API, version, changes(wanted, validate_only=True))
    on.ask(0, API, version, changes(settings(TOPIC, name, ("x", "1")), validate_only=True))
    of_broker = settings(BROKER, "0", ("log.roll.ms", "7200000"))
    on.ask(0, API, version, changes(of_broker, validate_only=True))
    assert own_settings(on, TOPIC, name, ["retention.ms"]) == {"retention.ms": None}
    assert own_settings(on, BROKER, "0", ["log.roll.ms"]) == {"log.roll.ms": None}


@scenario(API, good=True)
def no_resources(on: Side, version: int) -> None:
    on.ask(0, API, version, changes())


@scenario(API, good=False)
def settings_of_a_topic_that_cannot_be(on: Side, version: int) -> None:
    name = on.shared_topic("one").name
    refused: list[list[tuple[str, str | None]]] = [
        [("no.such.key", "1")],
        [("", "1")],
        [("retention.ms", "soon")],
        [("retention.ms", "")],
        [("retention.ms", "-2")],
        [("retention.ms", None)],
        [("retention.ms", None), ("segment.ms", None)],
        [("retention.ms", "1000"), ("retention.ms", "1000")],
        [("retention.ms", "1000"), ("no.such.key", "1")],
        [("cleanup.policy", "burn")],
        [("segment.bytes", "1")],
        [("log.retention.ms", "1000")],
    ]
    for wanted in refused:
        on.ask(0, API, version, changes(settings(TOPIC, name, *wanted)))
    assert own_settings(on, TOPIC, name, KEYS) == dict.fromkeys(KEYS)


@scenario(API, good=False)
def settings_of_brokers_that_cannot_be(on: Side, version: int) -> None:
    refused: list[tuple[str, str | None]] = [
        ("log.roll.ms", "soon"),
        ("log.roll.ms", "0"),
        ("log.roll.ms", None),
        ("broker.id", "7"),
        ("num.partitions", "7"),
        ("log.retention.hours", "7"),
    ]
    for wanted in refused:
        for name in ("", "0"):
            tree = changes(settings(BROKER, name, wanted), validate_only=True)
            on.ask(0, API, version, tree)


@scenario(API, good=False)
def keys_that_brokers_do_not_have(on: Side, version: int) -> None:
    for key in ("no.such.key", "retention.ms"):
        for name in ("", "0"):
            wanted = settings(BROKER, name, (key, "1000"))
            on.ask(0, API, version, changes(wanted, validate_only=True))


@scenario(API, good=False)
def topics_that_are_not_there(on: Side, version: int) -> None:
    wanted = ("retention.ms", "5000")
    for name in (on.name("missing"), "", "a b", ".", "x" * 250):
        on.ask(0, API, version, changes(settings(TOPIC, name, wanted)))
        on.ask(0, API, version, changes(settings(TOPIC, name)))
    fine = settings(TOPIC, on.topic("a").name, wanted)
    on.ask(0, API, version, changes(settings(TOPIC, on.name("missing"), wanted), fine))


@scenario(API, good=False)
def brokers_that_are_not_there(on: Side, version: int) -> None:
    wanted = ("log.roll.ms", "7200000")
    for name in ("77", "-1", "zero", "4294967296"):
        on.ask(0, API, version, changes(settings(BROKER, name, wanted), validate_only=True))


@scenario(API, good=False)
def kinds_of_resources_that_are_not_there(on: Side, version: int) -> None:
    for kind in (0, 1, 64, -1, BROKER_LOGGER):
        tree = changes(settings(kind, "0", ("x", "1")), validate_only=True)
        on.ask(0, API, version, tree)


@scenario(API, good=False)
def other_kinds_of_resources(on: Side, version: int) -> None:
    for kind in (CLIENT_METRICS, GROUP):
        tree = changes(settings(kind, on.name("a"), ("x", "1")), validate_only=True)
        on.ask(0, API, version, tree)


@scenario(API, good=False)
def null_in_place_of(on: Side, version: int) -> None:
    flexible = is_flexible(API, version)
    name = on.shared_topic("one").name
    body = encode_request(API, version, changes(settings(TOPIC, "nothing")))
    on.ask(0, API, version, with_null(body, "nothing", flexible=flexible))
    body = encode_request(API, version, changes(settings(TOPIC, name, ("nothing", "1"))))
    on.ask(0, API, version, with_null(body, "nothing", flexible=flexible))
    on.ask(0, API, version, changes({**settings(TOPIC, name), "configs": None}))
    on.ask(0, API, version, {"resources": None})


@scenario(API, good=False)
def a_request_of_another_length(on: Side, version: int) -> None:
    body = encode_request(API, version, changes(settings(TOPIC, on.name("missing"))))
    on.ask(0, API, version, body[:-1])
    on.ask(0, API, version, b"")
    on.ask(0, API, version, body + b"\0\0")


@scenario(API, good=False, versions=just_outside(API))
def a_version_that_does_not_exist(on: Side, version: int) -> None:
    on.ask(0, API, version, encode_request(API, min(version, 2), changes()))
