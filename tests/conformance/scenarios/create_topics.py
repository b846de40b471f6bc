"""CreateTopics: with defaults, with placements and settings of the client's, and refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mobula.protocol.api import ApiKey
from tests.conformance.scenario import just_outside, scenario
from tests.conformance.side import Side
from tests.conformance.wire import Tree, encode_request, is_flexible, with_null

API = ApiKey.CREATE_TOPICS
WITH_DEFAULTS = range(4, 8)
"""The versions in which -1 is asked for when the cluster shall choose."""


def wish(
    name: str,
    partitions: int = 2,
    replicas: int = 3,
    assignments: Sequence[tuple[int, Sequence[int]]] = (),
    configs: Mapping[str, str | None] | None = None,
) -> Tree:
    placed = [{"partition_index": index, "broker_ids": ids} for index, ids in assignments]
    settings = [{"name": key, "value": value} for key, value in (configs or {}).items()]
    return {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": replicas,
        "assignments": placed,
        "configs": settings,
    }


def placed(name: str, *assignments: tuple[int, Sequence[int]]) -> Tree:
    return wish(name, -1, -1, assignments)


def wishes(*topics: Tree, validate_only: bool = False, timeout: int = 10_000) -> Tree:
    return {"topics": topics, "timeout": timeout, "validate_only": validate_only}


def describe(on: Side, *names: str, placement: bool = False) -> None:
    """What became of them, as every broker knows it."""
    for name in names:
        on.wait_until_known(name)
    if placement:
        on.ask(0, ApiKey.METADATA, 12, {"topics": [{"name": name} for name in names]})


@scenario(API, good=True)
def a_topic(on: Side, version: int) -> None:
    on.ask(0, API, version, wishes(wish(on.name("a"))))
    describe(on, on.name("a"))


@scenario(API, good=True)
def several_topics_asked_of_any_broker(on: Side, version: int) -> None:
    for broker in range(3):
        names = [on.name(f"{broker}-{index}") for index in range(2)]
        on.ask(broker, API, version, wishes(*(wish(name, 1, 1) for name in names)))


@scenario(API, good=True, versions=WITH_DEFAULTS)
def as_many_as_the_cluster_says(on: Side, version: int) -> None:
    on.ask(0, API, version, wishes(wish(on.name("a"), -1, -1)))


@scenario(API, good=True)
def placed_by_the_client(on: Side, version: int) -> None:
    topic = placed(on.name("a"), (1, [2, 0]), (0, [0, 1]))
    on.ask(0, API, version, wishes(topic))
    describe(on, on.name("a"), placement=True)


@scenario(API, good=True)
def with_settings(on: Side, version: int) -> None:
    settings = {
        "cleanup.policy": "compact",
        "retention.ms": "-1",
        "segment.bytes": "1048576",
        "min.insync.replicas": "1",
        "compression.type": "lz4",
    }
    on.ask(0, API, version, wishes(wish(on.name("a"), 1, 1, configs=settings)))


@scenario(API, good=True)
def without_creating_it(on: Side, version: int) -> None:
    for _ in range(2):
        on.ask(0, API, version, wishes(wish(on.name("a")), validate_only=True))
    missing = {"topics": [{"name": on.name("a")}], "allow_auto_topic_creation": False}
    on.ask(0, ApiKey.METADATA, 12, missing)


@scenario(API, good=True)
def no_topics(on: Side, version: int) -> None:
    on.ask(0, API, version, wishes())


@scenario(API, good=False)
def without_time_to_wait(on: Side, version: int) -> None:
    for timeout in (0, -1):
        on.ask(0, API, version, wishes(wish(on.name("a")), timeout=timeout))


@scenario(API, good=False)
def a_topic_that_exists(on: Side, version: int) -> None:
    topic = on.shared_topic("one")
    on.ask(0, API, version, wishes(wish(topic.name), wish(on.name("a"))))
    on.ask(0, API, version, wishes(wish(topic.name), validate_only=True))


@scenario(API, good=False)
def a_topic_named_twice(on: Side, version: int) -> None:
    on.ask(0, API, version, wishes(wish(on.name("a")), wish(on.name("b")), wish(on.name("a"), 5)))


@scenario(API, good=False)
def names_that_no_topic_can_have(on: Side, version: int) -> None:
    for name in ("", ".", "..", "a b", "a/b", "ä", "x" * 250):
        on.ask(0, API, version, wishes(wish(name)))
    on.ask(0, API, version, wishes(wish("__cluster_metadata")))


@scenario(API, good=False)
def names_that_metrics_cannot_tell_apart(on: Side, version: int) -> None:
    dotted, underlined = on.name("a.b"), on.name("a_b")
    on.ask(0, API, version, wishes(wish(dotted, 1, 1)))
    on.ask(0, API, version, wishes(wish(underlined, 1, 1)))
    pair = wishes(wish(on.name("c.d"), 1, 1), wish(on.name("c_d"), 1, 1))
    on.do(0, API, version, pair)


@scenario(API, good=False)
def numbers_of_partitions_and_replicas_that_cannot_be(on: Side, version: int) -> None:
    for partitions, replicas in ((0, 3), (-2, 3), (1, 0), (1, -2), (1, 4), (0, 0), (1, 32767)):
        on.ask(0, API, version, wishes(wish(on.name("a"), partitions, replicas)))


@scenario(API, good=False, versions=range(2, 4))
def defaults_before_there_were_any(on: Side, version: int) -> None:
    on.ask(0, API, version, wishes(wish(on.name("a"), -1, 3)))
    on.ask(0, API, version, wishes(wish(on.name("b"), 1, -1)))
    on.ask(0, API, version, wishes(wish(on.name("c"), -1, -1)))


@scenario(API, good=False)
def more_partitions_than_a_request_may_make(on: Side, version: int) -> None:
    on.ask(0, API, version, wishes(wish(on.name("a"), 10_001)))
    on.ask(0, API, version, wishes(wish(on.name("a"), 10_001, 9), wish(on.name("b"), 1)))
    both = (wish(on.name("a"), 6_000), wish(on.name("b"), 4_001))
    on.ask(0, API, version, wishes(*both, validate_only=True))
    on.ask(0, API, version, wishes(wish("a b", 6_000), *both[1:], validate_only=True))


@scenario(API, good=False)
def placements_that_cannot_be(on: Side, version: int) -> None:
    a = on.name("a")
    refused: list[Tree] = [
        placed(a, (0, [])),
        placed(a, (0, [9])),
        placed(a, (0, [-1])),
        placed(a, (0, [0, 0])),
        placed(a, (0, [0, 1]), (1, [0])),
        placed(a, (0, [0]), (0, [1])),
        placed(a, (1, [0])),
        placed(a, (0, [0]), (2, [0])),
        wish(a, 1, -1, [(0, [0])]),
        wish(a, -1, 1, [(0, [0])]),
        wish(a, 1, 1, [(0, [0])]),
    ]
    for topic in refused:
        on.ask(0, API, version, wishes(topic))


@scenario(API, good=False)
def settings_that_cannot_be(on: Side, version: int) -> None:
    refused: list[dict[str, str | None]] = [
        {"no.such.key": "1"},
        {"retention.ms": "soon"},
        {"retention.ms": "-2"},
        {"retention.ms": ""},
        {"retention.ms": None},
        {"cleanup.policy": "burn"},
        {"min.insync.replicas": "0"},
        {"segment.bytes": "1"},
        {"": "1"},
        {"retention.ms": None, "segment.ms": None},
        {"retention.ms": "soon", "cleanup.policy": "burn"},
    ]
    for settings in refused:
        on.ask(0, API, version, wishes(wish(on.name("a"), 1, 1, configs=settings)))


@scenario(API, good=False)
def one_bad_among_good_ones(on: Side, version: int) -> None:
    good, bad = wish(on.name("good"), 1, 1), wish(on.name("bad"), 1, 9)
    on.ask(0, API, version, wishes(good, bad, wish(on.name("fine"), 1, 1)))


@scenario(API, good=False)
def null_in_place_of(on: Side, version: int) -> None:
    flexible = is_flexible(API, version)
    body = encode_request(API, version, wishes(wish("nothing")))
    on.ask(0, API, version, with_null(body, "nothing", flexible=flexible))
    body = encode_request(API, version, wishes(wish(on.name("a"), configs={"nothing": "1"})))
    on.ask(0, API, version, with_null(body, "nothing", flexible=flexible))
    nulls: list[Tree] = [
        {"assignments": None},
        {"configs": None},
        {"assignments": [{"partition_index": 0, "broker_ids": None}]},
    ]
    for null in nulls:
        on.ask(0, API, version, wishes({**wish(on.name("a")), **null}))
    everything: dict[str, Any] = {**wishes(), "topics": None}
    on.ask(0, API, version, everything)


@scenario(API, good=False)
def a_request_that_is_cut_short(on: Side, version: int) -> None:
    body = encode_request(API, version, wishes(wish(on.name("a"))))
    on.ask(0, API, version, body[:-1])
    on.ask(0, API, version, b"")


@scenario(API, good=False, versions=just_outside(API))
def a_version_that_does_not_exist(on: Side, version: int) -> None:
    on.ask(0, API, version, encode_request(API, min(max(version, 2), 7), wishes()))
