"""ListOffsets (key 2, v1-11).

Behaviour: the offset of a time in each partition that this broker leads. The latest (-1)
and the earliest (-2) offset stand in the partition's row; a time, and the largest one (-3),
are looked up by the replica actor, in the log. A new leader whose high watermark has not
reached the start of its epoch does not know the latest offset yet: OFFSET_NOT_AVAILABLE,
LEADER_NOT_AVAILABLE before v5. A partition that is named twice is answered once, with
INVALID_REQUEST. Nothing is tiered: the earliest local offset (-4) is the
earliest one, the latest tiered (-5) and the earliest pending upload (-6) are -1.
Versions: v2 isolation level; v4 leader epochs; v7 knows -3 (KIP-734), v8 -4 (KIP-405), v9 -5
(KIP-1005), v11 -6 (KIP-1023); v10 has a timeout, for tiered storage alone (KIP-1075).
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from mobula.actors.gateway.ask_replicas import ask_replicas
from mobula.actors.gateway.leadership import leadership_code
from mobula.actors.gateway.request import Request
from mobula.actors.gateway.services import Services
from mobula.actors.replica.messages import (
    OFFSETS_FOR_TIMES,
    OffsetsForTimes,
    PartitionOffset,
    PartitionTime,
)
from mobula.actors.rows import Row
from mobula.protocol.api import Api, ApiKey
from mobula.protocol.errors import ErrorCode
from mobula.protocol.messages import build_response, decode_request, encode

API = Api(ApiKey.LIST_OFFSETS, range(1, 12))

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6

FIRST_VERSION = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
"""Of each special timestamp."""

CONSUMER = -1
DEBUGGING_CONSUMER = -2
READ_COMMITTED = 1
_FIRST_WITH_OFFSET_NOT_AVAILABLE = 5


def handle(request: Request, services: Services) -> None:
    version = request.header.api_version
    asked = decode_request(API.key, version, request.body)
    listing = _Listing(version, asked, services)
    results = {
        (topic.name, part.partition_index): listing.answer(topic.name, part)
        for topic in asked.topics
        for part in topic.partitions
    }
    waiting = {key: part for key, part in results.items() if isinstance(part, PartitionTime)}
    found = {key: part for key, part in results.items() if isinstance(part, PartitionOffset)}

    def done(answers: list[PartitionOffset]) -> None:
        found.update(zip(waiting, answers, strict=True))
        topics: dict[str, list[Any]] = {}
        for name, index in results:
            topics.setdefault(name, []).append(_partition(index, found[name, index]))
        tree = {
            "topics": [
                {"name": name, "partitions": partitions} for name, partitions in topics.items()
            ]
        }
        request.respond(encode(build_response(API.key, version, tree)))

    ask_replicas(
        request,
        services,
        OFFSETS_FOR_TIMES,
        list(waiting.values()),
        message=OffsetsForTimes,
        failed=PartitionOffset,
        on_done=done,
    )


class _Listing:
    """What can be said about a partition without asking its replica actor."""

    def __init__(self, version: int, asked: Any, services: Services) -> None:
        self._version = version
        self._services = services
        self._is_client = asked.replica_id == CONSUMER
        self._any_replica = asked.replica_id == DEBUGGING_CONSUMER
        self._isolation = getattr(asked, "isolation_level", 0)
        counts = Counter(
            (topic.name, part.partition_index)
            for topic in asked.topics
            for part in topic.partitions
        )
        self._duplicates = {key for key, count in counts.items() if count > 1}

    def answer(self, topic_name: str, part: Any) -> PartitionOffset | PartitionTime:
        timestamp = part.timestamp
        if (topic_name, part.partition_index) in self._duplicates:
            return _failed(ErrorCode.invalid_request)
        if timestamp < 0 and self._version < FIRST_VERSION.get(timestamp, 1 << 15):
            return _failed(ErrorCode.unsupported_version)
        image = self._services.image
        topic_id = image.topic_ids.get(topic_name)
        state = None if topic_id is None else image.partition(topic_id, part.partition_index)
        if topic_id is None or state is None:
            return _failed(ErrorCode.unknown_topic_or_partition)
        row = self._services.row(topic_id, part.partition_index)
        epoch = getattr(part, "current_leader_epoch", -1)
        code = leadership_code(state, row, epoch, any_replica=self._any_replica)
        if code or row is None:
            return PartitionOffset(code)
        match timestamp:
            case -1:
                return self._latest(row)
            case -2 | -4:
                return _earliest(row)
            case -5 | -6:
                return PartitionOffset(0, -1, -1, -1)
        return PartitionTime(
            topic_id, part.partition_index, epoch, timestamp, self._isolation, self._version
        )

    def _latest(self, row: Row) -> PartitionOffset:
        if not self._is_client:
            return PartitionOffset(0, -1, row.log_end_offset, row.leader_epoch)
        if row.epoch_start_offset > row.high_watermark:
            late = self._version >= _FIRST_WITH_OFFSET_NOT_AVAILABLE
            return _failed(
                ErrorCode.offset_not_available if late else ErrorCode.leader_not_available
            )
        committed = self._isolation == READ_COMMITTED
        latest = row.last_stable_offset if committed else row.high_watermark
        return PartitionOffset(0, -1, latest, row.leader_epoch)


def _earliest(row: Row) -> PartitionOffset:
    # Older epochs are known to the log alone; an unknown epoch is a valid answer.
    current = row.log_start_offset >= row.epoch_start_offset >= 0
    return PartitionOffset(0, -1, row.log_start_offset, row.leader_epoch if current else -1)


def _failed(code: ErrorCode) -> PartitionOffset:
    return PartitionOffset(int(code))


def _partition(index: int, answer: PartitionOffset) -> dict[str, Any]:
    return {
        "partition_index": index,
        "error_code": answer.error_code,
        "timestamp": answer.timestamp,
        "offset": answer.offset,
        "leader_epoch": answer.leader_epoch,
    }
