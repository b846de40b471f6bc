"""Metadata: topics by name, by id and all of them; topics that are not there, or come to be."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from mobula.protocol.api import ApiKey
from tests.conformance.scenario import just_outside, scenario
from tests.conformance.side import THREE_PARTITIONS, Side
from tests.conformance.wire import Tree, encode_request, is_flexible, with_null

API = ApiKey.METADATA
CHOOSING = range(4, 14)
"""The versions that say whether a topic may be created."""
WITH_IDS = range(10, 14)
BY_ID = range(12, 14)
NOBODY = UUID(int=77)


def named(*names: str, create: bool = False, **more: Any) -> Tree:
    topics = [{"name": name} for name in names]
    return {"topics": topics, "allow_auto_topic_creation": create, **more}


@scenario(API, good=True)
def a_topic_by_name(on: Side, version: int) -> None:
    topic = on.shared_topic("three", THREE_PARTITIONS)
    for broker in range(3):
        on.ask(broker, API, version, named(topic.name))


@scenario(API, good=True)
def several_topics_by_name(on: Side, version: int) -> None:
    three = on.shared_topic("three", THREE_PARTITIONS)
    one = on.shared_topic("one")
    on.ask(0, API, version, named(three.name, one.name))


@scenario(API, good=True)
def a_topic_named_twice(on: Side, version: int) -> None:
    topic = on.shared_topic("one")
    on.ask(0, API, version, named(topic.name, topic.name))


@scenario(API, good=True)
def a_topic_with_one_replica(on: Side, version: int) -> None:
    topic = on.shared_topic("one-replica", [[2]])
    on.ask(0, API, version, named(topic.name))


@scenario(API, good=True)
def all_topics(on: Side, version: int) -> None:
    on.topic("a")
    on.topic("b", [[1, 2]])
    everything: Tree = {"topics": None if version else [], "allow_auto_topic_creation": False}
    on.ask(0, API, version, everything, own_topics_only=True)


@scenario(API, good=True)
def no_topics(on: Side, version: int) -> None:
    nothing: Tree = {"topics": [] if version else None, "allow_auto_topic_creation": False}
    on.ask(0, API, version, nothing, own_topics_only=True)


@scenario(API, good=False, versions=CHOOSING)
def a_topic_that_was_deleted(on: Side, version: int) -> None:
    topic = on.topic("gone")
    on.do(0, ApiKey.DELETE_TOPICS, 5, {"topic_names": [topic.name], "timeout": 10_000})
    on.wait_until_gone(topic.name)
    on.ask(0, API, version, named(topic.name))
    if version in BY_ID:
        topics = [{"name": None, "topic_id": topic.topic_id}]
        on.ask(0, API, version, {"topics": topics})


@scenario(API, good=True)
def a_topic_that_is_created_by_asking(on: Side, version: int) -> None:
    name = on.name("new")
    on.ask(0, API, version, named(name, create=True))
    on.wait_until_known(name)
    (topic,) = on.do(0, API, 12, named(name))["topics"]
    assert len(topic["partitions"]) == 1


@scenario(API, good=True, versions=CHOOSING)
def authorized_operations(on: Side, version: int) -> None:
    topic = on.shared_topic("one")
    of_topics = {"include_topic_authorized_operations": True}
    of_cluster = {"include_cluster_authorized_operations": True}
    on.ask(0, API, version, named(topic.name, **of_topics))
    on.ask(0, API, version, named(topic.name, **of_cluster))
    on.ask(0, API, version, named(on.name("missing"), **of_topics, **of_cluster))


@scenario(API, good=True, versions=BY_ID)
def a_topic_by_id(on: Side, version: int) -> None:
    one = on.shared_topic("one")
    three = on.shared_topic("three", THREE_PARTITIONS)
    on.ask(0, API, version, {"topics": [{"name": None, "topic_id": one.topic_id}]})
    both = [{"name": None, "topic_id": topic.topic_id} for topic in (one, three, one)]
    on.ask(0, API, version, {"topics": both})


@scenario(API, good=False, versions=CHOOSING)
def a_topic_that_does_not_exist(on: Side, version: int) -> None:
    on.ask(0, API, version, named(on.name("missing")))
    on.ask(0, API, version, named(on.name("missing"), on.shared_topic("one").name))


@scenario(API, good=False)
def a_name_that_no_topic_can_have(on: Side, version: int) -> None:
    for name in ("", ".", "..", "a b", "a/b", "ä", "x" * 250):
        on.ask(0, API, version, named(name, create=True))


@scenario(API, good=False)
def a_null_name(on: Side, version: int) -> None:
    if version in WITH_IDS:
        on.ask(0, API, version, {"topics": [{"name": None}]})
    else:
        body = encode_request(API, version, named("nothing"))
        on.ask(0, API, version, with_null(body, "nothing", flexible=is_flexible(API, version)))


@scenario(API, good=False, versions=WITH_IDS)
def an_id_that_no_topic_has(on: Side, version: int) -> None:
    on.ask(0, API, version, {"topics": [{"name": None, "topic_id": NOBODY}]})


@scenario(API, good=False, versions=WITH_IDS)
def an_id_beside_a_name(on: Side, version: int) -> None:
    one = on.shared_topic("one")
    three = on.shared_topic("three", THREE_PARTITIONS)
    on.ask(0, API, version, {"topics": [{"name": one.name, "topic_id": one.topic_id}]})
    on.ask(0, API, version, {"topics": [{"name": one.name, "topic_id": three.topic_id}]})
    mixed = [{"name": one.name}, {"name": None, "topic_id": three.topic_id}]
    on.ask(0, API, version, {"topics": mixed})


@scenario(API, good=False)
def a_request_that_is_cut_short(on: Side, version: int) -> None:
    body = encode_request(API, version, named("a-topic"))
    on.ask(0, API, version, body[:6])
    on.ask(0, API, version, b"")


@scenario(API, good=False, versions=just_outside(API))
def a_version_that_does_not_exist(on: Side, version: int) -> None:
    on.ask(0, API, version, encode_request(API, 13, named("a-topic")))
