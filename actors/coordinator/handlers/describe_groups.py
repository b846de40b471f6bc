"""DescribeGroups (key 15, v0-6).

Behaviour: members' subscriptions and assignments are told while the group is stable. A group
that is not known is Dead, not an error.
Versions: v3 brings authorized operations (KIP-430), v4 instance ids (KIP-345), v6 says
GROUP_ID_NOT_FOUND with a message (KIP-1043).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from mobula.actors.authorized_operations import ALL_ON_GROUP, NOT_ASKED
from mobula.actors.coordinator.group.classic_group import ClassicGroup, State
from mobula.actors.coordinator.group.group_machine import GroupMachine
from mobula.actors.coordinator.group.outcomes import GroupOutcome
from mobula.actors.coordinator.outcome import Outcome
from mobula.actors.coordinator.request import CoordinatorRequest, Gathered
from mobula.actors.coordinator.services import CoordinatorServices
from mobula.protocol.api import Api, ApiKey
from mobula.protocol.errors import ErrorCode, KafkaError

API = Api(ApiKey.DESCRIBE_GROUPS, range(7))

_FIRST_WITH_NOT_FOUND = 6


def handle(request: CoordinatorRequest, services: CoordinatorServices) -> None:
    asked = request.body
    with_operations = getattr(asked, "include_authorized_operations", False)
    operations = ALL_ON_GROUP if with_operations else NOT_ASKED

    def done(groups: list[Mapping[str, Any]]) -> None:
        request.respond({"groups": groups})

    gathered = Gathered(len(asked.groups), done)
    for index, group_id in enumerate(asked.groups):
        put = partial(_put, gathered, index, group_id, operations)
        services.groups.decide(
            group_id,
            partial(_describe, group_id, request.version),
            put,
            lambda error, put=put: put({"error_code": error.code}),  # type: ignore[misc]
        )


def _put(
    gathered: Gathered, index: int, group_id: str, operations: int, found: Mapping[str, Any]
) -> None:
    known = found.get("error_code", ErrorCode.none) is ErrorCode.none
    gathered.put(
        index,
        {
            "group_id": group_id,
            "group_state": "",
            "protocol_type": "",
            "protocol_data": "",
            "members": (),
            **found,
            "authorized_operations": operations if known else NOT_ASKED,
        },
    )


def _describe(group_id: str, version: int, machine: GroupMachine) -> GroupOutcome:
    try:
        group = machine.group(group_id)
    except KafkaError as error:
        dead = {"group_state": State.DEAD.value}
        if version >= _FIRST_WITH_NOT_FOUND:
            return Outcome((), {**dead, "error_code": error.code, "error_message": error.detail})
        return Outcome((), dead)
    return Outcome((), _described(group))


def _described(group: ClassicGroup) -> Mapping[str, Any]:
    stable = group.state is State.STABLE
    protocol = group.protocol if stable else None
    return {
        "group_state": group.state.value,
        "protocol_type": group.protocol_type or "",
        "protocol_data": protocol or "",
        "members": [
            {
                "member_id": member.member_id,
                "group_instance_id": member.instance_id,
                "client_id": member.client_id,
                "client_host": member.client_host,
                "member_metadata": b"" if protocol is None else member.metadata_of(protocol),
                "member_assignment": member.assignment if stable else b"",
            }
            for member in group.members.values()
        ],
    }
