"""Where offsets lie in a log's segments, and which byte ranges come after one.

Begins of batches that were asked for or written lately are remembered, so the usual
questions (a follower's next pull, the high watermark) touch no file.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from mobula.protocol.errors import ErrorCode, KafkaError
from mobula.storage.position import LogPosition
from mobula.storage.scan import scan_headers
from mobula.storage.segment import Segment

_KEPT = 1024


class LogRange(NamedTuple):
    """Whole batches in one segment."""

    segment_base: int
    position: int
    length: int


class Positions:
    def __init__(self, segments: Sequence[Segment], end: LogPosition) -> None:
        """`segments` is the log's own list, never empty."""
        self._segments = segments
        self._known: dict[int, LogPosition] = {end.offset: end}
        """By offset, in the order they became known."""

    def remember(self, position: LogPosition) -> None:
        self._known[position.offset] = position
        if len(self._known) > 2 * _KEPT:
            self._known = dict(islice(self._known.items(), _KEPT, None))

    def forget(self, end: LogPosition) -> None:
        """The log was cut; it ends at `end` now, or begins later than it did."""
        self._known = {end.offset: end}

    def segment_at(self, offset: int) -> Segment:
        """The segment that `offset` belongs to."""
        at = self._index_of(offset)
        if at < 0:
            raise _out_of_range(offset)
        return self._segments[at]

    def find(self, offset: int, end: LogPosition) -> LogPosition:
        """The begin of the batch that holds `offset`. KafkaError outside of the log."""
        known = self._known.get(offset)
        if known is not None:
            return known
        at = self._index_of(offset)
        if at < 0 or offset > end.offset:
            raise _out_of_range(offset)
        segment = self._segments[at]
        located = segment.locate(offset)
        if located is not None:
            found = LogPosition(offset, segment.base_offset, located[0])
        elif segment is self._segments[-1]:
            found = LogPosition(offset, end.segment, end.position)
        else:
            # Compaction may leave nothing between an offset and its segment's end.
            found = LogPosition(offset, self._segments[at + 1].base_offset, 0)
        self.remember(found)
        return found

    def ranges(self, offset: int, max_bytes: int, end: LogPosition) -> tuple[list[LogRange], int]:
        """Whole batches from the one that holds `offset` on, at least one if there is any,
        and the offset after the last."""
        if offset == end.offset:
            return [], offset
        _, base, position = self.find(offset, end)
        if base == end.segment and end.position - position <= max_bytes:
            return [LogRange(base, position, end.position - position)], end.offset
        ranges: list[LogRange] = []
        for at in range(self._index_of(base), len(self._segments)):
            segment = self._segments[at]
            length = segment.size - position
            if length > max_bytes:
                length, next_offset = _fit(segment, position, max_bytes, at_least_one=not ranges)
                if length:
                    ranges.append(LogRange(segment.base_offset, position, length))
                    self.remember(LogPosition(next_offset, segment.base_offset, position + length))
                return ranges, next_offset
            if length:
                ranges.append(LogRange(segment.base_offset, position, length))
            max_bytes -= length
            position = 0
        return ranges, end.offset

    def _index_of(self, offset: int) -> int:
        return bisect_right(self._segments, offset, key=lambda segment: segment.base_offset) - 1


def _fit(segment: Segment, position: int, max_bytes: int, *, at_least_one: bool) -> tuple[int, int]:
    """How many bytes of whole batches from `position` on fit, and the offset after them.

    The segment has more than `max_bytes` from there on.
    """
    indexed = segment.boundary_below(position + max_bytes)
    if indexed > position:
        return indexed - position, segment.header_at(indexed).base_offset
    length, next_offset = 0, -1
    for at, header in scan_headers(segment.fd(), position, segment.size):
        if at + header.size_bytes - position > max_bytes and (length or not at_least_one):
            return length, header.base_offset
        length = at + header.size_bytes - position
        next_offset = header.next_offset
    return length, next_offset


def _out_of_range(offset: int) -> KafkaError:
    return KafkaError(ErrorCode.offset_out_of_range, f"offset {offset} is not in the log")
