"""One segment: a file of batches with its offset and time index.

Only the last segment of a log is written to. Invariant: `size` bytes of the file are whole
batches whose offsets grow; an index entry never points past them.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from mobula.storage.batch import HEADER_BYTES, MAGIC, BatchHeader, crc_holds, parse_header
from mobula.storage.config import LogConfig
from mobula.storage.descriptors import Descriptors
from mobula.storage.index import OffsetIndex, TimeIndex
from mobula.storage.scan import LOOKUP_BLOCK_BYTES, scan_batches, scan_headers

LOG_SUFFIX = ".log"
INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TXN_INDEX_SUFFIX = ".txnindex"
DELETED_SUFFIX = ".deleted"
SUFFIXES = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)

MAX_RELATIVE_OFFSET = 2**31 - 1
MAX_SEGMENT_BYTES = 2**31 - 1
"""Java keeps positions in ints."""
_INDEX_ENTRIES_AT_ONCE = 4
_IOV_MAX = os.sysconf("SC_IOV_MAX") if "SC_IOV_MAX" in os.sysconf_names else 1024


def segment_name(base_offset: int) -> str:
    """Without suffix: twenty digits, so that names sort as offsets do."""
    return f"{base_offset:020d}"


class Mark(NamedTuple):
    """What `roll_back` goes back to."""

    max_timestamp: int
    max_timestamp_offset: int
    first_timestamp: int | None
    bytes_since_index: int
    index_entries: int
    time_entries: int


class Segment:
    __slots__ = (
        "_descriptors",
        "_fd",
        "_index",
        "_index_checked",
        "_index_interval_bytes",
        "_path",
        "_tail_known",
        "_time_index",
        "base_offset",
        "bytes_since_index",
        "created_ms",
        "first_timestamp",
        "max_timestamp",
        "max_timestamp_offset",
        "next_offset",
        "size",
    )

    def __init__(
        self,
        directory: Path,
        base_offset: int,
        *,
        size: int,
        index_interval_bytes: int,
        now_ms: int,
        descriptors: Descriptors,
    ) -> None:
        self._path = str(directory / segment_name(base_offset))
        self._descriptors = descriptors
        self._index_interval_bytes = index_interval_bytes
        self._fd = -1
        self._index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None
        self._index_checked = size == 0
        self._tail_known = size == 0
        self.base_offset = base_offset
        self.size = size
        self.created_ms = now_ms
        self.bytes_since_index = 0
        self.first_timestamp: int | None = None
        """Of the first batch, what rolling by age counts from; None: not read yet."""
        self.max_timestamp = -1
        self.max_timestamp_offset = base_offset
        self.next_offset = base_offset
        """Like the three before it, true only once `load_tail` or `recover` has run."""

    @property
    def path(self) -> Path:
        return Path(self._path + LOG_SUFFIX)

    @property
    def index(self) -> OffsetIndex:
        if self._index is None:
            self._index = OffsetIndex(self._path + INDEX_SUFFIX, self.base_offset)
        return self._index

    @property
    def time_index(self) -> TimeIndex:
        if self._time_index is None:
            self._time_index = TimeIndex(self._path + TIME_INDEX_SUFFIX, self.base_offset)
        return self._time_index

    def create_file(self) -> None:
        """Empty, whatever an earlier life may have left under this name. The indexes' files
        follow when there is something in them: most partitions of a cluster are idle, and
        making a file is the dearest thing about a new one."""
        os.close(os.open(self._path + LOG_SUFFIX, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644))
        self._index = OffsetIndex(self._path + INDEX_SUFFIX, self.base_offset, fresh=True)
        self._time_index = TimeIndex(self._path + TIME_INDEX_SUFFIX, self.base_offset, fresh=True)

    # Writing.

    def fd(self) -> int:
        """The file, open for reading and appending."""
        if self._fd < 0:
            self._fd = os.open(self._path + LOG_SUFFIX, os.O_RDWR | os.O_APPEND)
            self._descriptors.opened(self)
        return self._fd

    def write(self, buffers: list[memoryview], total_bytes: int) -> None:
        """Append all buffers by as few calls as possible. `size` is the caller's to move."""
        if self._fd < 0:
            self.fd()
        else:
            self._descriptors.used(self)
        if len(buffers) == 1:
            written = os.write(self._fd, buffers[0])
        else:
            written = os.writev(self._fd, buffers[:_IOV_MAX])
        if written != total_bytes:
            self._write_rest(buffers, written)

    def _write_rest(self, buffers: list[memoryview], written: int) -> None:
        at = 0
        while True:
            while at < len(buffers) and written >= len(buffers[at]):
                written -= len(buffers[at])
                at += 1
            if at == len(buffers):
                return
            part = buffers[at : at + _IOV_MAX]
            part[0] = part[0][written:]
            written += os.writev(self._fd, part)

    def account(self, last_offset: int, max_timestamp: int, position: int, size: int) -> None:
        """A batch of `size` bytes stands (or will stand) at `position`: index it by
        Kafka's rule, an entry once more than the interval lies behind the last one."""
        if not position:
            self.first_timestamp = max_timestamp
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.max_timestamp_offset = last_offset
        if self.bytes_since_index > self._index_interval_bytes:
            self.index.append(last_offset, position)
            self.index_max_timestamp()
            self.bytes_since_index = size
        else:
            self.bytes_since_index += size

    def index_max_timestamp(self) -> None:
        last = self.time_index.last()
        if self.max_timestamp > (-1 if last is None else last[0]):
            self.time_index.append(self.max_timestamp, self.max_timestamp_offset)

    def flush_indexes(self) -> None:
        """Write index entries once a few have gathered: two calls less for most appends,
        and readers scan a few headers more near the end."""
        if self.index.pending >= _INDEX_ENTRIES_AT_ONCE:
            self.index.flush()
            self.time_index.flush()

    def seal(self) -> None:
        """No more appends for now: the indexes are on disk, and the time index ends in the
        largest timestamp."""
        if not self.size:
            return
        if self._tail_known:
            self.index_max_timestamp()
        for index in (self.index, self.time_index):
            index.open()
            index.flush()

    def mark(self) -> Mark:
        return Mark(
            self.max_timestamp,
            self.max_timestamp_offset,
            self.first_timestamp,
            self.bytes_since_index,
            self.index.entries,
            self.time_index.entries,
        )

    def roll_back(self, mark: Mark) -> None:
        """Undo what was accounted and perhaps written since `mark`. OSError: it failed."""
        os.ftruncate(self.fd(), self.size)
        self.index.cut(mark.index_entries)
        self.time_index.cut(mark.time_entries)
        self.max_timestamp = mark.max_timestamp
        self.max_timestamp_offset = mark.max_timestamp_offset
        self.first_timestamp = mark.first_timestamp
        self.bytes_since_index = mark.bytes_since_index

    # Rolling.

    def is_due(self, max_timestamp: int, now_ms: int, age_limit: int) -> bool:
        """Whether a batch with this timestamp is too young for a segment that has some."""
        if self.first_timestamp is None:
            self.first_timestamp = self.header_at(0).max_timestamp
        if self.first_timestamp >= 0:
            return max_timestamp - self.first_timestamp > age_limit
        return now_ms - self.created_ms > age_limit

    def is_index_full(self, config: LogConfig) -> bool:
        return (
            self.index.entries >= config.segment_index_bytes // 8
            or self.time_index.entries >= config.segment_index_bytes // 12 - 1
        )

    # Reading.

    def header_at(self, position: int) -> BatchHeader:
        return parse_header(os.pread(self.fd(), HEADER_BYTES, position))

    def locate(self, offset: int) -> tuple[int, BatchHeader] | None:
        """(position, header) of the first batch that ends at `offset` or after it."""
        start = self.scan_start(offset)
        for position, header in scan_headers(self.fd(), start, self.size, LOOKUP_BLOCK_BYTES):
            if header.last_offset >= offset:
                return position, header
        return None

    def scan_start(self, offset: int) -> int:
        """A batch begins here, and `offset` does not stand before it."""
        return self._checked(lambda: self.index.floor(offset))

    def boundary_below(self, position: int) -> int:
        """The last indexed begin of a batch that is not above `position`; 0 if none."""
        return self._checked(lambda: self.index.floor_position(position))

    def scan_start_for_time(self, timestamp: int) -> int:
        """A batch begins here, and none before it reaches `timestamp`."""
        entry = self.time_index.floor(timestamp)
        if entry is not None:
            located = self.locate(entry[1])
            if located is None or (located[1].max_timestamp, located[1].last_offset) != entry:
                self.rebuild_indexes()
                entry = self.time_index.floor(timestamp)
        return 0 if entry is None else self.scan_start(entry[1])

    def _checked(self, look_up: Callable[[], tuple[int, int] | None]) -> int:
        """The position of an entry that is true, after rebuilding the index if need be."""
        if not self._index_checked and not self.index.pending:
            self._index_checked = True
            last = self.index.last()
            if self.index.suspect or (last is not None and not self._is_true(*last)):
                self.rebuild_indexes()
        entry = look_up()
        if entry is not None and not self._is_true(*entry):
            self.rebuild_indexes()
            entry = look_up()
        return 0 if entry is None else entry[1]

    def _is_true(self, offset: int, position: int) -> bool:
        """Whether an entry of the offset index fits the segment."""
        if position + HEADER_BYTES > self.size:
            return False
        header = self.header_at(position)
        return header.magic == MAGIC and header.last_offset == offset

    def largest_timestamp(self) -> int:
        """-1 when no record has one."""
        if not self._tail_known:
            self.load_tail()
        return self.max_timestamp

    # Loading, recovering, cutting.

    def load_tail(self) -> int:
        """Learn where the segment ends from its last index entries and the few batches
        after them. Where whole batches end: `size` unless the tail is torn."""
        start = 0
        self.next_offset, self.max_timestamp = self.base_offset, -1
        self.max_timestamp_offset = self.base_offset
        if self.index.suspect or self.time_index.suspect:
            return self.rebuild_indexes()
        entry, last_time = self.index.last(), self.time_index.last()
        if entry is not None:
            start = entry[1]
            if not self._is_true(*entry) or (
                last_time is None and self.header_at(start).max_timestamp >= 0
            ):
                return self.rebuild_indexes()
        if last_time is not None:
            self.max_timestamp, self.max_timestamp_offset = last_time
        end = start
        for position, header in scan_headers(self.fd(), start, self.size, LOOKUP_BLOCK_BYTES):
            if header.max_timestamp > self.max_timestamp:
                self.max_timestamp = header.max_timestamp
                self.max_timestamp_offset = header.last_offset
            self.next_offset = header.next_offset
            end = position + header.size_bytes
        if self.max_timestamp_offset >= max(self.next_offset, self.base_offset + 1):
            return self.rebuild_indexes()
        self.bytes_since_index = end - start
        self._tail_known = True
        return end

    def rebuild_indexes(self) -> int:
        """Make both anew from the headers. Where whole batches end."""
        self._reset()
        end = 0
        for position, header in scan_headers(self.fd(), 0, self.size):
            self.account(header.last_offset, header.max_timestamp, position, header.size_bytes)
            self.next_offset = header.next_offset
            end = position + header.size_bytes
        self.seal()
        return end

    def recover(self, on_batch: Callable[[BatchHeader], None], *, gaps: bool) -> int:
        """Check every batch, rebuild the indexes. Where sound batches end. `gaps`: offsets
        may be missing, as compaction leaves them."""
        self._reset()
        end = 0
        for position, header, data in scan_batches(self.fd(), 0, self.size):
            last = header.last_offset
            if (
                header.base_offset < self.next_offset
                or (header.base_offset > self.next_offset and not gaps)
                or last < header.base_offset
                or last - self.base_offset > MAX_RELATIVE_OFFSET
                or not crc_holds(data, 0, header)
            ):
                break
            self.account(last, header.max_timestamp, position, len(data))
            self.next_offset = last + 1
            end = position + len(data)
            on_batch(header)
        self.seal()
        return end

    def _reset(self) -> None:
        self.index.cut(0)
        self.time_index.cut(0)
        self.next_offset, self.max_timestamp = self.base_offset, -1
        self.max_timestamp_offset = self.base_offset
        self.first_timestamp = None
        self.bytes_since_index = 0
        self._index_checked = self._tail_known = True

    def cut(self, position: int, next_offset: int) -> None:
        """Drop the file from `position` on; `next_offset` is what stood there."""
        os.ftruncate(self.fd(), position)
        self.size = position
        self.index.truncate_to(next_offset)
        self.time_index.truncate_to(next_offset)
        if not position:
            self.first_timestamp = None
        self.load_tail()

    # Life.

    def sync(self) -> None:
        """fsync the batches. Not the indexes: what is looked up in them is checked, and
        they are made anew when they are wrong."""
        os.fsync(self.fd())

    def release(self) -> None:
        """Close descriptors. The next use opens them again. Writes nothing: this may be
        called because another log needs a descriptor."""
        if self._index is not None:
            self._index.release()
        if self._time_index is not None:
            self._time_index.release()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
            self._descriptors.closed(self)

    def retire(self) -> list[str]:
        """Close, and rename all files so that nobody opens them any more; their names.
        Who has one open can read on."""
        self.release()
        retired = []
        for suffix in SUFFIXES:
            doomed = self._path + suffix + DELETED_SUFFIX
            with contextlib.suppress(FileNotFoundError):
                os.replace(self._path + suffix, doomed)
                retired.append(doomed)
        return retired
