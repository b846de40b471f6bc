"""Heartbeat: of members that are in the group, and of those that are not."""

from __future__ import annotations

from typing import Any

from mobula.protocol.api import ApiKey
from tests.conformance.groups import coordinator, empty, joined, stable
from tests.conformance.scenario import just_outside, scenario
from tests.conformance.side import Side
from tests.conformance.wire import Tree, encode_request

API = ApiKey.HEARTBEAT
WITH_INSTANCES = range(3, 5)


def beating(group: str, member_id: str, generation: int = 1, **changes: Any) -> Tree:
    return {
        "group_id": group,
        "generation_id": generation,
        "member_id": member_id,
        "group_instance_id": None,
        **changes,
    }


@scenario(API, good=True)
def of_a_member(on: Side, version: int) -> None:
    for group in (stable(on, "a"), joined(on, "b")):
        for _ in range(2):
            on.ask(group.broker, API, version, beating(group.name, group.member_id))


@scenario(API, good=True, versions=WITH_INSTANCES)
def of_a_static_member(on: Side, version: int) -> None:
    group = stable(on, "g", "one")
    asked = beating(group.name, group.member_id, group_instance_id="one")
    on.ask(group.broker, API, version, asked)


@scenario(API, good=False)
def of_nobody(on: Side, version: int) -> None:
    group = stable(on)
    for member in ("nobody", ""):
        on.ask(group.broker, API, version, beating(group.name, member))
    left = empty(on, "left")
    on.ask(left.broker, API, version, beating(left.name, left.member_id))
    name = on.name("h")
    on.ask(coordinator(on, name), API, version, beating(name, "nobody"))
    on.ask(0, API, version, beating("", "nobody"))


@scenario(API, good=False)
def of_another_generation(on: Side, version: int) -> None:
    group = stable(on)
    for generation in (0, 2, -1):
        on.ask(group.broker, API, version, beating(group.name, group.member_id, generation))


@scenario(API, good=False)
def at_a_broker_that_does_not_coordinate(on: Side, version: int) -> None:
    group = stable(on)
    for other in {0, 1, 2} - {group.broker}:
        on.ask(other, API, version, beating(group.name, group.member_id))


@scenario(API, good=False, versions=WITH_INSTANCES)
def of_another_instance(on: Side, version: int) -> None:
    group = stable(on, "g", "one")
    for member, instance in (("nobody", "one"), (group.member_id, "two")):
        asked = beating(group.name, member, group_instance_id=instance)
        on.ask(group.broker, API, version, asked)


@scenario(API, good=False)
def a_request_of_another_length(on: Side, version: int) -> None:
    group = stable(on)
    body = encode_request(API, version, beating(group.name, "nobody"))
    on.ask(group.broker, API, version, body[:-1])
    on.ask(group.broker, API, version, b"")
    on.ask(group.broker, API, version, body + b"more")


@scenario(API, good=False, versions=just_outside(API))
def a_version_that_does_not_exist(on: Side, version: int) -> None:
    on.ask(0, API, version, encode_request(API, min(version, 4), beating("g", "m")))
