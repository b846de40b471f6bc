"""ListOffsets: the ends of a log, and offsets by time."""

from __future__ import annotations

from typing import Any

from mobula.protocol.api import ApiKey
from mobula.storage.records import NewRecord, build_batch
from tests.conformance.scenario import just_outside, scenario
from tests.conformance.side import BASE_TIME_MS, FOREVER, THREE_PARTITIONS, Side, Topic
from tests.conformance.wire import Tree, encode_request, is_flexible, with_null

API = ApiKey.LIST_OFFSETS
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING = range(-1, -7, -1)
WITH_EPOCHS = range(4, 12)
WITH_ISOLATION = range(2, 12)
READ_COMMITTED = 1
GZIP = 1
CONSUMER, DEBUGGING_CONSUMER, NO_BROKER = -1, -2, 9
TIMES = ([0, 10, 20], [5, 30], [15, 30])
"""Of the records of each batch, in ms after BASE_TIME_MS."""


def append_times(on: Side, topic: Topic, codec: int = 0) -> None:
    for batch in TIMES:
        records = [NewRecord(BASE_TIME_MS + ms, None, b"%d" % ms) for ms in batch]
        on.append(topic, 0, bytes(build_batch(records, codec=codec)))


def times(on: Side) -> Topic:
    """A topic with records of these times."""
    return on.shared_topic("times", configs=FOREVER, fill=lambda topic: append_times(on, topic))


def compressed(on: Side) -> Topic:
    return on.shared_topic(
        "times-compressed", configs=FOREVER, fill=lambda topic: append_times(on, topic, GZIP)
    )


def trimmed(on: Side) -> Topic:
    """The same without the first batch and a record of the second."""

    def fill(topic: Topic) -> None:
        append_times(on, topic)
        partitions = [{"partition_index": 0, "offset": 4}]
        topics = [{"name": topic.name, "partitions": partitions}]
        on.do(on.leader(topic), ApiKey.DELETE_RECORDS, 2, {"topics": topics, "timeout": 10_000})

    return on.shared_topic("times-trimmed", configs=FOREVER, fill=fill)


def at(name: str, *times: int, partition: int = 0, replica: int = CONSUMER, **more: Any) -> Tree:
    """The offsets of one partition at these times; it is named as often."""
    partitions = [{"partition_index": partition, "timestamp": time, **more} for time in times]
    return listing({"name": name, "partitions": partitions}, replica=replica)


def listing(*topics: Tree, replica: int = CONSUMER, isolation: int = 0) -> Tree:
    return {
        "replica_id": replica,
        "isolation_level": isolation,
        "topics": topics,
        "timeout": 10_000,
    }


@scenario(API, good=True)
def the_ends_of_a_log(on: Side, version: int) -> None:
    for topic in (times(on), trimmed(on), on.shared_topic("one")):
        for time in (LATEST, EARLIEST):
            on.ask(0, API, version, at(topic.name, time))


@scenario(API, good=True)
def by_time(on: Side, version: int) -> None:
    for topic in (times(on), trimmed(on), on.shared_topic("one")):
        for ms in (-1, 0, 1, 6, 10, 11, 20, 21, 30, 31):
            on.ask(0, API, version, at(topic.name, BASE_TIME_MS + ms))
        for time in (0, 1, (1 << 63) - 1):
            on.ask(0, API, version, at(topic.name, time))


@scenario(API, good=True)
def by_time_in_compressed_batches(on: Side, version: int) -> None:
    for ms in (0, 1, 6, 11, 21, 31):
        on.ask(0, API, version, at(compressed(on).name, BASE_TIME_MS + ms))
    on.ask(0, API, version, at(compressed(on).name, MAX_TIMESTAMP))


@scenario(API, good=True)
def times_with_a_meaning(on: Side, version: int) -> None:
    for topic in (times(on), trimmed(on), on.shared_topic("one")):
        for time in (MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING):
            on.ask(0, API, version, at(topic.name, time))


@scenario(API, good=True)
def several_partitions_and_topics(on: Side, version: int) -> None:
    three = on.topic("a", ((0, 1, 2), (0, 2, 1), (0, 1, 2)))
    on.produce(three, 1, b"a", b"b")
    partitions = [{"partition_index": index, "timestamp": LATEST} for index in range(3)]
    other = [{"partition_index": 0, "timestamp": EARLIEST}]
    both = (
        {"name": three.name, "partitions": partitions},
        {"name": times(on).name, "partitions": other},
    )
    on.ask(0, API, version, listing(*both))


@scenario(API, good=True, versions=WITH_ISOLATION)
def isolation_levels(on: Side, version: int) -> None:
    ask_isolated(on, version, 0, READ_COMMITTED)


@scenario(API, good=False, versions=WITH_ISOLATION)
def isolation_levels_that_do_not_exist(on: Side, version: int) -> None:
    ask_isolated(on, version, 2, -1)


def ask_isolated(on: Side, version: int, *levels: int) -> None:
    for level in levels:
        for time in (LATEST, EARLIEST, BASE_TIME_MS + 11):
            partitions = [{"partition_index": 0, "timestamp": time}]
            topic = {"name": times(on).name, "partitions": partitions}
            on.ask(0, API, version, listing(topic, isolation=level))


@scenario(API, good=True, versions=WITH_EPOCHS)
def the_epoch_of_the_leader(on: Side, version: int) -> None:
    for time in (LATEST, EARLIEST, BASE_TIME_MS):
        on.ask(0, API, version, at(times(on).name, time, current_leader_epoch=0))


@scenario(API, good=True)
def who_is_no_consumer(on: Side, version: int) -> None:
    for replica in (DEBUGGING_CONSUMER, 1, NO_BROKER):
        for time in (LATEST, EARLIEST, BASE_TIME_MS + 11):
            on.ask(0, API, version, at(times(on).name, time, replica=replica))


@scenario(API, good=True)
def nothing(on: Side, version: int) -> None:
    on.ask(0, API, version, listing())
    on.ask(0, API, version, listing({"name": times(on).name, "partitions": []}))


@scenario(API, good=False, versions=WITH_EPOCHS)
def another_epoch_than_the_leaders(on: Side, version: int) -> None:
    for epoch in (1, 100, -2):
        for time in (LATEST, EARLIEST, BASE_TIME_MS):
            on.ask(0, API, version, at(times(on).name, time, current_leader_epoch=epoch))
        on.ask(1, API, version, at(times(on).name, LATEST, current_leader_epoch=epoch))


@scenario(API, good=False)
def a_broker_that_does_not_lead(on: Side, version: int) -> None:
    for broker in (1, 2):
        for time in (LATEST, EARLIEST, BASE_TIME_MS):
            on.ask(broker, API, version, at(times(on).name, time))
    elsewhere = on.shared_topic("one-replica", [[2]])
    on.ask(0, API, version, at(elsewhere.name, LATEST))
    on.ask(0, API, version, at(elsewhere.name, LATEST, current_leader_epoch=0))


@scenario(API, good=False)
def a_replica_that_is_asked_for_debugging(on: Side, version: int) -> None:
    on.ask(1, API, version, at(times(on).name, EARLIEST, replica=DEBUGGING_CONSUMER))
    elsewhere = on.shared_topic("one-replica", [[2]])
    on.ask(0, API, version, at(elsewhere.name, LATEST, replica=DEBUGGING_CONSUMER))


@scenario(API, good=False)
def what_is_not_there(on: Side, version: int) -> None:
    on.ask(0, API, version, at(on.name("missing"), LATEST))
    for partition in (1, -1, 1 << 30):
        on.ask(0, API, version, at(times(on).name, LATEST, partition=partition))
    on.ask(0, API, version, at("", LATEST))
    on.ask(0, API, version, at("a b", LATEST))


@scenario(API, good=False)
def one_bad_among_good_ones(on: Side, version: int) -> None:
    three = on.shared_topic("three", THREE_PARTITIONS)
    partitions = [{"partition_index": index, "timestamp": LATEST} for index in range(4)]
    on.ask(0, API, version, listing({"name": three.name, "partitions": partitions}))


@scenario(API, good=False)
def a_partition_named_twice(on: Side, version: int) -> None:
    name, other = times(on).name, on.shared_topic("one").name
    on.ask(0, API, version, at(name, LATEST, EARLIEST))
    on.ask(0, API, version, at(name, LATEST, LATEST))
    once = {"name": name, "partitions": [{"partition_index": 0, "timestamp": LATEST}]}
    on.ask(0, API, version, listing(once, {**once, "name": other}, once))
    on.ask(0, API, version, at(on.name("missing"), LATEST, EARLIEST))


@scenario(API, good=False)
def times_without_a_meaning(on: Side, version: int) -> None:
    for time in (-7, -8, -(1 << 63)):
        on.ask(0, API, version, at(times(on).name, time))
    on.ask(1, API, version, at(times(on).name, -7))
    on.ask(0, API, version, at(on.name("missing"), -7))


@scenario(API, good=False)
def null_in_place_of(on: Side, version: int) -> None:
    flexible = is_flexible(API, version)
    body = encode_request(API, version, at("nothing", LATEST))
    on.ask(0, API, version, with_null(body, "nothing", flexible=flexible))
    on.ask(0, API, version, listing({"name": times(on).name, "partitions": None}))
    on.ask(0, API, version, {**listing(), "topics": None})


@scenario(API, good=False)
def a_request_of_another_length(on: Side, version: int) -> None:
    body = encode_request(API, version, at(times(on).name, LATEST))
    on.ask(0, API, version, body[:-1])
    on.ask(0, API, version, b"")
    on.ask(0, API, version, body + b"more")


@scenario(API, good=False, versions=just_outside(API))
def a_version_that_does_not_exist(on: Side, version: int) -> None:
    on.ask(0, API, version, encode_request(API, min(max(version, 1), 11), listing()))
