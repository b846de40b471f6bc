"""OffsetDelete: of groups without members and with, and refused."""

from __future__ import annotations

from mobula.protocol.api import ApiKey
from tests.conformance.groups import commit, coordinator, offsets, stable
from tests.conformance.scenario import just_outside, scenario
from tests.conformance.side import THREE_PARTITIONS, Side, Topic
from tests.conformance.wire import Tree, encode_request

API = ApiKey.OFFSET_DELETE
FETCH_VERSION = 7


def three(on: Side) -> Topic:
    return on.shared_topic("three", THREE_PARTITIONS)


def deleting(group: str, *topics: tuple[str, list[int]]) -> Tree:
    return {
        "group_id": group,
        "topics": [
            {"name": name, "partitions": [{"partition_index": index} for index in indexes]}
            for name, indexes in topics
        ],
    }


@scenario(API, good=True)
def of_a_group_without_members(on: Side, version: int) -> None:
    name = on.name("g")
    topic = three(on)
    commit(on, name, offsets(topic, (0, 5), (1, 6), (2, 7)))
    broker = coordinator(on, name)
    on.ask(broker, API, version, deleting(name, (topic.name, [0, 2])))
    on.ask(broker, API, version, deleting(name, (topic.name, [0])))
    asked = {"group_id": name, "topics": None, "require_stable": False}
    on.ask(broker, ApiKey.OFFSET_FETCH, FETCH_VERSION, asked)
    on.ask(broker, API, version, deleting(name))


@scenario(API, good=True)
def of_topics_that_members_do_not_read(on: Side, version: int) -> None:
    group = stable(on)
    on.ask(group.broker, API, version, deleting(group.name, (three(on).name, [0])))


@scenario(API, good=False)
def of_what_is_not_there(on: Side, version: int) -> None:
    name = on.name("g")
    commit(on, name, offsets(three(on), (0, 5)))
    broker = coordinator(on, name)
    asked = deleting(name, (on.name("missing"), [0]), (three(on).name, [0, 7, -1]))
    on.ask(broker, API, version, asked)


@scenario(API, good=False)
def of_a_group_that_is_not_there(on: Side, version: int) -> None:
    name = on.name("g")
    broker = coordinator(on, name)
    on.ask(broker, API, version, deleting(name, (three(on).name, [0])))
    on.ask(broker, API, version, deleting("", (three(on).name, [0])))


@scenario(API, good=False)
def at_a_broker_that_does_not_coordinate(on: Side, version: int) -> None:
    name = on.name("g")
    broker = coordinator(on, name)
    for other in {0, 1, 2} - {broker}:
        on.ask(other, API, version, deleting(name, (three(on).name, [0])))


@scenario(API, good=False)
def a_request_of_another_length(on: Side, version: int) -> None:
    name = on.name("g")
    broker = coordinator(on, name)
    body = encode_request(API, version, deleting(name, (three(on).name, [0])))
    on.ask(broker, API, version, body[:-1])
    on.ask(broker, API, version, b"")
    on.ask(broker, API, version, body + b"more")


@scenario(API, good=False, versions=just_outside(API))
def a_version_that_does_not_exist(on: Side, version: int) -> None:
    on.ask(0, API, version, encode_request(API, 0, deleting("g")))
