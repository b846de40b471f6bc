"""CreatePartitions: more of them, placed by the cluster or the client, and refused."""

from __future__ import annotations

from collections.abc import Sequence

from mobula.protocol.api import ApiKey
from tests.conformance.scenario import just_outside, scenario
from tests.conformance.side import THREE_PARTITIONS, Side
from tests.conformance.wire import Tree, encode_request, is_flexible, with_null

API = ApiKey.CREATE_PARTITIONS


def wish(name: str, count: int, assignments: Sequence[Sequence[int]] | None = None) -> Tree:
    placed = None if assignments is None else [{"broker_ids": ids} for ids in assignments]
    return {"name": name, "count": count, "assignments": placed}


def wishes(*topics: Tree, validate_only: bool = False, timeout: int = 10_000) -> Tree:
    return {"topics": topics, "timeout": timeout, "validate_only": validate_only}


def describe(on: Side, name: str, partitions: int, *, placement: bool = False) -> None:
    """What became of it, as every broker knows it."""
    on.wait_until_known(name, partitions)
    if placement:
        on.ask(0, ApiKey.METADATA, 12, {"topics": [{"name": name}]})


@scenario(API, good=True)
def more_of_them(on: Side, version: int) -> None:
    for broker in range(3):
        topic = on.topic(f"{broker}", [[broker]])
        on.ask(broker, API, version, wishes(wish(topic.name, 3)))
        describe(on, topic.name, 3)
        on.ask(broker, API, version, wishes(wish(topic.name, 4)))
        describe(on, topic.name, 4)


@scenario(API, good=True)
def of_several_topics(on: Side, version: int) -> None:
    topics = [on.topic(suffix, [[0, 1]]) for suffix in ("a", "b")]
    on.ask(0, API, version, wishes(*(wish(topic.name, 2) for topic in topics)))


@scenario(API, good=True)
def placed_by_the_client(on: Side, version: int) -> None:
    topic = on.topic("a", [[0, 1]])
    on.ask(0, API, version, wishes(wish(topic.name, 3, [[2, 0], [1, 2]])))
    describe(on, topic.name, 3, placement=True)


@scenario(API, good=True)
def without_creating_them(on: Side, version: int) -> None:
    topic = on.topic("a", [[0]])
    for assignments in (None, [[1], [2]]):
        tree = wishes(wish(topic.name, 3, assignments), validate_only=True)
        on.ask(0, API, version, tree)
    bad = wish(topic.name, 1), wish(on.name("missing"), 3)
    on.ask(0, API, version, wishes(*bad, validate_only=True))
    describe(on, topic.name, 1, placement=True)


@scenario(API, good=True)
def no_topics(on: Side, version: int) -> None:
    on.ask(0, API, version, wishes())


@scenario(API, good=False)
def without_time_to_wait(on: Side, version: int) -> None:
    topic = on.topic("a", [[0]])
    for timeout in (0, -1):
        on.ask(0, API, version, wishes(wish(topic.name, 2), timeout=timeout))


@scenario(API, good=False)
def numbers_that_are_not_more(on: Side, version: int) -> None:
    topic = on.shared_topic("three", THREE_PARTITIONS)
    for count in (3, 2, 1, 0, -1, -(2**31)):
        on.ask(0, API, version, wishes(wish(topic.name, count)))
    on.ask(0, API, version, wishes(wish(topic.name, 3, [])))
    on.ask(0, API, version, wishes(wish(topic.name, 2, [[0, 1, 2]])))


@scenario(API, good=False)
def more_than_a_request_may_make(on: Side, version: int) -> None:
    one = on.shared_topic("one")
    for count in (10_002, 100_000, 2**31 - 1):
        on.ask(0, API, version, wishes(wish(one.name, count), validate_only=True))
    on.ask(0, API, version, wishes(wish(one.name, 10_002, [[0]]), validate_only=True))


@scenario(API, good=False)
def a_topic_that_is_not_there(on: Side, version: int) -> None:
    on.ask(0, API, version, wishes(wish(on.name("missing"), 2)))
    topic = on.topic("a", [[0]])
    on.ask(0, API, version, wishes(wish(on.name("missing"), 2), wish(topic.name, 2)))
    describe(on, topic.name, 2)


@scenario(API, good=False)
def names_that_no_topic_can_have(on: Side, version: int) -> None:
    for name in ("", ".", "a b", "a/b", "x" * 250, "__cluster_metadata"):
        on.ask(0, API, version, wishes(wish(name, 2)))


@scenario(API, good=False)
def a_topic_named_twice(on: Side, version: int) -> None:
    twice, once = on.topic("twice", [[0]]), on.topic("once", [[0]])
    both = wish(twice.name, 2), wish(once.name, 2), wish(twice.name, 3)
    on.ask(0, API, version, wishes(*both))
    describe(on, once.name, 2)
    describe(on, twice.name, 1, placement=True)
    missing = wish(on.name("missing"), 2)
    on.ask(0, API, version, wishes(missing, missing))


@scenario(API, good=False)
def placements_that_cannot_be(on: Side, version: int) -> None:
    topic = on.shared_topic("one")
    refused: list[tuple[int, list[list[int]]]] = [
        (2, []),
        (3, [[0, 1, 2]]),
        (2, [[0, 1, 2], [1, 2, 0]]),
        (2, [[]]),
        (2, [[0, 1]]),
        (2, [[0, 1, 2, 3]]),
        (2, [[0, 1, 1]]),
        (2, [[0, 1, 9]]),
        (2, [[0, 1, -1]]),
        (3, [[0, 1, 2], [0]]),
        (3, [[0], [0, 1, 2]]),
    ]
    for count, assignments in refused:
        on.ask(0, API, version, wishes(wish(topic.name, count, assignments)))


@scenario(API, good=False)
def null_in_place_of(on: Side, version: int) -> None:
    flexible = is_flexible(API, version)
    body = encode_request(API, version, wishes(wish("nothing", 2)))
    on.ask(0, API, version, with_null(body, "nothing", flexible=flexible))
    ids = {"assignments": [{"broker_ids": None}]}
    on.ask(0, API, version, wishes({**wish(on.shared_topic("one").name, 2), **ids}))
    on.ask(0, API, version, {**wishes(), "topics": None})


@scenario(API, good=False)
def a_request_of_another_length(on: Side, version: int) -> None:
    body = encode_request(API, version, wishes(wish(on.name("missing"), 2)))
    on.ask(0, API, version, body[:-1])
    on.ask(0, API, version, b"")
    on.ask(0, API, version, body + b"\0\0")


@scenario(API, good=False, versions=just_outside(API))
def a_version_that_does_not_exist(on: Side, version: int) -> None:
    on.ask(0, API, version, encode_request(API, min(version, 3), wishes()))
