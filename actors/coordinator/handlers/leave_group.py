"""LeaveGroup (key 13, v0-5).

Behaviour: the members are put out at once, and the others rebalance. A group that is not
known has none of them.
Versions: v3 lets several members leave, by member or instance id (KIP-345); v5 brings a
reason (KIP-800).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mobula.actors.coordinator.group.group_machine import GroupMachine
from mobula.actors.coordinator.group.outcomes import GroupOutcome
from mobula.actors.coordinator.outcome import Outcome
from mobula.actors.coordinator.request import CoordinatorRequest
from mobula.actors.coordinator.services import CoordinatorServices
from mobula.protocol.api import Api, ApiKey
from mobula.protocol.errors import ErrorCode, KafkaError

API = Api(ApiKey.LEAVE_GROUP, range(6))

_FIRST_WITH_MEMBERS = 3


def handle(request: CoordinatorRequest, services: CoordinatorServices) -> None:
    body = request.body
    if request.version >= _FIRST_WITH_MEMBERS:
        members = [(member.member_id, member.group_instance_id) for member in body.members]
    else:
        members = [(body.member_id, None)]

    def decide(machine: GroupMachine) -> GroupOutcome:
        group = machine.groups.get(body.group_id)
        if group is None:
            return Outcome((), _unknown(members))
        return machine.classic.leave(group, members)

    def answered(answer: Mapping[str, Any]) -> None:
        if request.version < _FIRST_WITH_MEMBERS:
            answer = {"error_code": answer["members"][0]["error_code"]}
        request.respond(answer)

    def failed(error: KafkaError) -> None:
        request.respond({"error_code": error.code})

    if not body.group_id:
        failed(KafkaError(ErrorCode.invalid_group_id))
    else:
        services.groups.decide(body.group_id, decide, answered, failed)


def _unknown(members: list[tuple[str, str | None]]) -> dict[str, Any]:
    return {
        "error_code": ErrorCode.none,
        "members": [
            {
                "member_id": member_id,
                "group_instance_id": instance_id,
                "error_code": ErrorCode.unknown_member_id,
            }
            for member_id, instance_id in members
        ],
    }
