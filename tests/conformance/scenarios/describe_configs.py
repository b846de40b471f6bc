"""DescribeConfigs: topics, brokers, all brokers; where values come from; what cannot be asked."""

from __future__ import annotations

from mobula.protocol.api import ApiKey
from tests.conformance.configs import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
    resource,
    resources,
    set_now,
)
from tests.conformance.scenario import just_outside, scenario
from tests.conformance.side import Side
from tests.conformance.wire import encode_request, is_flexible, with_null

API = ApiKey.DESCRIBE_CONFIGS
WITH_DOCUMENTATION = range(3, 5)
FROM_SEVERAL = ("retention.ms", "segment.ms", "segment.jitter.ms", "flush.ms")
"""Topic keys that have more than one broker key behind them."""


@scenario(API, good=True)
def a_topic(on: Side, version: int) -> None:
    topic = on.shared_topic("one")
    on.ask(1, API, version, resources(resource(TOPIC, topic.name), include_synonyms=True))


@scenario(API, good=True)
def chosen_keys_of_a_topic(on: Side, version: int) -> None:
    topic = on.shared_topic("one")
    for keys in ((*FROM_SEVERAL,), ("retention.ms", "retention.ms"), ("retention.ms", "nothing")):
        on.ask(0, API, version, resources(resource(TOPIC, topic.name, *keys)))
    on.ask(0, API, version, resources(resource(TOPIC, topic.name, "nothing", "")))


@scenario(API, good=True)
def an_empty_list_of_keys(on: Side, version: int) -> None:
    topic = on.shared_topic("one")
    empty = {**resource(TOPIC, topic.name), "configuration_keys": []}
    on.ask(0, API, version, resources(empty))


@scenario(API, good=True, versions=WITH_DOCUMENTATION)
def documentation(on: Side, version: int) -> None:
    topic = on.shared_topic("one")
    keys = ("num.partitions", "log.retention.ms", "node.id")
    wanted = resource(TOPIC, topic.name), resource(BROKER, "0", *keys)
    on.ask(0, API, version, resources(*wanted, include_documentation=True))


@scenario(API, good=True)
def a_topic_with_settings(on: Side, version: int) -> None:
    settings = {
        "cleanup.policy": "compact,delete",
        "retention.ms": "1000",
        "min.insync.replicas": "1",
        "segment.bytes": "1073741824",
    }
    topic = on.topic("a", configs=settings)
    wanted = resource(TOPIC, topic.name, *settings, "max.message.bytes")
    for synonyms in (False, True):
        on.ask(0, API, version, resources(wanted, include_synonyms=synonyms))
    set_now(on, TOPIC, topic.name, {"retention.ms": None, "max.message.bytes": "2000000"})
    on.ask(0, API, version, resources(wanted, include_synonyms=True))


@scenario(API, good=True)
def a_topic_under_settings_of_brokers(on: Side, version: int) -> None:
    topic = on.topic("a", configs={"max.message.bytes": "1000"})
    everywhere = {"log.roll.ms": "7200000", "message.max.bytes": "3000000"}
    own = {"message.max.bytes": "2000000", "log.retention.ms": "7200000"}
    set_now(on, BROKER, "", everywhere)
    set_now(on, BROKER, "0", own)
    keys = ("max.message.bytes", "segment.ms", "retention.ms")
    on.ask(0, API, version, resources(resource(TOPIC, topic.name, *keys), include_synonyms=True))
    brokers = resource(BROKER, ""), resource(BROKER, "0", *everywhere, *own)
    on.ask(0, API, version, resources(*brokers, include_synonyms=True))
    on.ask(0, API, version, resources(resource(BROKER, "", "log.roll.ms", "num.partitions")))
    on.ask(0, API, version, resources(resource(BROKER, "0", *everywhere)))
    set_now(on, BROKER, "", dict.fromkeys(everywhere))
    set_now(on, BROKER, "0", dict.fromkeys(own))
    on.ask(0, API, version, resources(resource(TOPIC, topic.name, *keys), include_synonyms=True))


@scenario(API, good=True)
def a_broker(on: Side, version: int) -> None:
    on.ask(2, API, version, resources(resource(BROKER, "2"), include_synonyms=True))


@scenario(API, good=True)
def chosen_keys_of_a_broker(on: Side, version: int) -> None:
    keys = ("num.partitions", "min.insync.replicas", "default.replication.factor", "nothing")
    on.ask(1, API, version, resources(resource(BROKER, "1", *keys), include_synonyms=True))


@scenario(API, good=True)
def all_brokers(on: Side, version: int) -> None:
    on.ask(1, API, version, resources(resource(BROKER, ""), include_synonyms=True))


@scenario(API, good=True)
def the_same_resource_twice(on: Side, version: int) -> None:
    topic = on.shared_topic("one")
    twice = (resource(TOPIC, topic.name, "retention.ms"),) * 2
    on.ask(0, API, version, resources(*twice))
    two_keys = resource(TOPIC, topic.name, "segment.ms"), resource(TOPIC, topic.name, "flush.ms")
    on.ask(0, API, version, resources(*two_keys))


@scenario(API, good=True)
def no_resources(on: Side, version: int) -> None:
    on.ask(0, API, version, resources())


@scenario(API, good=False)
def a_topic_that_is_not_there(on: Side, version: int) -> None:
    on.ask(0, API, version, resources(resource(TOPIC, on.name("missing"))))
    both = resource(TOPIC, on.name("missing")), resource(TOPIC, on.shared_topic("one").name, "x")
    on.ask(0, API, version, resources(*both))


@scenario(API, good=False)
def names_that_no_topic_can_have(on: Side, version: int) -> None:
    for name in ("", ".", "..", "a b", "a/b", "ä", "x" * 250):
        on.ask(0, API, version, resources(resource(TOPIC, name)))


@scenario(API, good=False)
def a_broker_that_is_another(on: Side, version: int) -> None:
    for name in ("1", "77", "-1", "zero", "0 ", "00", "4294967296"):
        on.ask(0, API, version, resources(resource(BROKER, name, "num.partitions")))


@scenario(API, good=False)
def kinds_of_resources_that_are_not_there(on: Side, version: int) -> None:
    for kind in (0, 1, 3, 64, -1):
        on.ask(0, API, version, resources(resource(kind, "0")))
    fine = resource(TOPIC, on.shared_topic("one").name, "retention.ms")
    on.ask(0, API, version, resources(fine, resource(64, "0")))


@scenario(API, good=False)
def other_kinds_of_resources(on: Side, version: int) -> None:
    on.ask(0, API, version, resources(resource(BROKER_LOGGER, "0", "nothing")))
    on.ask(0, API, version, resources(resource(BROKER_LOGGER, "1", "nothing")))
    for kind in (CLIENT_METRICS, GROUP):
        for name in (on.name("a"), ""):
            on.ask(0, API, version, resources(resource(kind, name)))


@scenario(API, good=False)
def null_in_place_of(on: Side, version: int) -> None:
    flexible = is_flexible(API, version)
    body = encode_request(API, version, resources(resource(TOPIC, "nothing")))
    on.ask(0, API, version, with_null(body, "nothing", flexible=flexible))
    topic = on.shared_topic("one")
    body = encode_request(API, version, resources(resource(TOPIC, topic.name, "nothing")))
    on.ask(0, API, version, with_null(body, "nothing", flexible=flexible))
    on.ask(0, API, version, {"resources": None})


@scenario(API, good=False)
def a_request_of_another_length(on: Side, version: int) -> None:
    body = encode_request(API, version, resources(resource(BROKER, "0", "num.partitions")))
    on.ask(0, API, version, body[:-1])
    on.ask(0, API, version, b"")
    on.ask(0, API, version, body + b"\0\0")


@scenario(API, good=False, versions=just_outside(API))
def a_version_that_does_not_exist(on: Side, version: int) -> None:
    on.ask(0, API, version, encode_request(API, min(max(version, 1), 4), resources()))
