"""Which values IncrementalAlterConfigs takes, of topics and of brokers, and how they are shown."""

from __future__ import annotations

from mobula.protocol.api import ApiKey
from tests.conformance.configs import (
    APPEND,
    BROKER,
    DELETE,
    SET,
    TOPIC,
    change,
    changes,
    describe,
    own_settings,
    set_now,
)
from tests.conformance.scenario import scenario
from tests.conformance.side import Side

API = ApiKey.INCREMENTAL_ALTER_CONFIGS


@scenario(API, good=True)
def values_written_in_another_way(on: Side, version: int) -> None:
    name = on.topic("a").name
    values = {
        "cleanup.policy": "delete, compact",
        "index.interval.bytes": "+0100",
        "retention.ms": " 5000 ",
        "unclean.leader.election.enable": "FALSE",
    }
    wanted = [(key, SET, value) for key, value in values.items()]
    on.ask(0, API, version, changes(change(TOPIC, name, *wanted)))
    on.wait_until(
        lambda: all(own_settings(on, TOPIC, name, [*values]).values()),
        "broker 0 to describe them all",
    )
    describe(on, TOPIC, name, *values)


@scenario(API, good=True)
def values_of_brokers_written_in_another_way(on: Side, version: int) -> None:
    values = {"log.cleanup.policy": "delete, compact", "log.roll.ms": " 7200000 "}
    wanted = [(key, SET, value) for key, value in values.items()]
    on.ask(0, API, version, changes(change(BROKER, "0", *wanted)))
    on.wait_until(
        lambda: all(own_settings(on, BROKER, "0", [*values]).values()),
        "broker 0 to describe them all",
    )
    describe(on, BROKER, "0", *values)
    set_now(on, BROKER, "0", dict.fromkeys(values))


@scenario(API, good=False)
def values_that_a_topic_cannot_have(on: Side, version: int) -> None:
    name = on.shared_topic("one").name
    for key, value in (
        ("no.such.key", "1"),
        ("", "1"),
        ("retention.ms", "soon"),
        ("retention.ms", ""),
        ("retention.ms", "1.5"),
        ("retention.ms", str(2**63)),
        ("retention.ms", "-2"),
        ("segment.ms", "0"),
        ("segment.bytes", "13"),
        ("segment.bytes", str(2**31)),
        ("segment.index.bytes", "3"),
        ("index.interval.bytes", "-1"),
        ("max.message.bytes", "-1"),
        ("flush.messages", "0"),
        ("flush.ms", "-1"),
        ("delete.retention.ms", "-1"),
        ("file.delete.delay.ms", "-1"),
        ("min.insync.replicas", "0"),
        ("min.cleanable.dirty.ratio", "1.1"),
        ("min.cleanable.dirty.ratio", "half"),
        ("max.compaction.lag.ms", "0"),
        ("cleanup.policy", "burn"),
        ("compression.type", "best"),
        ("compression.gzip.level", "0"),
        ("compression.lz4.level", "18"),
        ("compression.zstd.level", "23"),
        ("message.timestamp.type", "Now"),
        ("message.timestamp.before.max.ms", "-1"),
        ("unclean.leader.election.enable", "maybe"),
        ("preallocate", "1"),
    ):
        tree = changes(change(TOPIC, name, (key, SET, value)), validate_only=True)
        on.ask(0, API, version, tree)


@scenario(API, good=True)
def segments_smaller_than_a_mebibyte(on: Side, version: int) -> None:
    name = on.shared_topic("one").name
    of_topic = change(TOPIC, name, ("segment.bytes", SET, "1048575"))
    of_broker = change(BROKER, "0", ("log.segment.bytes", SET, "1048575"))
    on.ask(0, API, version, changes(of_topic, of_broker, validate_only=True))


@scenario(API, good=True)
def values_that_would_change_nothing(on: Side, version: int) -> None:
    name = on.shared_topic("one").name
    for key, value in (
        ("retention.bytes", "-2"),
        ("preallocate", "true"),
        ("unclean.leader.election.enable", "true"),
    ):
        tree = changes(change(TOPIC, name, (key, SET, value)), validate_only=True)
        on.ask(0, API, version, tree)


@scenario(API, good=True)
def values_at_the_edge_of_what_a_topic_can_have(on: Side, version: int) -> None:
    name = on.topic("a").name
    for key, value in (
        ("retention.ms", "-1"),
        ("retention.ms", str(2**63 - 1)),
        ("segment.bytes", "1048576"),
        ("segment.index.bytes", "4"),
        ("flush.messages", "1"),
        ("min.insync.replicas", "9"),
        ("min.cleanable.dirty.ratio", "1"),
        ("compression.gzip.level", "-1"),
        ("compression.zstd.level", "-131072"),
        ("cleanup.policy", "delete, compact"),
        ("cleanup.policy", "delete,delete"),
        ("cleanup.policy", ""),
    ):
        tree = changes(change(TOPIC, name, (key, SET, value)), validate_only=True)
        on.ask(0, API, version, tree)
    lags = ("min.compaction.lag.ms", SET, "10"), ("max.compaction.lag.ms", SET, "9")
    on.ask(0, API, version, changes(change(TOPIC, name, *lags), validate_only=True))


@scenario(API, good=False)
def values_that_brokers_cannot_have(on: Side, version: int) -> None:
    for key, operation, value in (
        ("log.roll.ms", SET, "0"),
        ("log.roll.ms", SET, "soon"),
        ("log.roll.ms", SET, None),
        ("log.roll.ms", APPEND, "1"),
        ("log.segment.bytes", SET, "13"),
        ("broker.id", SET, "7"),
        ("num.partitions", SET, "7"),
        ("num.partitions", DELETE, None),
        ("log.retention.hours", SET, "7"),
        ("log.cleanup.policy", APPEND, "burn"),
    ):
        for name in ("", "0"):
            wanted = change(BROKER, name, (key, operation, value))
            on.ask(0, API, version, changes(wanted, validate_only=True))


@scenario(API, good=False)
def keys_that_brokers_do_not_have(on: Side, version: int) -> None:
    for key in ("no.such.key", "retention.ms"):
        for name in ("", "0"):
            wanted = change(BROKER, name, (key, SET, "1000"))
            on.ask(0, API, version, changes(wanted, validate_only=True))
