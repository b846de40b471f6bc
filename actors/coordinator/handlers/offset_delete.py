"""OffsetDelete (key 47, v0).

Behaviour: committed offsets go, but not those of topics that members are subscribed to.
"""

from __future__ import annotations

from typing import Any

from mobula.actors.coordinator.group.group_machine import GroupMachine
from mobula.actors.coordinator.group.outcomes import GroupOutcome
from mobula.actors.coordinator.request import CoordinatorRequest
from mobula.actors.coordinator.services import CoordinatorServices
from mobula.protocol.api import Api, ApiKey
from mobula.protocol.errors import ErrorCode, KafkaError

API = Api(ApiKey.OFFSET_DELETE, range(1))


def handle(request: CoordinatorRequest, services: CoordinatorServices) -> None:
    body = request.body
    image = services.image
    topics: list[dict[str, Any]] = []
    places: list[tuple[str, int, dict[str, Any]]] = []
    for topic in body.topics:
        found = image.topic(topic.name)
        parts = []
        for part in topic.partitions:
            index = part.partition_index
            answer: dict[str, Any] = {"partition_index": index, "error_code": ErrorCode.none}
            if found is None or index not in found.partitions:
                answer["error_code"] = ErrorCode.unknown_topic_or_partition
            else:
                places.append((topic.name, index, answer))
            parts.append(answer)
        topics.append({"name": topic.name, "partitions": parts})

    def decide(machine: GroupMachine) -> GroupOutcome:
        outcome, refused = machine.delete_offsets(
            body.group_id, [(topic, index) for topic, index, _ in places]
        )
        for topic, _, answer in places:
            if topic in refused:
                answer["error_code"] = ErrorCode.group_subscribed_to_topic
        return outcome._replace(answer={"error_code": ErrorCode.none, "topics": topics})

    def failed(error: KafkaError) -> None:
        request.respond({"error_code": error.code, "topics": ()})

    if not body.group_id:
        failed(KafkaError(ErrorCode.invalid_group_id))
    else:
        services.groups.decide(body.group_id, decide, request.respond, failed, writes=True)
