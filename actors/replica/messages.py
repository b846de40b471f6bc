"""What a replica actor can be asked: by gateways, by followers, by its broker."""

from __future__ import annotations

from enum import IntEnum

import msgspec

from mobula.actors.link.method import Message, Method


class Origin(IntEnum):
    """Who appends: decides what may be written where."""

    CLIENT = 0
    COORDINATOR = 1
    REPLICATION = 2


class PartitionAppend(Message, frozen=True, array_like=True, gc=False):
    topic_id: bytes
    partition: int
    length: int
    """Of this partition's one record batch; batches stand in order in the bulk bytes."""


class Append(Message, frozen=True, array_like=True):
    acks: int
    origin: int
    parts: list[PartitionAppend]


class PartitionAppended(Message, frozen=True, array_like=True, gc=False):
    error_code: int
    base_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    required_offset: int = -1
    """The high watermark that acks=-1 waits for; -1 when there is nothing to wait for."""
    leader_epoch: int = -1
    detail: str | None = None
    record_errors: tuple[tuple[int, str], ...] = ()
    """Of the records that keep their batch out: index in it, and why."""


class Appended(Message, frozen=True, array_like=True):
    parts: list[PartitionAppended]


class PartitionTime(Message, frozen=True, array_like=True, gc=False):
    topic_id: bytes
    partition: int
    current_leader_epoch: int
    timestamp: int
    """A time in ms, or one of ListOffsets' negative values."""
    isolation_level: int
    version: int
    """Of the ListOffsets request: some codes depend on it."""


class OffsetsForTimes(Message, frozen=True, array_like=True):
    parts: list[PartitionTime]


class PartitionOffset(Message, frozen=True, array_like=True, gc=False):
    error_code: int
    timestamp: int = -1
    offset: int = -1
    leader_epoch: int = -1


class OffsetsFound(Message, frozen=True, array_like=True):
    parts: list[PartitionOffset]


class PartitionEpoch(Message, frozen=True, array_like=True, gc=False):
    topic_id: bytes
    partition: int
    current_leader_epoch: int
    leader_epoch: int


class EpochEndOffsets(Message, frozen=True, array_like=True):
    parts: list[PartitionEpoch]


class PartitionEpochEnd(Message, frozen=True, array_like=True, gc=False):
    error_code: int
    leader_epoch: int = -1
    end_offset: int = -1


class EpochEndsFound(Message, frozen=True, array_like=True):
    parts: list[PartitionEpochEnd]


class PartitionDelete(Message, frozen=True, array_like=True, gc=False):
    topic_id: bytes
    partition: int
    offset: int
    """Records before it go; -1 means the high watermark."""


class DeleteRecords(Message, frozen=True, array_like=True):
    parts: list[PartitionDelete]


class PartitionDeleted(Message, frozen=True, array_like=True, gc=False):
    error_code: int
    required_low_watermark: int = -1
    low_watermark: int = -1


class RecordsDeleted(Message, frozen=True, array_like=True):
    parts: list[PartitionDeleted]


class DescribeLogs(Message, frozen=True, array_like=True):
    """All partitions of this actor."""


class LogDescription(Message, frozen=True, array_like=True, gc=False):
    topic_id: bytes
    partition: int
    size_bytes: int
    offset_lag: int


class LogsDescribed(Message, frozen=True, array_like=True):
    logs: list[LogDescription]


class PulledPartition(Message, frozen=True, array_like=True, gc=False):
    """In a pull: where the follower stands. Sent only when it changed."""

    topic_id: bytes
    partition: int
    leader_epoch: int
    """The epoch that the follower believes current; a stale or future one is refused."""
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int


class Pull(Message, frozen=True, array_like=True):
    """One pull loop per (follower actor, leader actor). The leader keeps a session.

    `session_id` 0 opens a new session: `changed` then names every partition. A pull
    whose `sequence` is not the next one is refused with an unknown session, and the
    follower opens a new one.
    """

    broker_id: int
    broker_epoch: int
    session_id: int
    sequence: int
    wants_bytes: bool
    """False: ranges of the leader's files are enough (same node)."""
    max_bytes: int
    max_wait_ms: int
    changed: list[PulledPartition]
    removed: list[tuple[bytes, int]]


class Range(Message, frozen=True, array_like=True, gc=False):
    """Whole batches in one segment of the leader. Never crosses a segment."""

    segment_base: int
    position: int
    length: int


class PullAnswer(Message, frozen=True, array_like=True, gc=False):
    topic_id: bytes
    partition: int
    error_code: int
    leader_epoch: int
    high_watermark: int
    log_start_offset: int
    diverging_epoch: int = -1
    """Set when the follower must cut its log: the end offset of the largest epoch that
    both may share is `diverging_end_offset`."""
    diverging_end_offset: int = -1
    ranges: list[Range] = msgspec.field(default_factory=list)
    """With bytes, the same ranges stand concatenated in the bulk, in order."""
    next_offset: int = -1
    """The leader's offset after the last range."""


class Pulled(Message, frozen=True, array_like=True):
    session_id: int
    """0: no such session, open a new one."""
    answers: list[PullAnswer]


APPEND = Method(1, "append", Append, Appended)
OFFSETS_FOR_TIMES = Method(2, "offsets_for_times", OffsetsForTimes, OffsetsFound)
EPOCH_END_OFFSETS = Method(3, "epoch_end_offsets", EpochEndOffsets, EpochEndsFound)
DELETE_RECORDS = Method(4, "delete_records", DeleteRecords, RecordsDeleted)
DESCRIBE_LOGS = Method(5, "describe_logs", DescribeLogs, LogsDescribed)
PULL = Method(6, "pull", Pull, Pulled)
