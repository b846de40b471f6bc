"""SyncGroup: by the leader, again, and refused."""

from __future__ import annotations

from mobula.protocol.api import ApiKey
from tests.conformance.groups import coordinator, joined, stable, syncing
from tests.conformance.scenario import just_outside, scenario
from tests.conformance.side import Side
from tests.conformance.wire import encode_request

API = ApiKey.SYNC_GROUP
WITH_INSTANCES = range(3, 6)
WITH_PROTOCOL = range(5, 6)


@scenario(API, good=True)
def by_the_leader(on: Side, version: int) -> None:
    group = joined(on)
    for _ in range(2):
        on.ask(group.broker, API, version, syncing(group.name, group.member_id))


@scenario(API, good=True)
def without_an_assignment(on: Side, version: int) -> None:
    group = joined(on)
    on.ask(group.broker, API, version, syncing(group.name, group.member_id, assignments=[]))


@scenario(API, good=True, versions=WITH_INSTANCES)
def by_a_static_member(on: Side, version: int) -> None:
    group = joined(on, "g", "one")
    asked = syncing(group.name, group.member_id, group_instance_id="one")
    on.ask(group.broker, API, version, asked)


@scenario(API, good=False)
def by_nobody(on: Side, version: int) -> None:
    group = joined(on)
    on.ask(group.broker, API, version, syncing(group.name, "nobody"))
    on.ask(group.broker, API, version, syncing(group.name, ""))
    name = on.name("h")
    on.ask(coordinator(on, name), API, version, syncing(name, "nobody"))
    on.ask(0, API, version, syncing("", "nobody"))


@scenario(API, good=False)
def of_another_generation(on: Side, version: int) -> None:
    for group in (joined(on, "a"), stable(on, "b")):
        for generation in (0, 2, -1):
            on.ask(group.broker, API, version, syncing(group.name, group.member_id, generation))


@scenario(API, good=False)
def at_a_broker_that_does_not_coordinate(on: Side, version: int) -> None:
    group = joined(on)
    for other in {0, 1, 2} - {group.broker}:
        on.ask(other, API, version, syncing(group.name, group.member_id))


@scenario(API, good=False, versions=WITH_INSTANCES)
def by_another_instance(on: Side, version: int) -> None:
    group = joined(on, "g", "one")
    for member, instance in (("nobody", "one"), (group.member_id, "two")):
        asked = syncing(group.name, member, group_instance_id=instance)
        on.ask(group.broker, API, version, asked)


@scenario(API, good=False, versions=WITH_PROTOCOL)
def with_another_protocol(on: Side, version: int) -> None:
    group = joined(on)
    for change in (
        {"protocol_type": "other"},
        {"protocol_name": "other"},
        {"protocol_type": None},
        {"protocol_name": None},
        {"protocol_type": None, "protocol_name": None},
    ):
        on.ask(group.broker, API, version, syncing(group.name, group.member_id, **change))


@scenario(API, good=False)
def a_request_of_another_length(on: Side, version: int) -> None:
    group = joined(on)
    body = encode_request(API, version, syncing(group.name, "nobody"))
    on.ask(group.broker, API, version, body[:-1])
    on.ask(group.broker, API, version, b"")
    on.ask(group.broker, API, version, body + b"more")


@scenario(API, good=False, versions=just_outside(API))
def a_version_that_does_not_exist(on: Side, version: int) -> None:
    on.ask(0, API, version, encode_request(API, min(version, 5), syncing("g", "m")))
