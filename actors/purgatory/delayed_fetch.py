"""Delayed fetch: a fetch that waits until there is enough to read, or something to say.

The cases of the reference: A, B leadership lost, C unknown partition, D offline log, E
fenced epoch, F an offset on an older segment than the end (or past a truncated log), G
enough bytes, H a diverging epoch. All but G complete the whole fetch at once; the gateway
then reads again and finds the right answer for each partition.

Invariant: bytes are counted by position within one segment, never by looking at a log;
under read_committed only those below the last stable offset count.
"""

from __future__ import annotations

from mobula.actors.link.interface import Reply
from mobula.actors.purgatory.delayed_operation import DelayedOperation, Key
from mobula.actors.purgatory.messages import FetchDone, FetchPart, WatchFetch
from mobula.actors.rows import Role, Row

COMPLETE = -1
_LEADER = int(Role.LEADER)


def fetch_bytes(part: FetchPart, row: Row | None, read_committed: bool) -> int:
    """Bytes that the partition could give now, or COMPLETE when the fetch must not wait."""
    if row is None or row.role != _LEADER:
        return COMPLETE
    if row.leader_epoch != part.leader_epoch or row.generation != part.generation:
        return COMPLETE
    offset = part.fetch_offset
    if read_committed:
        end_offset = row.last_stable_offset
        end_segment, end_position = row.last_stable_segment, row.last_stable_position
    else:
        end_offset = row.high_watermark
        end_segment, end_position = row.high_watermark_segment, row.high_watermark_position
    if offset >= end_offset:
        # Past the high watermark but not the log's end: a new leader still learns what is
        # committed, and there will be something to read when it knows.
        return 0 if offset <= row.log_end_offset else COMPLETE
    if offset < row.log_start_offset or end_segment != part.segment:
        return COMPLETE
    return min(end_position - part.position, part.max_bytes)


class DelayedFetch(DelayedOperation):
    __slots__ = ("_bytes", "_min_bytes", "_parts", "_read_committed", "_total")

    def __init__(self, watch: WatchFetch, deadline_ms: int, reply: Reply) -> None:
        super().__init__(len(watch.parts), deadline_ms, reply)
        self._parts = watch.parts
        self._min_bytes = watch.min_bytes
        self._read_committed = watch.read_committed
        self._bytes = [0] * len(watch.parts)
        self._total = 0

    def keys(self) -> list[Key]:
        return [(part.topic_id, part.partition) for part in self._parts]

    def check(self, index: int, row: Row | None, absent: int) -> bool:
        available = fetch_bytes(self._parts[index], row, self._read_committed)
        if available == COMPLETE:
            return True
        self._total += available - self._bytes[index]
        self._bytes[index] = available
        return self._total >= self._min_bytes

    def outcome(self) -> FetchDone:
        return FetchDone(self.expired)
