"""DescribeLogDirs: what a broker's folder holds, all of it or some."""

from __future__ import annotations

from collections.abc import Sequence

from mobula.protocol.api import ApiKey
from tests.conformance.scenario import scenario
from tests.conformance.side import THREE_PARTITIONS, Side, Topic
from tests.conformance.wire import Tree, encode_request, is_flexible, with_null

API = ApiKey.DESCRIBE_LOG_DIRS


def wanted(*topics: tuple[str, Sequence[int]]) -> Tree:
    return {"topics": [{"topic": name, "partitions": indexes} for name, indexes in topics]}


def filled(on: Side, suffix: str) -> Topic:
    """Three partitions, each on two brokers, the first two of them with records."""
    topic = on.topic(suffix, [[0, 1], [1, 2], [2, 0]])
    on.produce(topic, 0, b"one", b"two")
    on.produce(topic, 0, b"three")
    on.produce(topic, 1, b"x" * 10_000)
    return topic


@scenario(API, good=True)
def everything(on: Side, version: int) -> None:
    filled(on, "a")
    on.topic("b", [[1]])
    for broker in range(3):
        on.ask(broker, API, version, {"topics": None}, own_topics_only=True)


@scenario(API, good=True)
def chosen_partitions(on: Side, version: int) -> None:
    topic = filled(on, "a")
    for broker in range(3):
        on.ask(broker, API, version, wanted((topic.name, range(3))))
        on.ask(broker, API, version, wanted((topic.name, [1])))


@scenario(API, good=True)
def several_topics(on: Side, version: int) -> None:
    one = on.shared_topic("one-replica", [[2]])
    three = on.shared_topic("three", THREE_PARTITIONS)
    for broker in (0, 2):
        on.ask(broker, API, version, wanted((one.name, [0]), (three.name, [2, 0])))


@scenario(API, good=True)
def a_partition_named_twice(on: Side, version: int) -> None:
    topic = on.shared_topic("three", THREE_PARTITIONS)
    on.ask(0, API, version, wanted((topic.name, [0, 0])))
    on.ask(0, API, version, wanted((topic.name, [0]), (topic.name, [1])))
    on.ask(0, API, version, wanted((topic.name, [0]), (topic.name, [0])))


@scenario(API, good=True)
def no_topics(on: Side, version: int) -> None:
    on.ask(0, API, version, wanted())


@scenario(API, good=True)
def a_topic_without_partitions(on: Side, version: int) -> None:
    topic = on.shared_topic("three", THREE_PARTITIONS)
    on.ask(0, API, version, wanted((topic.name, [])))


@scenario(API, good=False)
def what_is_not_there(on: Side, version: int) -> None:
    topic = on.shared_topic("three", THREE_PARTITIONS)
    elsewhere = on.shared_topic("one-replica", [[2]])
    for name, index in (
        (on.name("missing"), 0),
        (topic.name, 3),
        (topic.name, -1),
        (elsewhere.name, 0),
        ("", 0),
        ("a b", 0),
    ):
        on.ask(0, API, version, wanted((name, [index])))
    on.ask(0, API, version, wanted((on.name("missing"), [0]), (topic.name, [0, 3])))


@scenario(API, good=False)
def null_in_place_of(on: Side, version: int) -> None:
    body = encode_request(API, version, wanted(("nothing", [0])))
    on.ask(0, API, version, with_null(body, "nothing", flexible=is_flexible(API, version)))
    on.ask(0, API, version, {"topics": [{"topic": on.name("missing"), "partitions": None}]})


@scenario(API, good=False)
def a_request_of_another_length(on: Side, version: int) -> None:
    body = encode_request(API, version, wanted((on.name("missing"), [0])))
    on.ask(0, API, version, body[:-1])
    on.ask(0, API, version, b"")
    on.ask(0, API, version, body + b"\0\0")


@scenario(API, good=False, versions=(0, 6))
def a_version_that_does_not_exist(on: Side, version: int) -> None:
    on.ask(0, API, version, encode_request(API, min(max(version, 1), 4), wanted()))
