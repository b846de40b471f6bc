"""ListGroups (key 16, v0-5).

Behaviour: the groups that this broker coordinates; clients ask every broker.
Versions: v4 filters by state and tells it (KIP-518), v5 by type (KIP-848).
"""

from __future__ import annotations

from mobula.actors.coordinator.request import CoordinatorRequest
from mobula.actors.coordinator.services import CoordinatorServices
from mobula.protocol.api import Api, ApiKey
from mobula.protocol.errors import ErrorCode

API = Api(ApiKey.LIST_GROUPS, range(6))

_CLASSIC = "classic"


def handle(request: CoordinatorRequest, services: CoordinatorServices) -> None:
    asked = request.body
    states = {state.lower() for state in getattr(asked, "states_filter", ())}
    types = {kind.lower() for kind in getattr(asked, "types_filter", ())}
    groups = [
        {
            "group_id": group.group_id,
            "protocol_type": group.protocol_type or "",
            "group_state": group.state.value,
            "group_type": _CLASSIC,
        }
        for machine in services.groups.machines()
        for group in machine.groups.values()
        if (not states or group.state.value.lower() in states) and (not types or _CLASSIC in types)
    ]
    request.respond({"error_code": ErrorCode.none, "groups": groups})
