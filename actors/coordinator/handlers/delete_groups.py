"""DeleteGroups (key 42, v0-2).

Behaviour: each group for itself; only one without members can go, and its offsets with it.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from mobula.actors.coordinator.group.group_machine import GroupMachine
from mobula.actors.coordinator.group.outcomes import GroupOutcome
from mobula.actors.coordinator.request import CoordinatorRequest, Gathered
from mobula.actors.coordinator.services import CoordinatorServices
from mobula.protocol.api import Api, ApiKey
from mobula.protocol.errors import ErrorCode, KafkaError

API = Api(ApiKey.DELETE_GROUPS, range(3))


def handle(request: CoordinatorRequest, services: CoordinatorServices) -> None:
    names = list(dict.fromkeys(request.body.groups_names))

    def done(results: list[dict[str, Any]]) -> None:
        request.respond({"results": results})

    gathered = Gathered(len(names), done)
    for index, group_id in enumerate(names):
        put = partial(gathered.put, index)
        services.groups.decide(
            group_id,
            partial(_delete, group_id),
            put,
            partial(_failed, gathered, index, group_id),
            writes=True,
        )


def _delete(group_id: str, machine: GroupMachine) -> GroupOutcome:
    return machine.delete_group(group_id)


def _failed(gathered: Gathered, index: int, group_id: str, error: KafkaError) -> None:
    gathered.put(index, _result(group_id, error.code))


def _result(group_id: str, code: ErrorCode) -> dict[str, Any]:
    return {"group_id": group_id, "error_code": code}
