"""DescribeTopicPartitions: partitions in the order of names, a page at a time."""

from __future__ import annotations

from typing import Any

from mobula.protocol.api import ApiKey
from tests.conformance.scenario import just_outside, scenario
from tests.conformance.side import THREE_PARTITIONS, Side
from tests.conformance.wire import Tree, encode_request, with_null

API = ApiKey.DESCRIBE_TOPIC_PARTITIONS


def named(*names: str, cursor: tuple[str, int] | None = None, limit: int = 2000) -> Tree:
    tree: dict[str, Any] = {
        "topics": [{"name": name} for name in names],
        "response_partition_limit": limit,
    }
    if cursor is not None:
        tree["cursor"] = {"topic_name": cursor[0], "partition_index": cursor[1]}
    return tree


@scenario(API, good=True)
def topics_by_name(on: Side, version: int) -> None:
    b = on.topic("b", THREE_PARTITIONS)
    a = on.topic("a", [[1, 0]])
    for broker in range(3):
        on.ask(broker, API, version, named(b.name, a.name))
    on.ask(0, API, version, named(a.name, a.name))


@scenario(API, good=True)
def a_page_at_a_time(on: Side, version: int) -> None:
    names = [on.topic(name, THREE_PARTITIONS).name for name in ("a", "b", "c")]
    for limit in (1, 2, 3, 4, 6, 8, 9, 10):
        on.ask(0, API, version, named(*names, limit=limit))
    for cursor in ((names[0], 0), (names[0], 2), (names[1], 1), (names[2], 2), (names[2], 3)):
        on.ask(0, API, version, named(*names, cursor=cursor, limit=2))
        on.ask(0, API, version, named(*names, cursor=cursor))


@scenario(API, good=True)
def a_limit_that_is_no_limit(on: Side, version: int) -> None:
    topic = on.shared_topic("three", THREE_PARTITIONS)
    for limit in (0, -1, 1_000_000):
        on.ask(0, API, version, named(topic.name, limit=limit))


@scenario(API, good=True)
def all_topics(on: Side, version: int) -> None:
    on.topic("a", THREE_PARTITIONS)
    on.topic("b")
    on.ask(0, API, version, named(), own_topics_only=True)


@scenario(API, good=False)
def a_topic_that_does_not_exist(on: Side, version: int) -> None:
    a = on.topic("a", THREE_PARTITIONS)
    missing, z = on.name("missing"), on.topic("z")
    on.ask(0, API, version, named(missing))
    on.ask(0, API, version, named(z.name, missing, a.name))
    on.ask(0, API, version, named(z.name, missing, a.name, limit=3))
    on.ask(0, API, version, named(z.name, missing, a.name, cursor=(missing, 0)))


@scenario(API, good=False)
def a_name_that_no_topic_can_have(on: Side, version: int) -> None:
    for name in ("", ".", "a b", "x" * 250):
        on.ask(0, API, version, named(name))


@scenario(API, good=False)
def a_cursor_that_points_nowhere(on: Side, version: int) -> None:
    a = on.topic("a", THREE_PARTITIONS)
    c = on.topic("c", THREE_PARTITIONS)
    on.ask(0, API, version, named(a.name, cursor=(a.name, -1)))
    on.ask(0, API, version, named(a.name, cursor=(a.name, 3)))
    on.ask(0, API, version, named(a.name, cursor=(c.name, 0)))
    on.ask(0, API, version, named(a.name, c.name, cursor=(on.name("b"), 0)))
    on.ask(0, API, version, named(a.name, cursor=("", 0)))
    on.ask(0, API, version, named(cursor=(c.name, 1)), own_topics_only=True)
    on.ask(0, API, version, named(cursor=(on.name("b"), 1)), own_topics_only=True)


@scenario(API, good=False)
def a_null_name(on: Side, version: int) -> None:
    body = encode_request(API, version, named("nothing"))
    on.ask(0, API, version, with_null(body, "nothing", flexible=True))
    on.ask(0, API, version, {**named(), "topics": None})


@scenario(API, good=False)
def a_request_that_is_cut_short(on: Side, version: int) -> None:
    on.ask(0, API, version, encode_request(API, version, named("a-topic"))[:5])
    on.ask(0, API, version, b"")


@scenario(API, good=False, versions=just_outside(API))
def a_version_that_does_not_exist(on: Side, version: int) -> None:
    on.ask(0, API, version, encode_request(API, 0, named("a-topic")))
