"""DescribeGroups: in each state, and of what is not there."""

from __future__ import annotations

from typing import Any

from mobula.protocol.api import ApiKey
from tests.conformance.groups import coordinator, empty, joined, stable
from tests.conformance.scenario import just_outside, scenario
from tests.conformance.side import Side
from tests.conformance.wire import Tree, encode_request

API = ApiKey.DESCRIBE_GROUPS
WITH_OPERATIONS = range(3, 7)
WITH_INSTANCES = range(4, 7)


def describing(*groups: str, **more: Any) -> Tree:
    return {"groups": list(groups), "include_authorized_operations": False, **more}


@scenario(API, good=True)
def a_group_in_each_state(on: Side, version: int) -> None:
    for group in (stable(on, "stable"), joined(on, "joined"), empty(on, "empty")):
        on.ask(group.broker, API, version, describing(group.name))


@scenario(API, good=True, versions=WITH_INSTANCES)
def a_static_member(on: Side, version: int) -> None:
    group = stable(on, "g", "one")
    on.ask(group.broker, API, version, describing(group.name))


@scenario(API, good=True, versions=WITH_OPERATIONS)
def what_one_may_do(on: Side, version: int) -> None:
    group = stable(on)
    asked = describing(group.name, include_authorized_operations=True)
    on.ask(group.broker, API, version, asked)


@scenario(API, good=True)
def nothing(on: Side, version: int) -> None:
    coordinator(on, on.name("g"))
    on.ask(0, API, version, describing())


@scenario(API, good=False)
def what_is_not_there(on: Side, version: int) -> None:
    name = on.name("g")
    broker = coordinator(on, name)
    for operations in (False, True):
        asked = describing(name, include_authorized_operations=operations)
        on.ask(broker, API, version, asked)
    on.ask(0, API, version, describing(""))


@scenario(API, good=False)
def at_a_broker_that_does_not_coordinate(on: Side, version: int) -> None:
    group = stable(on)
    for other in {0, 1, 2} - {group.broker}:
        on.ask(other, API, version, describing(group.name, include_authorized_operations=True))


@scenario(API, good=False)
def a_request_of_another_length(on: Side, version: int) -> None:
    name = on.name("g")
    broker = coordinator(on, name)
    body = encode_request(API, version, describing(name))
    on.ask(broker, API, version, body[:-1])
    on.ask(broker, API, version, b"")
    on.ask(broker, API, version, body + b"more")


@scenario(API, good=False, versions=just_outside(API))
def a_version_that_does_not_exist(on: Side, version: int) -> None:
    on.ask(0, API, version, encode_request(API, min(version, 6), describing("g")))
