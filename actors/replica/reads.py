"""What a replica actor can be asked about its logs, besides their records.

Each part is answered for itself, with its own code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from mobula.actors.replica.messages import (
    DeleteRecords,
    EpochEndOffsets,
    EpochEndsFound,
    LogDescription,
    LogsDescribed,
    OffsetsForTimes,
    OffsetsFound,
    PartitionDelete,
    PartitionDeleted,
    PartitionEpoch,
    PartitionEpochEnd,
    PartitionOffset,
    PartitionTime,
    RecordsDeleted,
)
from mobula.actors.replica.partition import Partition
from mobula.actors.replica.replica_manager import ReplicaManager
from mobula.protocol.errors import ErrorCode, KafkaError
from mobula.storage.batch import HEADER_BYTES, parse_header
from mobula.storage.log import LogRange, StorageError

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6

_SINCE_VERSION = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
_OFFSET_NOT_AVAILABLE_SINCE = 5
_HIGH_WATERMARK = -1

PartT = TypeVar("PartT", PartitionTime, PartitionEpoch, PartitionDelete)
AnswerT = TypeVar("AnswerT")


class LogReads:
    def __init__(self, replicas: ReplicaManager) -> None:
        self._replicas = replicas

    def offsets_for_times(self, request: OffsetsForTimes) -> OffsetsFound:
        return OffsetsFound(
            [self._each(part, self._offset_for_time, PartitionOffset) for part in request.parts]
        )

    def epoch_end_offsets(self, request: EpochEndOffsets) -> EpochEndsFound:
        return EpochEndsFound(
            [self._each(part, self._epoch_end, PartitionEpochEnd) for part in request.parts]
        )

    def delete_records(self, request: DeleteRecords) -> RecordsDeleted:
        """Who must hear of it is told at the end of the turn."""
        return RecordsDeleted(
            [self._each(part, self._delete, PartitionDeleted) for part in request.parts]
        )

    def describe_logs(self) -> LogsDescribed:
        return LogsDescribed(
            [
                LogDescription(
                    partition.key[0],
                    partition.key[1],
                    partition.log.size_bytes,
                    max(partition.high_watermark.offset - partition.log_end_offset, 0),
                )
                for partition in self._replicas
                if not partition.offline
            ]
        )

    def _each(
        self,
        part: PartT,
        answer: Callable[[Partition, PartT], AnswerT],
        refuse: Callable[[int], AnswerT],
    ) -> AnswerT:
        try:
            return answer(self._replicas.get(part.topic_id, part.partition), part)
        except StorageError as error:
            partition = self._replicas.find((part.topic_id, part.partition))
            assert partition is not None
            self._replicas.storage_failed(partition, error)
            return refuse(int(error.code))
        except KafkaError as error:
            return refuse(int(error.code))

    def _offset_for_time(self, partition: Partition, part: PartitionTime) -> PartitionOffset:
        target = part.timestamp
        if target < 0 and part.version < _SINCE_VERSION.get(target, 1 << 15):
            raise KafkaError(ErrorCode.unsupported_version)
        leader = partition.check_leader(part.current_leader_epoch)
        # Without transactions read_committed ends where read_uncommitted does.
        last_fetchable = partition.high_watermark.offset
        knows_committed = last_fetchable >= leader.epoch_start_offset
        log = partition.log
        if target == LATEST:
            if not knows_committed:
                raise _not_available(part.version)
            return PartitionOffset(0, -1, last_fetchable, leader.leader_epoch)
        if target in (EARLIEST, EARLIEST_LOCAL):
            return PartitionOffset(0, -1, log.log_start_offset, _start_epoch(partition))
        if target in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
            return PartitionOffset(0, -1, -1, -1)
        found = (
            log.max_timestamp(last_fetchable)
            if target == MAX_TIMESTAMP
            else log.offset_for_timestamp(target, last_fetchable)
        )
        if found is None:
            if not knows_committed:
                raise _not_available(part.version)
            return PartitionOffset(0)
        return PartitionOffset(0, found.timestamp, found.offset, found.leader_epoch)

    def _epoch_end(self, partition: Partition, part: PartitionEpoch) -> PartitionEpochEnd:
        partition.check_leader(part.current_leader_epoch)
        epoch, end_offset = partition.log.end_offset_for_epoch(part.leader_epoch)
        return PartitionEpochEnd(0, epoch, end_offset)

    def _delete(self, partition: Partition, part: PartitionDelete) -> PartitionDeleted:
        leader = partition.check_leader()
        if "delete" not in partition.log.config.cleanup_policy:
            raise KafkaError(ErrorCode.policy_violation)
        high_watermark = partition.high_watermark.offset
        offset = high_watermark if part.offset == _HIGH_WATERMARK else part.offset
        if offset < 0 or offset > high_watermark:
            raise KafkaError(ErrorCode.offset_out_of_range)
        if partition.log.advance_log_start(offset):
            self._replicas.log_start_moved(partition)
        return PartitionDeleted(0, offset, leader.low_watermark)


def _start_epoch(partition: Partition) -> int:
    """The epoch of the first record that is still there, or of what comes next."""
    log = partition.log
    start = log.log_start_offset
    if start == log.log_end.offset:
        return log.latest_epoch
    place = log.position_of(start)
    header = parse_header(log.read(LogRange(place.segment, place.position, HEADER_BYTES)))
    return header.partition_leader_epoch


def _not_available(version: int) -> KafkaError:
    """A new leader that does not know yet all that is committed."""
    if version >= _OFFSET_NOT_AVAILABLE_SINCE:
        return KafkaError(ErrorCode.offset_not_available)
    return KafkaError(ErrorCode.leader_not_available)
