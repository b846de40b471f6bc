"""The two indexes of a segment, in Kafka's formats.

Offset index: (u32 offset relative to the segment's base, u32 position), the last offset of
a batch and where that batch begins. Time index: (i64 timestamp, u32 relative offset), the
largest timestamp so far and the last offset of its batch.

Entries are kept in memory until `flush`. Files grow by appending and hold nothing else.
Invariant: an index can be thrown away; the segment has all that is in it.
"""

from __future__ import annotations

import os
import struct
from bisect import bisect_left, bisect_right

from mobula.storage.files import write_all

_OFFSET_ENTRY = struct.Struct(">II")
_TIME_ENTRY = struct.Struct(">qI")
_RELATIVE = struct.Struct(">I")


class _Index:
    """An append-only file of fixed-size entries."""

    __slots__ = (
        "_fd",
        "_fresh",
        "_loaded",
        "_pending",
        "base_offset",
        "entries",
        "path",
        "suspect",
    )

    entry_bytes: int

    def __init__(self, path: str, base_offset: int, *, fresh: bool = False) -> None:
        """`fresh`: of a new segment. Its file is made when there is something to write."""
        self.path = path
        self.base_offset = base_offset
        self._fresh = fresh
        missing = False
        size_bytes = 0
        if not fresh:
            try:
                size_bytes = os.stat(path).st_size
            except FileNotFoundError:
                missing = True
        self.entries = size_bytes // self.entry_bytes
        """Written and pending."""
        self.suspect = missing or bool(size_bytes % self.entry_bytes)
        """No file, or one that ends in half an entry: to be made anew."""
        self._pending = bytearray()
        self._loaded: bytearray | None = None
        """All entries, once something was looked up."""
        self._fd = -1

    def _append(self, entry: bytes) -> None:
        self._pending += entry
        if self._loaded is not None:
            self._loaded += entry
        self.entries += 1

    @property
    def pending(self) -> int:
        """How many entries are not written."""
        return len(self._pending) // self.entry_bytes

    def flush(self) -> None:
        """Write what is pending. OSError: how much was written is unknown; cut it."""
        if self._pending:
            write_all(self.open(), bytes(self._pending))
            self._pending.clear()

    def cut(self, entries: int) -> None:
        """Keep the first `entries`, written or not."""
        written = self.entries - self.pending
        if entries >= written:
            del self._pending[(entries - written) * self.entry_bytes :]
        else:
            self._pending.clear()
        # A flush that failed may have left half an entry behind.
        if not self._fresh:
            os.ftruncate(self.open(), min(entries, written) * self.entry_bytes)
        if self._loaded is not None:
            del self._loaded[entries * self.entry_bytes :]
        self.entries = entries
        self.suspect = False

    def release(self) -> None:
        """Close the file and forget what was loaded. Pending entries are kept."""
        self._loaded = None
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def open(self) -> int:
        """The file, made if need be."""
        if self._fd < 0:
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
            # Nothing of an earlier segment of this name may stand in a fresh one.
            self._fd = os.open(self.path, flags | os.O_TRUNC if self._fresh else flags, 0o644)
            self._fresh = False
        return self._fd

    def _entry_bytes_at(self, slot: int) -> bytes:
        """One entry without loading all."""
        if self._loaded is None:
            written = self.entries - self.pending
            if slot < written:
                return os.pread(self.open(), self.entry_bytes, slot * self.entry_bytes)
            at = (slot - written) * self.entry_bytes
            return bytes(self._pending[at : at + self.entry_bytes])
        at = slot * self.entry_bytes
        return bytes(self._loaded[at : at + self.entry_bytes])

    def _load(self) -> bytearray:
        if self._loaded is None:
            written = self.entries * self.entry_bytes - len(self._pending)
            data = bytearray(os.pread(self.open(), written, 0)) if written else bytearray()
            self._loaded = data + self._pending
            # Never trust a file to be as long as it was.
            self.entries = len(self._loaded) // self.entry_bytes
        return self._loaded


class OffsetIndex(_Index):
    __slots__ = ()

    entry_bytes = _OFFSET_ENTRY.size

    def append(self, offset: int, position: int) -> None:
        self._append(_OFFSET_ENTRY.pack(offset - self.base_offset, position))

    def last(self) -> tuple[int, int] | None:
        """(offset, position) of the last entry."""
        if not self.entries:
            return None
        relative, position = _OFFSET_ENTRY.unpack(self._entry_bytes_at(self.entries - 1))
        return self.base_offset + relative, position

    def floor(self, offset: int) -> tuple[int, int] | None:
        """The last entry whose offset is not above `offset`."""
        data = self._load()
        slot = bisect_right(
            range(self.entries),
            offset - self.base_offset,
            key=lambda at: _RELATIVE.unpack_from(data, at * 8)[0],
        )
        return self._entry(slot - 1)

    def floor_position(self, position: int) -> tuple[int, int] | None:
        """The last entry whose position is not above `position`: a batch begins there."""
        data = self._load()
        slot = bisect_right(
            range(self.entries),
            position,
            key=lambda at: _RELATIVE.unpack_from(data, at * 8 + 4)[0],
        )
        return self._entry(slot - 1)

    def _entry(self, slot: int) -> tuple[int, int] | None:
        if slot < 0:
            return None
        relative, position = _OFFSET_ENTRY.unpack_from(self._load(), slot * 8)
        return self.base_offset + relative, position

    def truncate_to(self, offset: int) -> None:
        """Drop entries of `offset` and after."""
        data = self._load()
        keep = bisect_left(
            range(self.entries),
            offset - self.base_offset,
            key=lambda at: _RELATIVE.unpack_from(data, at * 8)[0],
        )
        self.cut(keep)


class TimeIndex(_Index):
    __slots__ = ()

    entry_bytes = _TIME_ENTRY.size

    def append(self, timestamp: int, offset: int) -> None:
        self._append(_TIME_ENTRY.pack(timestamp, offset - self.base_offset))

    def last(self) -> tuple[int, int] | None:
        """(timestamp, offset) of the last entry."""
        if not self.entries:
            return None
        timestamp, relative = _TIME_ENTRY.unpack(self._entry_bytes_at(self.entries - 1))
        return timestamp, self.base_offset + relative

    def floor(self, timestamp: int) -> tuple[int, int] | None:
        """The last entry whose timestamp is not above `timestamp`."""
        data = self._load()
        slot = bisect_right(
            range(self.entries),
            timestamp,
            key=lambda at: _TIME_ENTRY.unpack_from(data, at * 12)[0],
        )
        if not slot:
            return None
        found, relative = _TIME_ENTRY.unpack_from(data, (slot - 1) * 12)
        return found, self.base_offset + relative

    def truncate_to(self, offset: int) -> None:
        """Drop entries of `offset` and after."""
        data = self._load()
        keep = bisect_left(
            range(self.entries),
            offset - self.base_offset,
            key=lambda at: _TIME_ENTRY.unpack_from(data, at * 12)[1],
        )
        self.cut(keep)
