"""DeleteRecords: up to an offset or to all that is committed, and refused."""

from __future__ import annotations

from mobula.protocol.api import ApiKey
from tests.conformance.scenario import just_outside, scenario
from tests.conformance.side import FOREVER, THREE_PARTITIONS, Side, Topic
from tests.conformance.wire import Tree, encode_request, is_flexible, with_null

API = ApiKey.DELETE_RECORDS
ALL = -1
LIST_OFFSETS_VERSION = 7
EARLIEST = -2


def filled(on: Side, suffix: str = "a", batches: int = 2) -> Topic:
    topic = on.topic(suffix, configs=FOREVER)
    for _ in range(batches):
        on.produce(topic, 0, b"a", b"b", b"c")
    return topic


def upto(name: str, *offsets: int, partition: int = 0, timeout: int = 10_000) -> Tree:
    partitions = [{"partition_index": partition, "offset": offset} for offset in offsets]
    return deleting({"name": name, "partitions": partitions}, timeout=timeout)


def deleting(*topics: Tree, timeout: int = 10_000) -> Tree:
    return {"topics": topics, "timeout": timeout}


def ask_start(on: Side, topic: Topic) -> None:
    """Where the log begins now."""
    partitions = [{"partition_index": 0, "timestamp": EARLIEST}]
    asked = {"replica_id": -1, "topics": [{"name": topic.name, "partitions": partitions}]}
    on.ask(0, ApiKey.LIST_OFFSETS, LIST_OFFSETS_VERSION, asked)


@scenario(API, good=True)
def upto_an_offset(on: Side, version: int) -> None:
    topic = filled(on)
    for offset in (0, 1, 3, 3, 2, 6):
        on.ask(0, API, version, upto(topic.name, offset))
        ask_start(on, topic)


@scenario(API, good=True)
def all_that_is_committed(on: Side, version: int) -> None:
    topic = filled(on)
    for _ in range(2):
        on.ask(0, API, version, upto(topic.name, ALL))
        ask_start(on, topic)
    on.ask(0, API, version, upto(topic.name, 2))


@scenario(API, good=True)
def of_an_empty_log(on: Side, version: int) -> None:
    topic = on.shared_topic("one")
    for offset in (0, ALL):
        on.ask(0, API, version, upto(topic.name, offset))


@scenario(API, good=True)
def of_a_topic_that_is_compacted_and_deleted_from(on: Side, version: int) -> None:
    topic = on.topic("a", configs={"cleanup.policy": "compact,delete"})
    on.ask(0, API, version, upto(topic.name, 0))


@scenario(API, good=True)
def several_partitions_and_topics(on: Side, version: int) -> None:
    two = on.shared_topic("two-led-by-one", ((0, 1, 2), (0, 2, 1)))
    partitions = [{"partition_index": index, "offset": ALL} for index in range(2)]
    one = {"name": filled(on).name, "partitions": [{"partition_index": 0, "offset": 2}]}
    on.ask(0, API, version, deleting({"name": two.name, "partitions": partitions}, one))


@scenario(API, good=True)
def nothing(on: Side, version: int) -> None:
    on.ask(0, API, version, deleting())
    on.ask(0, API, version, deleting({"name": on.shared_topic("one").name, "partitions": []}))


@scenario(API, good=False)
def offsets_that_cannot_be(on: Side, version: int) -> None:
    topic = filled(on)
    for offset in (7, 1 << 62, -2, -(1 << 63)):
        on.ask(0, API, version, upto(topic.name, offset))
    ask_start(on, topic)


@scenario(API, good=False)
def a_broker_that_does_not_lead(on: Side, version: int) -> None:
    topic = on.shared_topic("one")
    for broker in (1, 2):
        on.ask(broker, API, version, upto(topic.name, 0))
    elsewhere = on.shared_topic("one-replica", [[2]])
    on.ask(0, API, version, upto(elsewhere.name, 0))


@scenario(API, good=False)
def what_is_not_there(on: Side, version: int) -> None:
    on.ask(0, API, version, upto(on.name("missing"), 0))
    on.ask(0, API, version, upto("a b", 0))
    for partition in (1, -1):
        on.ask(0, API, version, upto(on.shared_topic("one").name, 0, partition=partition))


@scenario(API, good=False)
def a_topic_that_is_compacted_alone(on: Side, version: int) -> None:
    topic = on.shared_topic("compacted", configs={"cleanup.policy": "compact"})
    for offset in (0, ALL, 5):
        on.ask(0, API, version, upto(topic.name, offset))
    on.ask(1, API, version, upto(topic.name, 0))


@scenario(API, good=False)
def one_bad_among_good_ones(on: Side, version: int) -> None:
    three = on.shared_topic("three", THREE_PARTITIONS)
    partitions = [{"partition_index": index, "offset": 0} for index in range(4)]
    on.ask(0, API, version, deleting({"name": three.name, "partitions": partitions}))


@scenario(API, good=False)
def a_partition_named_twice(on: Side, version: int) -> None:
    topic = filled(on)
    on.ask(0, API, version, upto(topic.name, 1, 2))
    once = {"name": topic.name, "partitions": [{"partition_index": 0, "offset": 4}]}
    on.ask(0, API, version, deleting(once, once))
    ask_start(on, topic)


@scenario(API, good=False)
def without_time_to_wait(on: Side, version: int) -> None:
    for timeout in (0, -1):
        on.ask(0, API, version, upto(on.shared_topic("one").name, 0, timeout=timeout))


@scenario(API, good=False)
def null_in_place_of(on: Side, version: int) -> None:
    body = encode_request(API, version, upto("nothing", 0))
    on.ask(0, API, version, with_null(body, "nothing", flexible=is_flexible(API, version)))
    on.ask(0, API, version, deleting({"name": on.shared_topic("one").name, "partitions": None}))
    on.ask(0, API, version, {**deleting(), "topics": None})


@scenario(API, good=False)
def a_request_of_another_length(on: Side, version: int) -> None:
    body = encode_request(API, version, upto(on.shared_topic("one").name, 0))
    on.ask(0, API, version, body[:-1])
    on.ask(0, API, version, b"")
    on.ask(0, API, version, body + b"more")


@scenario(API, good=False, versions=just_outside(API))
def a_version_that_does_not_exist(on: Side, version: int) -> None:
    on.ask(0, API, version, encode_request(API, min(version, 2), deleting()))
