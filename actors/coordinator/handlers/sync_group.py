"""SyncGroup (key 14, v0-5).

Behaviour: answered when the leader's assignment is committed; the leader's own brings it.
Versions: v3 brings static members (KIP-345), v5 the protocol's type and name (KIP-559).
"""

from __future__ import annotations

from mobula.actors.coordinator.group.classic_protocol import Sync, failed_sync
from mobula.actors.coordinator.group.group_machine import GroupMachine
from mobula.actors.coordinator.group.outcomes import GroupOutcome
from mobula.actors.coordinator.request import CoordinatorRequest
from mobula.actors.coordinator.services import CoordinatorServices
from mobula.protocol.api import Api, ApiKey
from mobula.protocol.errors import ErrorCode, KafkaError

API = Api(ApiKey.SYNC_GROUP, range(6))

_FIRST_WITH_PROTOCOL = 5


def handle(request: CoordinatorRequest, services: CoordinatorServices) -> None:
    body = request.body
    asked = Sync(
        member_id=body.member_id,
        instance_id=getattr(body, "group_instance_id", None),
        generation=body.generation_id,
        protocol_type=getattr(body, "protocol_type", None),
        protocol=getattr(body, "protocol_name", None),
        assignments={each.member_id: each.assignment for each in body.assignments},
    )

    def failed(error: KafkaError) -> None:
        request.respond(failed_sync(error.code))

    def decide(machine: GroupMachine) -> GroupOutcome:
        group = machine.joined_group(body.group_id)
        return machine.classic.sync(group, asked, request.respond)

    if not body.group_id:
        failed(KafkaError(ErrorCode.invalid_group_id))
    elif request.version >= _FIRST_WITH_PROTOCOL and None in (asked.protocol_type, asked.protocol):
        failed(KafkaError(ErrorCode.inconsistent_group_protocol))
    else:
        services.groups.decide(body.group_id, decide, request.respond, failed)
