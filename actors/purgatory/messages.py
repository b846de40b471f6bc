"""What the purgatory holds, and what tells it to look again."""

from __future__ import annotations

from enum import IntFlag

from mobula.actors.link.method import Message, Method, Nothing


class ProducePart(Message, frozen=True, array_like=True, gc=False):
    topic_id: bytes
    partition: int
    leader_epoch: int
    required_offset: int


class WatchProduce(Message, frozen=True, array_like=True):
    timeout_ms: int
    parts: list[ProducePart]


class ProduceDone(Message, frozen=True, array_like=True):
    error_codes: list[int]
    """One for each part, in order: NONE, REQUEST_TIMED_OUT, NOT_LEADER_OR_FOLLOWER, ..."""


class FetchPart(Message, frozen=True, array_like=True, gc=False):
    topic_id: bytes
    partition: int
    leader_epoch: int
    fetch_offset: int
    segment: int
    position: int
    """Where `fetch_offset` lies, so that bytes can be counted without touching a log."""
    generation: int
    max_bytes: int


class WatchFetch(Message, frozen=True, array_like=True):
    max_wait_ms: int
    min_bytes: int
    read_committed: bool
    parts: list[FetchPart]


class FetchDone(Message, frozen=True, array_like=True, gc=False):
    """Read again: something can be said now, or the wait is over."""

    expired: bool


class DeletePart(Message, frozen=True, array_like=True, gc=False):
    topic_id: bytes
    partition: int
    low_watermark: int


class WatchDeleteRecords(Message, frozen=True, array_like=True):
    timeout_ms: int
    parts: list[DeletePart]


class DeleteDone(Message, frozen=True, array_like=True):
    error_codes: list[int]
    low_watermarks: list[int]


class Cause(IntFlag):
    """Why a partition is worth another look."""

    APPEND = 1
    HIGH_WATERMARK = 2
    LAST_STABLE = 4
    FOLLOWER = 8
    """A follower moved, or the low watermark did."""
    LEADERSHIP = 16
    TRUNCATED = 32
    OFFLINE = 64
    DELETED = 128


class Change(Message, frozen=True, array_like=True, gc=False):
    """A partition's row as it was published just before, and why it is sent."""

    topic_id: bytes
    partition: int
    cause: int


class PartitionsChanged(Message, frozen=True, array_like=True):
    """All that changed in one turn of a replica actor's loop. Sent without a reply."""

    replica: str
    """Name of the replica actor, whose rows hold the values."""
    changes: list[Change]


WATCH_PRODUCE = Method(20, "watch_produce", WatchProduce, ProduceDone)
WATCH_FETCH = Method(21, "watch_fetch", WatchFetch, FetchDone)
WATCH_DELETE_RECORDS = Method(22, "watch_delete_records", WatchDeleteRecords, DeleteDone)
PARTITIONS_CHANGED = Method(23, "partitions_changed", PartitionsChanged, Nothing)
