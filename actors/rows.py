"""The published rows: what a replica actor tells its node about its partitions.

One memory-mapped table a replica actor, one row a partition. The replica actor is the
only writer; gateways and the purgatory read without asking it anything. Each row has two
bodies, and its sequence says which one holds: a write fills the other and then counts the
sequence up, and a reader that saw it change reads again. So nobody waits for a writer that
was put to sleep, or died, in the middle of a write.

Invariant: what a row says is on disk (page cache) before the row says it.
"""

from __future__ import annotations

import mmap
import os
import struct
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple

_MAGIC = 0x4D4F4255
_HEADER = struct.Struct("<IIQII")  # magic, row size, incarnation, rows used, recycled
_HEADER_BYTES = 64
_SEQUENCE = struct.Struct("<Q")
_BODY = struct.Struct("<16siiiiqqqqqqqqqqqqii")
_ROW_BYTES = 320
_CAPACITY_STEP = 256
_READS = 1000
"""Of one row, until it does not change meanwhile."""


class Role(IntEnum):
    """What the replica is to its partition."""

    NONE = 0
    """The slot is free."""
    FOLLOWER = 1
    LEADER = 2
    OFFLINE = 3
    """The log cannot be used (a disk error)."""


class Row(NamedTuple):
    """One partition as its replica actor last published it.

    Each of high watermark, last stable offset and log end carries where it lies: the
    base offset of its segment and the byte position in it.
    """

    topic_id: bytes
    partition: int
    role: int
    leader_epoch: int
    generation: int
    """Grows when the log is truncated or replaced: what was read before is void."""
    log_start_offset: int
    low_watermark: int
    """The smallest log start offset of all replicas (leader only)."""
    high_watermark: int
    high_watermark_segment: int
    high_watermark_position: int
    last_stable_offset: int
    last_stable_segment: int
    last_stable_position: int
    log_end_offset: int
    log_end_segment: int
    log_end_position: int
    epoch_start_offset: int
    """Where this leader's epoch began: a leader is trusted to know the end of what was
    committed once its high watermark has reached this."""
    in_sync_replicas: int = 1
    """The size of the ISR that the high watermark waits for (leader only)."""
    min_in_sync_replicas: int = 1
    """The topic's min.insync.replicas, at most the number of replicas. A produce whose offset
    is reached while the ISR is smaller ends as NOT_ENOUGH_REPLICAS_AFTER_APPEND."""


class RowsWriter:
    """The replica actor's side. Creating it makes a fresh, empty table."""

    def __init__(self, path: Path, incarnation: int) -> None:
        self._path = path
        self._incarnation = incarnation
        self._used = 0
        self._recycled = 0
        self._free: list[int] = []
        self._capacity = _CAPACITY_STEP
        fresh = path.with_suffix(".new")
        self._fd = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        os.ftruncate(self._fd, _HEADER_BYTES + self._capacity * _ROW_BYTES)
        self._map = mmap.mmap(self._fd, 0)
        self._write_header()
        fresh.rename(path)

    def _write_header(self) -> None:
        _HEADER.pack_into(
            self._map, 0, _MAGIC, _ROW_BYTES, self._incarnation, self._used, self._recycled
        )

    def allocate(self, row: Row) -> int:
        """A slot for a new partition, published with its first values."""
        if self._free:
            slot = self._free.pop()
            self.publish(slot, row)
            self._recycled += 1
        else:
            if self._used == self._capacity:
                self._grow()
            slot = self._used
            self.publish(slot, row)
            self._used += 1
        self._write_header()
        return slot

    def _grow(self) -> None:
        self._capacity *= 2
        os.ftruncate(self._fd, _HEADER_BYTES + self._capacity * _ROW_BYTES)
        self._map.close()
        self._map = mmap.mmap(self._fd, 0)

    def publish(self, slot: int, row: Row) -> None:
        at = _HEADER_BYTES + slot * _ROW_BYTES
        memory = self._map
        (sequence,) = _SEQUENCE.unpack_from(memory, at)
        sequence += 1
        _BODY.pack_into(memory, _body_at(at, sequence), *row)
        _SEQUENCE.pack_into(memory, at, sequence)

    def release(self, slot: int) -> None:
        """The partition is gone from this actor."""
        self.publish(slot, _EMPTY)
        self._free.append(slot)
        self._recycled += 1
        self._write_header()

    def close(self) -> None:
        self._map.close()
        os.close(self._fd)


def _body_at(row_at: int, sequence: int) -> int:
    """Where the body stands that this sequence makes the row's."""
    return row_at + _SEQUENCE.size + (_BODY.size if sequence & 1 else 0)


_EMPTY = Row(bytes(16), -1, Role.NONE, -1, 0, *([0] * 12))


class RowsReader:
    """The view of gateways and the purgatory. Reopens when the replica actor restarted."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._map: mmap.mmap | None = None
        self._incarnation = -1
        self._scanned = 0
        self._recycled = 0
        self._slots: dict[tuple[bytes, int], int] = {}
        self._seen: dict[int, tuple[int, Row]] = {}
        """By slot: the row as last read, and the sequence it had then."""

    def find(self, topic_id: bytes, partition: int) -> Row | None:
        """The partition's row now, or None when this replica actor does not hold it."""
        slot = self._slots.get((topic_id, partition))
        if slot is not None:
            row = self._read(slot)
            if row.partition == partition and row.topic_id == topic_id:
                return row
        if not self._refresh():
            return None
        slot = self._slots.get((topic_id, partition))
        if slot is None:
            return None
        row = self._read(slot)
        return row if row.partition == partition and row.topic_id == topic_id else None

    def all(self) -> list[Row]:
        """Every partition of this replica actor."""
        self._refresh()
        return [row for slot in self._slots.values() if (row := self._read(slot)).role != Role.NONE]

    def reopen(self) -> None:
        """Call when the replica actor has come back: its table is a new file."""
        if self._map is not None:
            self._map.close()
        self._map = None
        self._slots.clear()
        self._seen.clear()
        self._scanned = self._recycled = 0

    def _read(self, slot: int) -> Row:
        at = _HEADER_BYTES + slot * _ROW_BYTES
        memory = self._map
        assert memory is not None
        (before,) = _SEQUENCE.unpack_from(memory, at)
        seen = self._seen.get(slot)
        if seen is not None and seen[0] == before:
            # Most rows that a fetch looks at did not change since the last one.
            return seen[1]
        for _ in range(_READS):
            body = _BODY.unpack_from(memory, _body_at(at, before))
            (after,) = _SEQUENCE.unpack_from(memory, at)
            if before == after:
                row = Row._make(body)
                self._seen[slot] = (before, row)
                return row
            before = after
        return _EMPTY if seen is None else seen[1]

    def _refresh(self) -> bool:
        """Learn slots that are new since the last look. False when there is no table."""
        if self._map is None and not self._open():
            return False
        while True:
            assert self._map is not None
            _, _, incarnation, used, recycled = _HEADER.unpack_from(self._map, 0)
            if _HEADER_BYTES + used * _ROW_BYTES <= len(self._map):
                break
            # It grew; or it is another life's table by now, so its header is read again.
            self._map.close()
            if not self._open():
                return False
        if recycled != self._recycled or incarnation != self._incarnation:
            self._slots.clear()
            self._scanned = 0
            self._recycled, self._incarnation = recycled, incarnation
        for slot in range(self._scanned, used):
            row = self._read(slot)
            if row.role != Role.NONE:
                self._slots[row.topic_id, row.partition] = slot
        self._scanned = used
        return True

    def _open(self) -> bool:
        self._seen.clear()
        try:
            fd = os.open(self._path, os.O_RDONLY)
        except FileNotFoundError:
            self._map = None
            self._slots.clear()
            self._scanned = 0
            return False
        try:
            self._map = mmap.mmap(fd, 0, prot=mmap.PROT_READ)
        finally:
            os.close(fd)
        return True
