"""A partition's files for other processes than their writer: what a gateway fetches from.

The published row says how far a reader may go; up to there the files do not change, but
for segments that retention takes away. Nothing here asks the writer anything.
"""

from __future__ import annotations

import contextlib
import os
import struct
from bisect import bisect_right, insort
from itertools import islice
from pathlib import Path

from mobula.storage.batch import HEADER_BYTES, LOG_OVERHEAD, iter_headers, parse_header
from mobula.storage.descriptors import SHARED, Descriptors
from mobula.storage.position import LogPosition
from mobula.storage.scan import LOOKUP_BLOCK_BYTES, scan_headers
from mobula.storage.segment import INDEX_SUFFIX, LOG_SUFFIX, segment_name

_ENTRY = struct.Struct(">II")
_RELATIVE = struct.Struct(">I")
_HINTS_KEPT = 64
_WORTH_CUTTING_BYTES = 32 * 1024
"""A batch of this size: to look for the cut one costs less than to carry it."""


class SegmentGoneError(Exception):
    """The segment was deleted: look the offset up again."""


class _SegmentFile:
    """One segment opened for reading, with as much of its offset index as was needed."""

    __slots__ = ("_descriptors", "_index", "_path", "base_offset", "fd")

    def __init__(self, directory: Path, base_offset: int, descriptors: Descriptors) -> None:
        """FileNotFoundError when it is gone."""
        self._path = str(directory / segment_name(base_offset))
        self._descriptors = descriptors
        self._index = b""
        self.base_offset = base_offset
        self.fd = os.open(self._path + LOG_SUFFIX, os.O_RDONLY)
        descriptors.opened(self)

    def release(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
            self._index = b""
            self._descriptors.closed(self)

    def locate(self, offset: int, end: int) -> int | None:
        """Where the first batch in [0, end) begins that ends at `offset` or after it."""
        start, last_offset = self._indexed(offset)
        found = self._scan(offset, start, end, last_offset)
        if found is None and start:
            # The index is wrong, and only the writer may mend it.
            found = self._scan(offset, 0, end, None)
        return found

    def _scan(self, offset: int, start: int, end: int, last_offset: int | None) -> int | None:
        """`last_offset`: of the batch at `start`, if the index is right."""
        for position, header in scan_headers(self.fd, start, end, LOOKUP_BLOCK_BYTES):
            found = header.base_offset + header.last_offset_delta
            if position == start and last_offset is not None and found != last_offset:
                return None
            if found >= offset:
                return position
        return None

    def _indexed(self, offset: int) -> tuple[int, int | None]:
        """(position, last offset) of an indexed batch that does not stand after `offset`."""
        relative = offset - self.base_offset
        known = len(self._index)
        if not known or _RELATIVE.unpack_from(self._index, known - 8)[0] < relative:
            self._read_index_further()
        index = self._index
        slot = bisect_right(
            range(len(index) // 8),
            relative,
            key=lambda at: _RELATIVE.unpack_from(index, at * 8)[0],
        )
        if not slot:
            return 0, None
        found, position = _ENTRY.unpack_from(index, (slot - 1) * 8)
        return position, self.base_offset + found

    def _read_index_further(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            fd = os.open(self._path + INDEX_SUFFIX, os.O_RDONLY)
            try:
                more = os.fstat(fd).st_size // 8 * 8 - len(self._index)
                if more > 0:
                    self._index += os.pread(fd, more, len(self._index))
            finally:
                os.close(fd)


class PartitionReader:
    """Keeps few files open, and forgets everything on `invalidate`."""

    def __init__(self, directory: Path, descriptors: Descriptors = SHARED) -> None:
        self._directory = directory
        self._descriptors = descriptors
        self._bases: list[int] | None = None
        self._open: dict[int, _SegmentFile] = {}
        self._hints: dict[int, LogPosition] = {}
        """Begins of batches by offset: a consumer goes on where it was told to."""

    def locate(self, offset: int, upto: LogPosition) -> LogPosition | None:
        """The begin of the batch that holds `offset`, `upto` itself for its own offset.

        None when `offset` is not in the log: after `upto`, or before the first segment.
        OSError: the files cannot be read.
        """
        hint = self._hints.get(offset)
        if hint is not None:
            return hint
        self._hint(upto)
        if offset >= upto.offset:
            return upto if offset == upto.offset else None
        for _ in range(3):
            base = self._base_of(offset, upto)
            if base is None:
                return None
            try:
                file = self._file(base)
                end = upto.position if base == upto.segment else os.fstat(file.fd).st_size
                found = file.locate(offset, end)
            except SegmentGoneError:
                continue
            if found is not None:
                at = LogPosition(offset, base, found)
                self._hint(at)
                return at
            after = self._next_base(base, upto)
            return None if after is None else LogPosition(offset, after, 0)
        return None

    def available(self, at: LogPosition, upto: LogPosition) -> int:
        """Bytes from `at` to `upto` or to the end of its segment, whichever comes first.
        SegmentGoneError: it was deleted."""
        if at.segment == upto.segment:
            return upto.position - at.position
        return os.fstat(self._file(at.segment).fd).st_size - at.position

    def read(self, segment: int, position: int, length: int) -> memoryview:
        """Those bytes, fewer at the end of the file. SegmentGoneError: it was deleted."""
        return memoryview(os.pread(self._file(segment).fd, length, position))

    def read_batches(
        self, at: LogPosition, upto: LogPosition, max_bytes: int, *, at_least_one: bool = True
    ) -> memoryview:
        """What a fetch from `at` answers: up to `max_bytes` of one segment, more only for
        a first batch that is larger. The last batch may be cut, as Kafka's fetch allows, where
        batches are small; a large one would be carried to the client to be thrown away.

        Goes on in the next segment when `at` is the end of its own. SegmentGoneError."""
        available = self.available(at, upto)
        if available <= 0 and at.segment < upto.segment:
            after = self._next_base(at.segment, upto)
            if after is None:
                raise SegmentGoneError(f"segment after {at.segment} is gone")
            return self.read_batches(
                LogPosition(at.offset, after, 0), upto, max_bytes, at_least_one=at_least_one
            )
        length = min(available, max_bytes)
        if length < HEADER_BYTES <= available and at_least_one:
            length = HEADER_BYTES
        data = self.read(at.segment, at.position, length)
        if not at_least_one or len(data) < HEADER_BYTES:
            return data if length == available or not at_least_one else data[:0]
        first = LOG_OVERHEAD + parse_header(data).batch_length
        if len(data) < first <= available:
            return self.read(at.segment, at.position, first)
        if first >= _WORTH_CUTTING_BYTES and len(data) < available:
            return self._whole(at, data)
        return data

    def _whole(self, at: LogPosition, data: memoryview) -> memoryview:
        """Without a cut batch at the end. Where that begins the client will go on."""
        end, next_offset = 0, at.offset
        for position, header in iter_headers(data):
            end, next_offset = position + header.size_bytes, header.next_offset
        if not end:
            return data
        self._hint(LogPosition(next_offset, at.segment, at.position + end))
        return data[:end]

    def invalidate(self) -> None:
        """The log was truncated, or its folder is another one now."""
        self._bases = None
        self._hints.clear()
        for file in self._open.values():
            file.release()
        self._open.clear()

    def _hint(self, at: LogPosition) -> None:
        hints = self._hints
        hints[at.offset] = at
        if len(hints) > 2 * _HINTS_KEPT:
            self._hints = dict(islice(hints.items(), _HINTS_KEPT, None))

    def _base_of(self, offset: int, upto: LogPosition) -> int | None:
        bases = self._listed(upto)
        at = bisect_right(bases, offset)
        return bases[at - 1] if at else None

    def _next_base(self, base: int, upto: LogPosition) -> int | None:
        bases = self._listed(upto)
        at = bisect_right(bases, base)
        return bases[at] if at < len(bases) else None

    def _listed(self, upto: LogPosition) -> list[int]:
        if self._bases is None or upto.segment > self._bases[-1]:
            self._bases = sorted(
                int(name[: -len(LOG_SUFFIX)])
                for name in os.listdir(self._directory)
                if name.endswith(LOG_SUFFIX) and name[: -len(LOG_SUFFIX)].isdigit()
            )
            if upto.segment not in self._bases:
                insort(self._bases, upto.segment)
        return self._bases

    def _file(self, base: int) -> _SegmentFile:
        file = self._open.get(base)
        if file is not None and file.fd >= 0:
            self._descriptors.used(file)
            return file
        try:
            file = _SegmentFile(self._directory, base, self._descriptors)
        except FileNotFoundError:
            self._forget(base)
            raise SegmentGoneError(f"segment {base} of {self._directory.name} is gone") from None
        self._open[base] = file
        return file

    def _forget(self, base: int) -> None:
        """A segment is gone, and what lay in it."""
        self._bases = None
        self._open.pop(base, None)
        self._hints = {at.offset: at for at in self._hints.values() if at.segment != base}
