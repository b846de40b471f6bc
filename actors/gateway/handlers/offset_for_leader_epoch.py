"""OffsetForLeaderEpoch (key 23, v2-4).

Behaviour: where an epoch ends in the log of a partition that this broker leads, which is
how a client finds out that records it has read were truncated. The replica actor knows; an
epoch it never saw is -1, -1.
Versions: v3 says who asks; v4 is flexible.
"""

from __future__ import annotations

from typing import Any

from mobula.actors.gateway.ask_replicas import ask_replicas
from mobula.actors.gateway.leadership import leadership_code
from mobula.actors.gateway.request import Request
from mobula.actors.gateway.services import Services
from mobula.actors.replica.messages import (
    EPOCH_END_OFFSETS,
    EpochEndOffsets,
    PartitionEpoch,
    PartitionEpochEnd,
)
from mobula.protocol.api import Api, ApiKey
from mobula.protocol.errors import ErrorCode
from mobula.protocol.messages import build_response, decode_request, encode

API = Api(ApiKey.OFFSET_FOR_LEADER_EPOCH, range(2, 5))


def handle(request: Request, services: Services) -> None:
    version = request.header.api_version
    asked = decode_request(API.key, version, request.body)
    parts = [(topic.topic, part) for topic in asked.topics for part in topic.partitions]
    answers = [_check(services, name, part) for name, part in parts]
    waiting = {i: part for i, part in enumerate(answers) if isinstance(part, PartitionEpoch)}

    def done(found: list[PartitionEpochEnd]) -> None:
        for index, end in zip(waiting, found, strict=True):
            answers[index] = end
        ends = iter(answers)
        tree = {
            "topics": [
                {
                    "topic": topic.topic,
                    "partitions": [
                        _partition(part.partition, next(ends)) for part in topic.partitions
                    ],
                }
                for topic in asked.topics
            ]
        }
        request.respond(encode(build_response(API.key, version, tree)))

    ask_replicas(
        request,
        services,
        EPOCH_END_OFFSETS,
        list(waiting.values()),
        message=EpochEndOffsets,
        failed=PartitionEpochEnd,
        on_done=done,
    )


def _check(services: Services, name: str, part: Any) -> PartitionEpoch | PartitionEpochEnd:
    image = services.image
    topic_id = image.topic_ids.get(name)
    state = None if topic_id is None else image.partition(topic_id, part.partition)
    if topic_id is None or state is None:
        return PartitionEpochEnd(int(ErrorCode.unknown_topic_or_partition))
    epoch = part.current_leader_epoch
    code = leadership_code(state, services.row(topic_id, part.partition), epoch)
    if code:
        return PartitionEpochEnd(code)
    return PartitionEpoch(topic_id, part.partition, epoch, part.leader_epoch)


def _partition(index: int, end: Any) -> dict[str, Any]:
    return {
        "partition": index,
        "error_code": end.error_code,
        "leader_epoch": end.leader_epoch,
        "end_offset": end.end_offset,
    }
