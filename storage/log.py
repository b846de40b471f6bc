"""One partition's log: its segments, and the only way to change them.

A leader stages batches and flushes them together (`writer.py`); a follower appends what its
leader wrote. Truncation and retention are in `cutter.py`, opening and recovery in
`loader.py`; here are the follower's side, reading, and the log's life.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

from mobula.protocol.errors import ErrorCode, KafkaError
from mobula.storage import time_lookup
from mobula.storage.batch import HEADER_BYTES, LOG_OVERHEAD, BatchHeader, parse_header
from mobula.storage.config import LogConfig
from mobula.storage.cutter import LogCutter
from mobula.storage.descriptors import SHARED, Descriptors
from mobula.storage.errors import RejectedBatchesError, StorageError
from mobula.storage.files import sync_directory, sync_file, uuid_text
from mobula.storage.follow import first_batch_bytes, read_piece, verify_batches
from mobula.storage.loader import Loader, Recovery
from mobula.storage.position import LogPosition
from mobula.storage.positions import LogRange
from mobula.storage.producer_state import (
    ORIGIN_CLIENT,
    ORIGIN_COORDINATOR,
    ORIGIN_REPLICATION,
)
from mobula.storage.segment import MAX_RELATIVE_OFFSET, MAX_SEGMENT_BYTES
from mobula.storage.time_lookup import TimestampOffset
from mobula.storage.writer import StagedAppend

__all__ = [
    "ORIGIN_CLIENT",
    "ORIGIN_COORDINATOR",
    "ORIGIN_REPLICATION",
    "Log",
    "LogPosition",
    "LogRange",
    "Recovery",
    "RejectedBatchesError",
    "StagedAppend",
    "StorageError",
    "TimestampOffset",
]


class Log(LogCutter):
    @classmethod
    def open(
        cls,
        directory: Path,
        *,
        topic_id: bytes,
        config: LogConfig,
        now_ms: int,
        clean: bool,
        recovery_point: int,
        log_start_offset: int = 0,
        descriptors: Descriptors = SHARED,
    ) -> Log:
        """Create or recover. StorageError when the folder is another topic's or unreadable.

        `clean`: the broker closed all its logs before it ended. No file stays open.
        """
        try:
            loaded = Loader(directory, config, now_ms, descriptors).load(
                topic_id,
                clean=clean,
                recovery_point=recovery_point,
                log_start_offset=log_start_offset,
            )
        except OSError as error:
            raise StorageError(f"log {directory} cannot be opened: {error}") from error
        return cls(
            directory,
            loaded,
            topic_id=topic_id,
            config=config,
            now_ms=now_ms,
            descriptors=descriptors,
        )

    # The follower's side.

    def append_as_follower(
        self,
        data: memoryview,
        *,
        max_leader_epoch: int | None = None,
        segment_base: int | None = None,
    ) -> LogPosition:
        """Append whole batches as the leader wrote them; the new log end.

        `segment_base`: the leader's segment they come from; the log rolls there too.
        RejectedBatchesError: the log is as it was.
        """
        if self._append_copies(data, max_leader_epoch, segment_base) != len(data):
            raise RejectedBatchesError("the last batch is torn")
        return self.log_end

    def append_range(
        self,
        source_fd: int,
        position: int,
        length: int,
        max_leader_epoch: int,
        *,
        segment_base: int | None = None,
    ) -> LogPosition:
        """The same from the leader's segment file, whose bytes may change under us.

        RejectedBatchesError: the log ends after the last batch that was sound. OSError:
        the leader's file could not be read.
        """
        at_least = 0
        while length:
            piece = read_piece(source_fd, position, length, at_least)
            taken = self._append_copies(piece, max_leader_epoch, segment_base)
            at_least = 0 if taken else first_batch_bytes(piece, length)
            position += taken
            length -= taken
        return self.log_end

    def _append_copies(
        self, data: memoryview, max_leader_epoch: int | None, segment_base: int | None
    ) -> int:
        """Append the whole batches in `data`, or none of them; their bytes."""
        self._check_usable()
        self._write_staged()
        start = self._start_of_copies(data)
        latest_epoch = self._epochs.epoch_of(start - 1)
        batches, end = verify_batches(data, start, latest_epoch, max_leader_epoch)
        if not batches:
            return 0
        if start != self.log_end.offset:
            log_start_offset = self.log_start_offset
            self.truncate_fully_and_start_at(start)
            self.log_start_offset = log_start_offset
        if self._epochs.latest > batches[0][1].partition_leader_epoch:
            # An epoch of our own in which nothing was written.
            with self._disk("write its epochs"):
                self._epochs.truncate_from_end(start)
        try:
            self._write_copies(data, batches, end, segment_base)
        finally:
            # Nobody but the caller waits for what was not written, and it hears of it now.
            self._void = False
            if batches[-1][1].partition_leader_epoch > self._epochs.latest:
                self._learn_epochs(batches)
        return end

    def _write_copies(
        self,
        data: memoryview,
        batches: list[tuple[int, BatchHeader]],
        end: int,
        segment_base: int | None,
    ) -> None:
        begin = 0
        for at, header in batches:
            size = LOG_OVERHEAD + header.batch_length
            last = header.base_offset + header.last_offset_delta
            if self._must_roll_copy(header, size, last, segment_base):
                self._staged += [data[begin:at]] if at > begin else []
                begin = at
                self._roll(self._now_ms)
            self._account_copy(header, size, last)
        self._staged.append(data[begin:end])
        self.flush_staged()

    def _learn_epochs(self, batches: list[tuple[int, BatchHeader]]) -> None:
        """Of the copies that are in the log, all of them or not."""
        for _, header in batches:
            if (
                header.partition_leader_epoch > self._epochs.latest
                and header.base_offset < self.log_end.offset
            ):
                self._assign_epoch(header.partition_leader_epoch, header.base_offset)

    def _start_of_copies(self, data: memoryview) -> int:
        """Where the first batch must begin: at log end. An empty log may also begin in
        the middle of a batch, when its leader's log does."""
        end = self.log_end.offset
        if self._active.size or len(self._segments) > 1 or len(data) < HEADER_BYTES:
            return end
        first = parse_header(data)
        return first.base_offset if first.base_offset < end <= first.last_offset else end

    def _must_roll_copy(
        self, header: BatchHeader, size: int, last: int, segment_base: int | None
    ) -> bool:
        position = self._staged_position
        if not position:
            return False
        if segment_base is None:
            return self._must_roll(size, last, header.max_timestamp, self._now_ms)
        return (
            segment_base == header.base_offset
            or position + size > MAX_SEGMENT_BYTES
            or last - self._active.base_offset > MAX_RELATIVE_OFFSET
        )

    def _account_copy(self, header: BatchHeader, size: int, last: int) -> None:
        active, position, max_timestamp = self._active, self._staged_position, header.max_timestamp
        if self._mark is None:
            self._mark = active.mark()
        if header.producer_id >= 0 and not header.is_control:
            before = self._producers.record(header, header.base_offset, last, max_timestamp)
            self._undo.append((header.producer_id, before))
        active.account(last, max_timestamp, position, size)
        self._staged_offset = last + 1
        self._staged_position = position + size

    # Where things are.

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self._segments)

    @property
    def segment_bases(self) -> list[int]:
        return [segment.base_offset for segment in self._segments]

    def segment_path(self, segment_base: int) -> Path:
        return self._positions.segment_at(segment_base).path

    def position_of(self, offset: int) -> LogPosition:
        """Where `offset` lies; inside a batch: that batch's begin. KafkaError
        offset_out_of_range outside of the log."""
        try:
            return self._positions.find(offset, self.log_end)
        except OSError as error:
            raise self._failed("read", error) from error

    def ranges_from(self, offset: int, max_bytes: int) -> tuple[list[LogRange], int]:
        """Whole batches from `offset` on, at least one if there is any, and the offset
        after the last. KafkaError offset_out_of_range outside of the log."""
        if not self.log_start_offset <= offset <= self.log_end.offset:
            raise KafkaError(
                ErrorCode.offset_out_of_range,
                f"offset {offset} is not between {self.log_start_offset} and {self.log_end.offset}",
            )
        try:
            return self._positions.ranges(offset, max_bytes, self.log_end)
        except OSError as error:
            raise self._failed("read", error) from error

    def read(self, log_range: LogRange) -> memoryview:
        """The bytes of a range (for pulls that carry bytes)."""
        with self._disk("read"):
            fd = self._positions.segment_at(log_range.segment_base).fd()
            return memoryview(os.pread(fd, log_range.length, log_range.position))

    def offset_for_timestamp(self, timestamp: int, upto_offset: int) -> TimestampOffset | None:
        """The first record below `upto_offset` whose timestamp is not before `timestamp`."""
        with self._disk("read"):
            return time_lookup.first_since(
                self._segments, timestamp, self.log_start_offset, upto_offset
            )

    def max_timestamp(self, upto_offset: int) -> TimestampOffset | None:
        """The first record with the largest timestamp, below `upto_offset`."""
        with self._disk("read"):
            return time_lookup.largest(self._segments, self.log_start_offset, upto_offset)

    # Leader epochs.

    @property
    def latest_epoch(self) -> int:
        """Of the last entry of the epoch file; -1 when there is none."""
        return self._epochs.latest

    def assign_epoch(self, epoch: int, start_offset: int) -> None:
        """The leader of `epoch` begins to write at `start_offset`."""
        self._assign_epoch(epoch, start_offset)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """(largest epoch not above `epoch`, where it ends); (-1, -1) when unknown."""
        return self._epochs.end_offset_for(epoch, self.log_end.offset)

    # Life.

    def rolled_unsynced(self) -> Callable[[], int] | None:
        """Work for another thread: fsync rolled segments, so that recovery need not read
        them. Give its result to `synced`. OSError: the disk failed."""
        if self.recovery_point >= self._active.base_offset:
            return None
        self._syncing_generation = self.generation
        paths = [segment.path for segment in self._unsynced()[:-1]]
        return partial(_sync_up_to, paths, self.directory, self._active.base_offset)

    def synced(self, offset: int) -> None:
        """The work of the last `rolled_unsynced` is done. Void after a truncation: what
        was fsynced may not be what stands there now."""
        if self.generation == self._syncing_generation:
            self.recovery_point = max(self.recovery_point, offset)

    def release_files(self) -> None:
        """Close descriptors; they are opened again when needed."""
        with self._disk("close its files"):
            for segment in self._segments:
                segment.release()

    def close(self, *, sync: bool = True) -> None:
        """Leave the folder so that the next open is cheap. Idempotent.

        `sync` False leaves out fsync: then the recovery point stays where it was.
        """
        if self._closed:
            return
        if not self.offline:
            self._write_staged()
            with self._disk("close"):
                if self._changed:
                    self._active.seal()
                if self.log_end.offset > self._segments[0].base_offset:
                    self._snapshots.take(self.log_end.offset, self._producers.entries)
            if sync:
                self.flush()
        self._closed = True
        self.release_files()

    def delete(self) -> None:
        """Close and remove the folder with everything in it."""
        self._closed = True
        self._staged = []
        with self._disk("delete"):
            for segment in self._segments:
                segment.release()
            # A crash in between leaves a folder whose name says what it is.
            doomed = self.directory.with_name(
                f"{self.directory.name}.{uuid_text(self.topic_id)}-delete"
            )
            self.directory.rename(doomed)
            shutil.rmtree(doomed)


def _sync_up_to(paths: list[Path], directory: Path, offset: int) -> int:
    for path in paths:
        sync_file(path)
    sync_directory(directory)
    return offset
