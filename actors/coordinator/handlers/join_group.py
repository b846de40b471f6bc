"""JoinGroup (key 11, v0-9).

Behaviour: answered when the rebalance is over that it begins or takes part in. A dynamic
member's first join is refused with an id to come back with (MEMBER_ID_REQUIRED).
Versions: v1 brings the rebalance timeout, v4 MEMBER_ID_REQUIRED (KIP-394), v5 static
members (KIP-345), v7 the protocol type (KIP-559), v8 a reason (KIP-800), v9 a leader that
need not assign (KIP-814).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from mobula.actors.coordinator.group.classic_protocol import Client, Join, failed_join
from mobula.actors.coordinator.group.group_machine import GroupMachine
from mobula.actors.coordinator.group.outcomes import GroupOutcome
from mobula.actors.coordinator.request import CoordinatorRequest
from mobula.actors.coordinator.services import CoordinatorServices
from mobula.protocol.api import Api, ApiKey
from mobula.protocol.errors import ErrorCode, KafkaError

API = Api(ApiKey.JOIN_GROUP, range(10))

_FIRST_WITH_MEMBER_ID_REQUIRED = 4
_FIRST_WITH_SKIPPED_ASSIGNMENT = 9
_FIRST_WITH_NULL_PROTOCOL = 7


def handle(request: CoordinatorRequest, services: CoordinatorServices) -> None:
    body = request.body
    session_ms = _milliseconds(body.session_timeout)
    asked = Join(
        member_id=body.member_id,
        instance_id=getattr(body, "group_instance_id", None),
        protocol_type=body.protocol_type,
        protocols=tuple((protocol.name, protocol.metadata) for protocol in body.protocols),
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=(
            _milliseconds(body.rebalance_timeout) if request.version else session_ms
        ),
    )
    client = Client(
        client_id=request.client_id,
        host=request.client_host,
        needs_member_id=request.version >= _FIRST_WITH_MEMBER_ID_REQUIRED,
        skips_assignment=request.version >= _FIRST_WITH_SKIPPED_ASSIGNMENT,
    )

    def answered(answer: Mapping[str, Any]) -> None:
        if answer["protocol_name"] is None and request.version < _FIRST_WITH_NULL_PROTOCOL:
            answer = {**answer, "protocol_name": ""}
        request.respond(answer)

    def failed(error: KafkaError) -> None:
        answered(failed_join(error.code, body.member_id))

    def decide(machine: GroupMachine) -> GroupOutcome:
        group, is_new = machine.group_to_join(body.group_id, asked.member_id)
        return machine.classic.join(group, client, asked, answered, is_new=is_new)

    if not body.group_id:
        failed(KafkaError(ErrorCode.invalid_group_id))
    elif not services.allows_session(session_ms):
        failed(KafkaError(ErrorCode.invalid_session_timeout))
    else:
        services.groups.decide(body.group_id, decide, answered, failed)


def _milliseconds(duration: timedelta) -> int:
    return int(duration.total_seconds() * 1000)
