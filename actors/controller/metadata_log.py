"""The metadata log on disk: what the cluster promised, through any crash.

A folder with one snapshot (a whole image as of an offset) and the records after it. All
records that are committed together are one frame: magic, length, CRC-32C, msgpack. A
snapshot is written beside, forced to disk and put in place by a rename; only then do the
files that it replaces go.

Invariant: what `commit` returned for is there after any crash. Never is a frame written
before the one before it is on disk, so a crash can spoil only the last one, which nobody
was told of: it is cut off. Damage before an intact frame is no crash; it is refused, for
cutting it would undo promises.
"""

from __future__ import annotations

import logging
import os
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from crc32c import crc32c

from mobula.storage.files import sync_directory

log = logging.getLogger(__name__)

FOLDER = "__cluster_metadata-0"
_MAGIC = b"MbMd"
_HEADER = struct.Struct(">4sII")
_MAX_FRAME_BYTES = 1 << 30
_fdatasync = getattr(os, "fdatasync", os.fsync)


class MetadataLogError(Exception):
    """The log cannot be used as it is. One sentence for the operator."""


class _Frame(msgspec.Struct, frozen=True, array_like=True):
    first_offset: int
    records: list[bytes]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Frame).decode


class Recovered(NamedTuple):
    """What was found: an image's records as of an offset, and the records after it."""

    snapshot_offset: int
    """-1: there is no snapshot."""
    snapshot: list[bytes]
    records: list[bytes]


class MetadataLog:
    """`open` first. One writer; every call runs to its end before the next."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._fd = -1
        self._snapshot_size = 0
        self.next_offset = 0
        self.records_since_snapshot = 0

    def open(self) -> Recovered:
        """Read everything, cut off a torn end, be ready to append."""
        self._directory.mkdir(parents=True, exist_ok=True)
        sync_directory(self._directory.parent)
        for leftover in self._directory.glob("*.tmp"):
            leftover.unlink()
        offset, snapshot = self._read_snapshot()
        records: list[bytes] = []
        logs = sorted(self._directory.glob("*.log"))
        for path in logs:
            self._read_log(path, offset, records, last=path == logs[-1])
        self._snapshot_size = len(snapshot)
        self.next_offset = offset + 1 + len(records)
        self.records_since_snapshot = len(records)
        self._drop_before(offset, keep=logs[-1] if logs else None)
        self._append_to(logs[-1] if logs else self._log_path(self.next_offset))
        # What was read may never have left the page cache, and will be acted upon.
        os.fsync(self._fd)
        return Recovered(offset, snapshot, records)

    def commit(self, records: Sequence[bytes]) -> None:
        """Write as one frame (after a crash all of it is there, or nothing) and force it to
        disk. After an OSError nothing can be said of the end of the log: open it anew."""
        _write(self._fd, _framed(self.next_offset, records))
        _fdatasync(self._fd)
        self.next_offset += len(records)
        self.records_since_snapshot += len(records)

    def wants_snapshot(self, every_records: int) -> bool:
        """Grown by that much, and to more than the image itself: so the cost stays a share."""
        return self.records_since_snapshot >= max(every_records, self._snapshot_size)

    def snapshot(self, records: Sequence[bytes]) -> None:
        """The image as of the last record, in place of everything so far."""
        offset = self.next_offset - 1
        path = self._directory / f"{offset:020}.snapshot"
        fresh = path.with_suffix(".tmp")
        fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            _write(fd, _framed(offset, records))
            os.fsync(fd)
        finally:
            os.close(fd)
        fresh.rename(path)
        sync_directory(self._directory)
        os.close(self._fd)
        self._append_to(self._log_path(self.next_offset))
        self._drop_before(offset, keep=self._log_path(self.next_offset))
        self._snapshot_size = len(records)
        self.records_since_snapshot = 0
        log.info("metadata snapshot written offset=%d records=%d", offset, len(records))

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _log_path(self, first_offset: int) -> Path:
        return self._directory / f"{first_offset:020}.log"

    def _append_to(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        sync_directory(self._directory)

    def _read_snapshot(self) -> tuple[int, list[bytes]]:
        paths = sorted(self._directory.glob("*.snapshot"))
        if not paths:
            return -1, []
        frames, good_bytes = _frames(paths[-1].read_bytes())
        if len(frames) != 1 or good_bytes != paths[-1].stat().st_size:
            raise MetadataLogError(
                f"the metadata snapshot {paths[-1]} is damaged; restore it from a copy"
            )
        return frames[0].first_offset, frames[0].records

    def _read_log(self, path: Path, snapshot_offset: int, into: list[bytes], last: bool) -> None:
        data = path.read_bytes()
        frames, good_bytes = _frames(data)
        if good_bytes < len(data):
            if not last or _frame_after(data, good_bytes):
                raise MetadataLogError(
                    f"the metadata log {path} is damaged at byte {good_bytes}, before its end; "
                    "restore it from a copy"
                )
            log.warning("torn end cut off file=%s bytes=%d", path, len(data) - good_bytes)
            _truncate(path, good_bytes)
        for frame in frames:
            expected = snapshot_offset + 1 + len(into)
            known = max(0, expected - frame.first_offset)
            if frame.first_offset > expected:
                raise MetadataLogError(
                    f"the metadata log {path} goes on at offset {frame.first_offset}, but "
                    f"offset {expected} is missing; restore it from a copy"
                )
            into += frame.records[known:]

    def _drop_before(self, offset: int, keep: Path | None) -> None:
        """Remove what the snapshot as of `offset` has replaced."""
        for path in self._directory.glob("*.snapshot"):
            if int(path.stem) < offset:
                path.unlink()
        for path in self._directory.glob("*.log"):
            if int(path.stem) <= offset and path != keep:
                path.unlink()


def _framed(first_offset: int, records: Sequence[bytes]) -> bytes:
    payload = _encode(_Frame(first_offset, list(records)))
    return _HEADER.pack(_MAGIC, len(payload), crc32c(payload)) + payload


def _frame_at(data: bytes, at: int) -> tuple[_Frame, int] | None:
    """The frame that begins here, and where it ends; None when there is no intact one."""
    if at + _HEADER.size > len(data):
        return None
    magic, length, crc = _HEADER.unpack_from(data, at)
    end = at + _HEADER.size + length
    # Zeros after a magic that reached the disk would else be an intact, empty payload.
    if magic != _MAGIC or not 0 < length <= _MAX_FRAME_BYTES or end > len(data):
        return None
    payload = data[at + _HEADER.size : end]
    if crc32c(payload) != crc:
        return None
    return _decode(payload), end


def _frames(data: bytes) -> tuple[list[_Frame], int]:
    """All frames up to the first that is not intact, and how many bytes they are."""
    frames: list[_Frame] = []
    at = 0
    while (found := _frame_at(data, at)) is not None:
        frame, at = found
        frames.append(frame)
    return frames, at


def _frame_after(data: bytes, at: int) -> bool:
    while (at := data.find(_MAGIC, at + 1)) >= 0:
        if _frame_at(data, at) is not None:
            return True
    return False


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _truncate(path: Path, length: int) -> None:
    fd = os.open(path, os.O_WRONLY)
    try:
        os.ftruncate(fd, length)
        os.fsync(fd)
    finally:
        os.close(fd)
