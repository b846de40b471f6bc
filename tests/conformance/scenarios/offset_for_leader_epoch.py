"""OffsetForLeaderEpoch: where an epoch ends, of a log that knows one epoch."""

from __future__ import annotations

from typing import Any

from mobula.protocol.api import ApiKey
from tests.conformance.scenario import just_outside, scenario
from tests.conformance.side import FOREVER, THREE_PARTITIONS, Side, Topic
from tests.conformance.wire import Tree, encode_request, is_flexible, with_null

API = ApiKey.OFFSET_FOR_LEADER_EPOCH
CONSUMER, DEBUGGING_CONSUMER = -1, -2


def filled(on: Side) -> Topic:
    def fill(topic: Topic) -> None:
        on.produce(topic, 0, b"a", b"b", b"c")

    return on.shared_topic("epochs", configs=FOREVER, fill=fill)


def of(name: str, epoch: int, partition: int = 0, **more: Any) -> Tree:
    partitions = [{"partition": partition, "leader_epoch": epoch, **more}]
    return asking({"topic": name, "partitions": partitions})


def asking(*topics: Tree, replica: int = CONSUMER) -> Tree:
    return {"replica_id": replica, "topics": topics}


@scenario(API, good=True)
def the_epoch_that_is(on: Side, version: int) -> None:
    for topic in (filled(on), on.shared_topic("one")):
        on.ask(0, API, version, of(topic.name, 0))
        on.ask(0, API, version, of(topic.name, 0, current_leader_epoch=0))


@scenario(API, good=True)
def epochs_that_never_were(on: Side, version: int) -> None:
    for topic in (filled(on), on.shared_topic("one")):
        for epoch in (1, 100, -1, -2):
            on.ask(0, API, version, of(topic.name, epoch))


@scenario(API, good=True)
def of_a_log_that_was_trimmed(on: Side, version: int) -> None:
    topic = on.topic("a", configs=FOREVER)
    on.produce(topic, 0, b"a", b"b", b"c")
    for offset in (2, 3):
        partitions = [{"partition_index": 0, "offset": offset}]
        trim = {"topics": [{"name": topic.name, "partitions": partitions}], "timeout": 10_000}
        on.do(on.leader(topic), ApiKey.DELETE_RECORDS, 2, trim)
        for epoch in (0, 1, -1):
            on.ask(0, API, version, of(topic.name, epoch))


@scenario(API, good=True)
def several_partitions_and_topics(on: Side, version: int) -> None:
    two = on.shared_topic("two-led-by-one", ((0, 1, 2), (0, 2, 1)))
    partitions = [{"partition": index, "leader_epoch": 0} for index in range(2)]
    one = {"topic": filled(on).name, "partitions": partitions[:1]}
    on.ask(0, API, version, asking({"topic": two.name, "partitions": partitions}, one))


@scenario(API, good=True, versions=range(3, 5))
def who_asks(on: Side, version: int) -> None:
    partitions = [{"partition": 0, "leader_epoch": 0}]
    topic = {"topic": filled(on).name, "partitions": partitions}
    for replica in (CONSUMER, DEBUGGING_CONSUMER, 1, 9):
        on.ask(0, API, version, asking(topic, replica=replica))
        on.ask(1, API, version, asking(topic, replica=replica))


@scenario(API, good=True)
def nothing(on: Side, version: int) -> None:
    on.ask(0, API, version, asking())
    on.ask(0, API, version, asking({"topic": filled(on).name, "partitions": []}))


@scenario(API, good=False)
def another_epoch_than_the_leaders(on: Side, version: int) -> None:
    for epoch in (1, 100, -2):
        on.ask(0, API, version, of(filled(on).name, 0, current_leader_epoch=epoch))
        on.ask(1, API, version, of(filled(on).name, 0, current_leader_epoch=epoch))


@scenario(API, good=False)
def a_broker_that_does_not_lead(on: Side, version: int) -> None:
    for broker in (1, 2):
        on.ask(broker, API, version, of(filled(on).name, 0))
        on.ask(broker, API, version, of(filled(on).name, 0, current_leader_epoch=0))
    elsewhere = on.shared_topic("one-replica", [[2]])
    on.ask(0, API, version, of(elsewhere.name, 0))
    on.ask(0, API, version, of(elsewhere.name, 0, current_leader_epoch=0))


@scenario(API, good=False)
def what_is_not_there(on: Side, version: int) -> None:
    on.ask(0, API, version, of(on.name("missing"), 0))
    on.ask(0, API, version, of("a b", 0))
    for partition in (1, -1):
        on.ask(0, API, version, of(filled(on).name, 0, partition))


@scenario(API, good=False)
def one_bad_among_good_ones(on: Side, version: int) -> None:
    three = on.shared_topic("three", THREE_PARTITIONS)
    partitions = [{"partition": index, "leader_epoch": 0} for index in range(4)]
    on.ask(0, API, version, asking({"topic": three.name, "partitions": partitions}))


@scenario(API, good=False)
def a_partition_named_twice(on: Side, version: int) -> None:
    twice = [{"partition": 0, "leader_epoch": epoch} for epoch in (0, 1)]
    on.ask(0, API, version, asking({"topic": filled(on).name, "partitions": twice}))
    once = {"topic": filled(on).name, "partitions": twice[:1]}
    on.ask(0, API, version, asking(once, once))


@scenario(API, good=False)
def null_in_place_of(on: Side, version: int) -> None:
    body = encode_request(API, version, of("nothing", 0))
    on.ask(0, API, version, with_null(body, "nothing", flexible=is_flexible(API, version)))
    on.ask(0, API, version, asking({"topic": filled(on).name, "partitions": None}))
    on.ask(0, API, version, {**asking(), "topics": None})


@scenario(API, good=False)
def a_request_of_another_length(on: Side, version: int) -> None:
    body = encode_request(API, version, of(filled(on).name, 0))
    on.ask(0, API, version, body[:-1])
    on.ask(0, API, version, b"")
    on.ask(0, API, version, body + b"more")


@scenario(API, good=False, versions=just_outside(API))
def a_version_that_does_not_exist(on: Side, version: int) -> None:
    on.ask(0, API, version, encode_request(API, min(max(version, 2), 4), asking()))
