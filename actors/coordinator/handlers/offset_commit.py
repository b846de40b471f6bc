"""OffsetCommit (key 8, v2-10).

Behaviour: answered when the offsets are committed. A topic that does not exist, or metadata
that is too long, fails for itself; what is wrong with the member fails all.
Versions: v5 lost the retention time; v6 brings the leader epoch (KIP-320), v7 static
members, v9 members of the consumer protocol (KIP-848), v10 topic ids.
"""

from __future__ import annotations

from typing import Any

from mobula.actors.coordinator.group.group_machine import Commit, Committer, GroupMachine
from mobula.actors.coordinator.group.outcomes import GroupOutcome
from mobula.actors.coordinator.group.records import NO_EXPIRY, OffsetValue
from mobula.actors.coordinator.request import CoordinatorRequest
from mobula.actors.coordinator.services import CoordinatorServices
from mobula.protocol.api import Api, ApiKey
from mobula.protocol.errors import ErrorCode, KafkaError

API = Api(ApiKey.OFFSET_COMMIT, range(2, 11))

_FIRST_WITH_TOPIC_IDS = 10


def handle(request: CoordinatorRequest, services: CoordinatorServices) -> None:
    body = request.body
    now_ms = services.now_ms()
    retention = getattr(body, "retention_time", None)
    retention_ms = -1 if retention is None else int(retention.total_seconds() * 1000)
    expire_ms = NO_EXPIRY if retention_ms < 0 else now_ms + retention_ms
    commits: list[Commit] = []
    topics: list[dict[str, Any]] = []
    for topic in filter(_names_partitions, body.topics):
        name, partitions, answer, code = _topic(services, topic, request.version)
        answers = []
        for part in topic.partitions:
            metadata = part.committed_metadata or ""
            index = part.partition_index
            error = code
            if error is ErrorCode.none and index not in partitions:
                error = ErrorCode.unknown_topic_or_partition
            if error is ErrorCode.none and services.metadata_too_long(metadata):
                error = ErrorCode.offset_metadata_too_large
            if error is ErrorCode.none:
                epoch = getattr(part, "committed_leader_epoch", -1)
                value = OffsetValue(part.committed_offset, epoch, metadata, now_ms, expire_ms)
                commits.append(Commit(topic=name, partition=index, value=value))
            answers.append({"partition_index": index, "error_code": error})
        topics.append({**answer, "partitions": answers})
    answer = {"topics": topics}
    by = Committer(
        body.member_id,
        getattr(body, "group_instance_id", None),
        getattr(body, "generation_id_or_member_epoch", -1),
    )

    def decide(machine: GroupMachine) -> GroupOutcome:
        return machine.commit(body.group_id, by, request.version, commits, answer)

    def failed(error: KafkaError) -> None:
        for topic in topics:
            for part in topic["partitions"]:
                if part["error_code"] is ErrorCode.none:
                    part["error_code"] = error.code
        request.respond(answer)

    if not commits:
        request.respond(answer)
    else:
        services.groups.decide(body.group_id, decide, request.respond, failed, writes=True)


def _names_partitions(topic: Any) -> bool:
    return bool(topic.partitions)


def _topic(
    services: CoordinatorServices, topic: Any, version: int
) -> tuple[str, Any, dict[str, Any], ErrorCode]:
    """Its name, its partitions, how the answer names it, and why it is none."""
    image = services.image
    if version >= _FIRST_WITH_TOPIC_IDS:
        topic_id = b"" if topic.topic_id is None else topic.topic_id.bytes
        found = image.topics.get(topic_id)
        named = {"topic_id": topic.topic_id}
        missing = ErrorCode.unknown_topic_id
    else:
        found = image.topic(topic.name)
        named = {"name": topic.name}
        missing = ErrorCode.unknown_topic_or_partition
    if found is None:
        return "", (), named, missing
    return found.name, found.partitions, named, ErrorCode.none
