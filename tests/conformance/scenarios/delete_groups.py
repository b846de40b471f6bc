"""DeleteGroups: of groups without members, and of those that cannot go."""

from __future__ import annotations

from mobula.protocol.api import ApiKey
from tests.conformance.groups import commit, coordinator, empty, joined, offsets, stable
from tests.conformance.scenario import just_outside, scenario
from tests.conformance.side import Side
from tests.conformance.wire import Tree, encode_request

API = ApiKey.DELETE_GROUPS
FETCH_VERSION = 7


def deleting(*groups: str) -> Tree:
    return {"groups_names": list(groups)}


@scenario(API, good=True)
def without_members(on: Side, version: int) -> None:
    group = empty(on)
    commit(on, group.name, offsets(on.shared_topic("one"), (0, 1)))
    for _ in range(2):
        on.ask(group.broker, API, version, deleting(group.name))
    asked = {"group_id": group.name, "topics": None, "require_stable": False}
    on.ask(group.broker, ApiKey.OFFSET_FETCH, FETCH_VERSION, asked)
    on.ask(group.broker, ApiKey.DESCRIBE_GROUPS, 5, {"groups": [group.name]})


@scenario(API, good=True)
def with_offsets_alone(on: Side, version: int) -> None:
    name = on.name("g")
    commit(on, name, offsets(on.shared_topic("one"), (0, 1)))
    on.ask(coordinator(on, name), API, version, deleting(name))


@scenario(API, good=True)
def nothing(on: Side, version: int) -> None:
    coordinator(on, on.name("g"))
    on.ask(0, API, version, deleting())


@scenario(API, good=False)
def with_members(on: Side, version: int) -> None:
    for group in (stable(on, "a"), joined(on, "b")):
        on.ask(group.broker, API, version, deleting(group.name))


@scenario(API, good=False)
def what_is_not_there(on: Side, version: int) -> None:
    name = on.name("g")
    broker = coordinator(on, name)
    on.ask(broker, API, version, deleting(name))
    on.ask(broker, API, version, deleting(""))
    on.ask(broker, API, version, deleting(name, name))


@scenario(API, good=False)
def at_a_broker_that_does_not_coordinate(on: Side, version: int) -> None:
    group = empty(on)
    for other in {0, 1, 2} - {group.broker}:
        on.ask(other, API, version, deleting(group.name))


@scenario(API, good=False)
def a_request_of_another_length(on: Side, version: int) -> None:
    name = on.name("g")
    broker = coordinator(on, name)
    body = encode_request(API, version, deleting(name))
    on.ask(broker, API, version, body[:-1])
    on.ask(broker, API, version, b"")
    on.ask(broker, API, version, body + b"more")


@scenario(API, good=False, versions=just_outside(API))
def a_version_that_does_not_exist(on: Side, version: int) -> None:
    on.ask(0, API, version, encode_request(API, min(version, 2), deleting("g")))
