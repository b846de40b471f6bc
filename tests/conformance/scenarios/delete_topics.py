"""DeleteTopics: by name and by id, each topic judged for itself."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from mobula.protocol.api import ApiKey
from tests.conformance.scenario import just_outside, scenario
from tests.conformance.side import Side, Topic
from tests.conformance.wire import Tree, encode_request, is_flexible, with_null

API = ApiKey.DELETE_TOPICS
BY_ID = 6
NOBODY = UUID(int=77)


def named(version: int, *names: str) -> Tree:
    if version >= BY_ID:
        return {"timeout": 10_000, "topics": [{"name": name} for name in names]}
    return {"timeout": 10_000, "topic_names": names}


def judged(*topics: tuple[str | None, UUID | None]) -> Tree:
    return {
        "timeout": 10_000,
        "topics": [{"name": name, "topic_id": topic_id} for name, topic_id in topics],
    }


def look(on: Side, *topics: Topic) -> None:
    """Which of them are still there."""
    on.ask(
        0,
        ApiKey.METADATA,
        12,
        {
            "topics": [{"name": topic.name} for topic in topics],
            "allow_auto_topic_creation": False,
        },
    )


@scenario(API, good=True)
def topics_by_name(on: Side, version: int) -> None:
    a, b, c = on.topic("a"), on.topic("b"), on.topic("c")
    on.ask(0, API, version, named(version, a.name, b.name))
    on.wait_until_gone(a.name)
    on.wait_until_gone(b.name)
    look(on, a, b, c)


@scenario(API, good=True)
def asked_of_any_broker(on: Side, version: int) -> None:
    for broker in range(3):
        on.ask(broker, API, version, named(version, on.topic(str(broker)).name))


@scenario(API, good=True)
def a_topic_that_is_made_anew(on: Side, version: int) -> None:
    topic = on.topic("a")
    on.ask(0, API, version, named(version, topic.name))
    on.wait_until_gone(topic.name)
    look(on, on.topic("a"))


@scenario(API, good=True)
def no_topics(on: Side, version: int) -> None:
    on.ask(0, API, version, named(version))


@scenario(API, good=True, versions=[BY_ID])
def topics_by_id(on: Side, version: int) -> None:
    a, b = on.topic("a"), on.topic("b")
    on.ask(0, API, version, judged((None, a.topic_id), (b.name, None)))
    on.wait_until_gone(a.name)
    on.wait_until_gone(b.name)
    look(on, a, b)


@scenario(API, good=False)
def a_topic_that_does_not_exist(on: Side, version: int) -> None:
    a = on.topic("a")
    on.ask(0, API, version, named(version, on.name("missing")))
    on.ask(0, API, version, named(version, on.name("missing"), a.name))
    on.wait_until_gone(a.name)
    on.ask(0, API, version, named(version, a.name))


@scenario(API, good=False)
def names_that_no_topic_can_have(on: Side, version: int) -> None:
    for name in ("", ".", "a b", "x" * 250, "__cluster_metadata"):
        on.ask(0, API, version, named(version, name))


@scenario(API, good=False)
def a_topic_named_twice(on: Side, version: int) -> None:
    a, b = on.topic("a"), on.topic("b")
    on.ask(0, API, version, named(version, a.name, a.name, b.name))
    missing = on.name("missing")
    on.ask(0, API, version, named(version, missing, missing))
    on.wait_until_gone(b.name)
    look(on, a, b)


@scenario(API, good=False, versions=[BY_ID])
def neither_name_nor_id_or_both(on: Side, version: int) -> None:
    a, b = on.topic("a"), on.topic("b")
    on.ask(0, API, version, judged((None, None)))
    on.ask(0, API, version, judged((a.name, a.topic_id)))
    on.ask(0, API, version, judged((a.name, b.topic_id)))
    on.ask(0, API, version, judged((a.name, None), (None, a.topic_id)))
    on.ask(0, API, version, judged((None, b.topic_id), (None, b.topic_id)))
    on.ask(0, API, version, judged((b.name, None), (None, b.topic_id), (None, b.topic_id)))
    on.ask(0, API, version, judged((b.name, None), (b.name, None), (None, NOBODY)))
    on.ask(0, API, version, judged((None, NOBODY), (None, NOBODY), (None, None), (None, None)))
    look(on, a, b)


@scenario(API, good=False, versions=[BY_ID])
def an_id_that_no_topic_has(on: Side, version: int) -> None:
    on.ask(0, API, version, judged((None, NOBODY)))
    a = on.topic("a")
    on.do(0, API, version, named(version, a.name))
    on.wait_until_gone(a.name)
    on.ask(0, API, version, judged((None, a.topic_id)))


@scenario(API, good=False)
def null_in_place_of(on: Side, version: int) -> None:
    field = "topics" if version >= BY_ID else "topic_names"
    nothing: dict[str, Any] = {"timeout": 10_000, field: None}
    on.ask(0, API, version, nothing)
    if version < BY_ID:
        body = encode_request(API, version, named(version, "nothing"))
        on.ask(0, API, version, with_null(body, "nothing", flexible=is_flexible(API, version)))


@scenario(API, good=False)
def a_request_that_is_cut_short(on: Side, version: int) -> None:
    on.ask(0, API, version, encode_request(API, version, named(version, on.name("a")))[:-1])
    on.ask(0, API, version, b"")


@scenario(API, good=False, versions=just_outside(API))
def a_version_that_does_not_exist(on: Side, version: int) -> None:
    known = min(max(version, 1), BY_ID)
    on.ask(0, API, version, encode_request(API, known, named(known, "a-topic")))
