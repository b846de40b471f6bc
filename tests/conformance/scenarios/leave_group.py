"""LeaveGroup: one member or several, by member and by instance id, and refused."""

from __future__ import annotations

from mobula.protocol.api import ApiKey
from tests.conformance.groups import coordinator, joined, joining, stable
from tests.conformance.scenario import just_outside, scenario
from tests.conformance.side import Side
from tests.conformance.wire import Tree, encode_request

API = ApiKey.LEAVE_GROUP
SEVERAL = range(3, 6)


def leaving(group: str, *members: tuple[str, str | None]) -> Tree:
    return {
        "group_id": group,
        "member_id": members[0][0] if members else "",
        "members": [
            {"member_id": member_id, "group_instance_id": instance}
            for member_id, instance in members
        ],
    }


@scenario(API, good=True)
def a_member(on: Side, version: int) -> None:
    for group in (stable(on, "a"), joined(on, "b")):
        for _ in range(2):
            on.ask(group.broker, API, version, leaving(group.name, (group.member_id, None)))


@scenario(API, good=True)
def who_was_only_given_an_id(on: Side, version: int) -> None:
    name = on.name("g")
    broker = coordinator(on, name)
    pending = on.do(broker, ApiKey.JOIN_GROUP, 5, joining(name))["member_id"]
    for _ in range(2):
        on.ask(broker, API, version, leaving(name, (pending, None)))


@scenario(API, good=True, versions=SEVERAL)
def an_instance(on: Side, version: int) -> None:
    group = stable(on, "g", "one")
    on.ask(group.broker, API, version, leaving(group.name, ("", "one")))


@scenario(API, good=True, versions=SEVERAL)
def nobody_at_all(on: Side, version: int) -> None:
    group = stable(on)
    on.ask(group.broker, API, version, leaving(group.name))


@scenario(API, good=False)
def who_is_not_in_it(on: Side, version: int) -> None:
    group = stable(on)
    on.ask(group.broker, API, version, leaving(group.name, ("nobody", None)))
    name = on.name("h")
    on.ask(coordinator(on, name), API, version, leaving(name, ("nobody", None)))
    on.ask(0, API, version, leaving("", ("nobody", None)))


@scenario(API, good=False)
def at_a_broker_that_does_not_coordinate(on: Side, version: int) -> None:
    group = stable(on)
    for other in {0, 1, 2} - {group.broker}:
        on.ask(other, API, version, leaving(group.name, (group.member_id, None)))


@scenario(API, good=False, versions=SEVERAL)
def good_ones_and_bad_ones(on: Side, version: int) -> None:
    group = stable(on, "g", "one")
    members = [("nobody", None), ("", None), ("", "two"), ("nobody", "one"), ("", "one")]
    on.ask(group.broker, API, version, leaving(group.name, *members))


@scenario(API, good=False)
def a_request_of_another_length(on: Side, version: int) -> None:
    group = stable(on)
    body = encode_request(API, version, leaving(group.name, ("nobody", None)))
    on.ask(group.broker, API, version, body[:-1])
    on.ask(group.broker, API, version, b"")
    on.ask(group.broker, API, version, body + b"more")


@scenario(API, good=False, versions=just_outside(API))
def a_version_that_does_not_exist(on: Side, version: int) -> None:
    on.ask(0, API, version, encode_request(API, min(version, 5), leaving("g", ("m", None))))
