"""Heartbeat (key 12, v0-4).

Behaviour: says that the member lives, and hears whether its group rebalances.
Versions: v3 brings static members (KIP-345).
"""

from __future__ import annotations

from mobula.actors.coordinator.group.group_machine import GroupMachine
from mobula.actors.coordinator.group.outcomes import GroupOutcome
from mobula.actors.coordinator.request import CoordinatorRequest
from mobula.actors.coordinator.services import CoordinatorServices
from mobula.protocol.api import Api, ApiKey
from mobula.protocol.errors import ErrorCode, KafkaError

API = Api(ApiKey.HEARTBEAT, range(5))


def handle(request: CoordinatorRequest, services: CoordinatorServices) -> None:
    body = request.body

    def decide(machine: GroupMachine) -> GroupOutcome:
        return machine.classic.heartbeat(
            machine.joined_group(body.group_id),
            body.member_id,
            getattr(body, "group_instance_id", None),
            body.generation_id,
        )

    def failed(error: KafkaError) -> None:
        if error.code is ErrorCode.coordinator_load_in_progress:
            # Kafka says that all is well: the member need not look for another coordinator.
            error = KafkaError(ErrorCode.none)
        request.respond({"error_code": error.code})

    if not body.group_id:
        failed(KafkaError(ErrorCode.invalid_group_id))
    else:
        services.groups.decide(body.group_id, decide, request.respond, failed)
