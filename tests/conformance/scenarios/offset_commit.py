"""OffsetCommit: by members and by nobody, and refused as a whole or in part."""

from __future__ import annotations

from uuid import UUID

from mobula.protocol.api import ApiKey
from tests.conformance.groups import committing, coordinator, joined, offsets, stable
from tests.conformance.scenario import just_outside, scenario
from tests.conformance.side import THREE_PARTITIONS, Side, Topic
from tests.conformance.wire import encode_request

API = ApiKey.OFFSET_COMMIT
WITH_INSTANCES = range(7, 11)
BY_NAME = range(2, 10)
BY_ID = range(10, 11)
FETCH_VERSION = 7


def three(on: Side) -> Topic:
    return on.shared_topic("three", THREE_PARTITIONS)


def ask_committed(on: Side, broker: int, group: str) -> None:
    """What is committed now."""
    asked = {"group_id": group, "topics": None, "require_stable": False}
    on.ask(broker, ApiKey.OFFSET_FETCH, FETCH_VERSION, asked)


@scenario(API, good=True)
def by_nobody(on: Side, version: int) -> None:
    name = on.name("g")
    broker = coordinator(on, name)
    for offset in (5, 3, 0, -1, 1 << 60):
        on.ask(broker, API, version, committing(name, offsets(three(on), (0, offset), (2, 7))))
        ask_committed(on, broker, name)


@scenario(API, good=True)
def by_a_member(on: Side, version: int) -> None:
    group = stable(on)
    asked = committing(
        group.name,
        offsets(three(on), (1, 42)),
        member_id=group.member_id,
        generation_id_or_member_epoch=1,
    )
    on.ask(group.broker, API, version, asked)
    ask_committed(on, group.broker, group.name)


@scenario(API, good=True)
def texts_beside_offsets(on: Side, version: int) -> None:
    name = on.name("g")
    broker = coordinator(on, name)
    for text in ("", None, "x" * 4096, "gr\N{LATIN SMALL LETTER U WITH DIAERESIS}n"):
        asked = committing(name, offsets(three(on), (0, 1), metadata=text))
        on.ask(broker, API, version, asked)
        ask_committed(on, broker, name)


@scenario(API, good=True)
def nothing(on: Side, version: int) -> None:
    name = on.name("g")
    broker = coordinator(on, name)
    on.ask(broker, API, version, committing(name))
    on.ask(broker, API, version, committing(name, offsets(three(on))))


@scenario(API, good=True, versions=WITH_INSTANCES)
def by_a_static_member(on: Side, version: int) -> None:
    group = stable(on, "g", "one")
    asked = committing(
        group.name,
        offsets(three(on), (1, 42)),
        member_id=group.member_id,
        group_instance_id="one",
        generation_id_or_member_epoch=1,
    )
    on.ask(group.broker, API, version, asked)


@scenario(API, good=False)
def by_who_is_not_a_member(on: Side, version: int) -> None:
    group = stable(on)
    for member, generation in (("nobody", 1), ("", 1), ("", -1), ("nobody", -1)):
        asked = committing(
            group.name,
            offsets(three(on), (0, 1)),
            member_id=member,
            generation_id_or_member_epoch=generation,
        )
        on.ask(group.broker, API, version, asked)
    ask_committed(on, group.broker, group.name)


@scenario(API, good=False)
def of_another_generation(on: Side, version: int) -> None:
    group = stable(on)
    for generation in (0, 2, -1):
        asked = committing(
            group.name,
            offsets(three(on), (0, 1)),
            member_id=group.member_id,
            generation_id_or_member_epoch=generation,
        )
        on.ask(group.broker, API, version, asked)


@scenario(API, good=False)
def while_the_group_rebalances(on: Side, version: int) -> None:
    group = joined(on)
    asked = committing(
        group.name,
        offsets(three(on), (0, 1)),
        member_id=group.member_id,
        generation_id_or_member_epoch=1,
    )
    on.ask(group.broker, API, version, asked)


@scenario(API, good=False)
def in_a_group_that_is_not_there(on: Side, version: int) -> None:
    name = on.name("g")
    broker = coordinator(on, name)
    asked = committing(
        name, offsets(three(on), (0, 1)), member_id="m", generation_id_or_member_epoch=1
    )
    on.ask(broker, API, version, asked)
    on.ask(broker, API, version, committing("", offsets(three(on), (0, 1))))


@scenario(API, good=False, versions=BY_NAME)
def of_what_is_not_there(on: Side, version: int) -> None:
    name = on.name("g")
    broker = coordinator(on, name)
    missing = Topic(on.name("missing"), UUID(int=5))
    on.ask(broker, API, version, committing(name, offsets(missing, (0, 1))))
    on.ask(broker, API, version, committing(name, offsets(three(on), (3, 1), (-1, 1), (0, 1))))
    both = committing(name, offsets(three(on), (1, 9)), offsets(missing, (0, 1)))
    on.ask(broker, API, version, both)
    ask_committed(on, broker, name)


@scenario(API, good=False, versions=BY_ID)
def of_ids_that_are_not_there(on: Side, version: int) -> None:
    name = on.name("g")
    broker = coordinator(on, name)
    for missing in (Topic("", UUID(int=5)), Topic("", UUID(int=0))):
        on.ask(broker, API, version, committing(name, offsets(missing, (0, 1))))
        both = committing(name, offsets(three(on), (1, 9)), offsets(missing, (0, 1)))
        on.ask(broker, API, version, both)


@scenario(API, good=False)
def a_text_that_is_too_long(on: Side, version: int) -> None:
    name = on.name("g")
    broker = coordinator(on, name)
    asked = committing(name, offsets(three(on), (0, 1), metadata="x" * 4097))
    on.ask(broker, API, version, asked)
    ask_committed(on, broker, name)


@scenario(API, good=False)
def at_a_broker_that_does_not_coordinate(on: Side, version: int) -> None:
    name = on.name("g")
    broker = coordinator(on, name)
    for other in {0, 1, 2} - {broker}:
        on.ask(other, API, version, committing(name, offsets(three(on), (0, 1))))


@scenario(API, good=False)
def a_request_of_another_length(on: Side, version: int) -> None:
    name = on.name("g")
    broker = coordinator(on, name)
    body = encode_request(API, version, committing(name, offsets(three(on), (0, 1))))
    on.ask(broker, API, version, body[:-1])
    on.ask(broker, API, version, b"")
    on.ask(broker, API, version, body + b"more")


@scenario(API, good=False, versions=just_outside(API))
def a_version_that_does_not_exist(on: Side, version: int) -> None:
    on.ask(0, API, version, encode_request(API, min(max(version, 2), 10), committing("g")))
