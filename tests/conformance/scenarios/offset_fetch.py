"""OffsetFetch: what is committed, what is not, of one group and of several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from mobula.protocol.api import ApiKey
from tests.conformance.groups import commit, coordinator, offsets, stable
from tests.conformance.scenario import just_outside, scenario
from tests.conformance.side import THREE_PARTITIONS, Side, Topic
from tests.conformance.wire import Tree, encode_request

API = ApiKey.OFFSET_FETCH
ALL_TOPICS = range(2, 11)
SEVERAL = range(8, 11)
STABLE = range(7, 11)


def three(on: Side) -> Topic:
    return on.shared_topic("three", THREE_PARTITIONS)


def of(topic: Topic, *indexes: int) -> Tree:
    return {"name": topic.name, "topic_id": topic.topic_id, "partition_indexes": list(indexes)}


def fetching(group: str, topics: Sequence[Tree] | None, **more: Any) -> Tree:
    """Of one group, in whichever form a version has."""
    one = {"group_id": group, "member_id": None, "member_epoch": -1, "topics": topics}
    by_name = topics and [
        {"name": topic["name"], "partition_indexes": topic["partition_indexes"]} for topic in topics
    ]
    return {"group_id": group, "topics": by_name, "groups": [one], "require_stable": False, **more}


@scenario(API, good=True)
def what_is_committed_and_what_is_not(on: Side, version: int) -> None:
    name = on.name("g")
    commit(on, name, offsets(three(on), (0, 5), (2, 7)))
    broker = coordinator(on, name)
    on.ask(broker, API, version, fetching(name, [of(three(on), 0, 1, 2)]))
    on.ask(broker, API, version, fetching(name, [of(three(on), 7, -1)]))
    on.ask(broker, API, version, fetching(name, []))


@scenario(API, good=True)
def of_a_group_with_members(on: Side, version: int) -> None:
    group = stable(on)
    on.ask(group.broker, API, version, fetching(group.name, [of(three(on), 0)]))


@scenario(API, good=True)
def of_a_group_that_is_not_there(on: Side, version: int) -> None:
    name = on.name("g")
    broker = coordinator(on, name)
    on.ask(broker, API, version, fetching(name, [of(three(on), 0)]))


@scenario(API, good=True, versions=ALL_TOPICS)
def everything(on: Side, version: int) -> None:
    name = on.name("g")
    broker = coordinator(on, name)
    on.ask(broker, API, version, fetching(name, None))
    other = on.shared_topic("one")
    commit(on, name, offsets(three(on), (0, 5), (2, 7)), offsets(other, (0, 1)))
    on.ask(broker, API, version, fetching(name, None))


@scenario(API, good=True, versions=STABLE)
def what_is_stable(on: Side, version: int) -> None:
    name = on.name("g")
    commit(on, name, offsets(three(on), (0, 5)))
    broker = coordinator(on, name)
    asked = fetching(name, [of(three(on), 0)], require_stable=True)
    on.ask(broker, API, version, asked)


@scenario(API, good=True, versions=SEVERAL)
def several_groups(on: Side, version: int) -> None:
    a, b = on.name("a"), on.name("b")
    commit(on, a, offsets(three(on), (0, 5)))
    broker = coordinator(on, a)
    coordinator(on, b)
    groups = [fetching(a, [of(three(on), 0)])["groups"][0], fetching(b, None)["groups"][0]]
    on.ask(broker, API, version, {"groups": groups, "require_stable": False})
    on.ask(broker, API, version, {"groups": [], "require_stable": False})


@scenario(API, good=False)
def of_what_is_not_there(on: Side, version: int) -> None:
    name = on.name("g")
    broker = coordinator(on, name)
    missing = Topic(on.name("missing"), UUID(int=5))
    on.ask(broker, API, version, fetching(name, [of(missing, 0), of(three(on), 0)]))


@scenario(API, good=False)
def without_a_group(on: Side, version: int) -> None:
    coordinator(on, on.name("g"))
    on.ask(0, API, version, fetching("", [of(three(on), 0)]))


@scenario(API, good=False)
def at_a_broker_that_does_not_coordinate(on: Side, version: int) -> None:
    name = on.name("g")
    broker = coordinator(on, name)
    for other in {0, 1, 2} - {broker}:
        on.ask(other, API, version, fetching(name, [of(three(on), 0)]))


@scenario(API, good=False)
def a_request_of_another_length(on: Side, version: int) -> None:
    name = on.name("g")
    broker = coordinator(on, name)
    body = encode_request(API, version, fetching(name, [of(three(on), 0)]))
    on.ask(broker, API, version, body[:-1])
    on.ask(broker, API, version, b"")
    on.ask(broker, API, version, body + b"more")


@scenario(API, good=False, versions=just_outside(API))
def a_version_that_does_not_exist(on: Side, version: int) -> None:
    asked = fetching("g", [])
    on.ask(0, API, version, encode_request(API, min(max(version, 1), 10), asked))
