"""How a log grows: batches are staged, written together, and segments rolled.

A log has one writer and no locks. Invariant: `log_end` moves only when the bytes before it
are in the file, and everything before it is whole batches.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from crc32c import crc32c

from mobula.storage.admission import Admission
from mobula.storage.batch import (
    BatchHeader,
    place,
    stamp_log_append_time,
)
from mobula.storage.config import LOG_APPEND_TIME, NO_LIMIT, LogConfig
from mobula.storage.descriptors import Descriptors
from mobula.storage.errors import StorageError
from mobula.storage.files import sync_directory
from mobula.storage.loader import Loaded
from mobula.storage.position import LogPosition
from mobula.storage.positions import Positions
from mobula.storage.producer_state import ORIGIN_CLIENT, ProducerEntry
from mobula.storage.segment import (
    MAX_RELATIVE_OFFSET,
    MAX_SEGMENT_BYTES,
    Mark,
    Segment,
    segment_name,
)


class StagedAppend(NamedTuple):
    base_offset: int
    last_offset: int
    log_append_time_ms: int
    """-1 unless the topic stamps log append time."""
    duplicate: bool
    """The batch is in the log already, at these offsets: nothing was staged."""


class LogWriter:
    """The base of `Log`."""

    def __init__(
        self,
        directory: Path,
        loaded: Loaded,
        *,
        topic_id: bytes,
        config: LogConfig,
        now_ms: int,
        descriptors: Descriptors,
    ) -> None:
        self.directory = directory
        self.topic_id = topic_id
        self.generation = 0
        """Grows with each truncation."""
        self.recovery = loaded.recovery
        """None when the log was closed cleanly and is whole."""
        self.recovery_point = loaded.recovery_point
        """Everything before it is fsynced: goes to recovery-point-offset-checkpoint."""
        self.log_start_offset = loaded.log_start_offset
        self.log_end = loaded.log_end
        self.offline = False
        """A disk error left the log in a state that cannot be trusted. Open it anew."""
        self._closed = False
        self._descriptors = descriptors
        self._segments = loaded.segments
        self._active = loaded.segments[-1]
        self._epochs = loaded.epochs
        self._producers = loaded.producers
        self._snapshots = loaded.snapshots
        self._positions = Positions(self._segments, loaded.log_end)
        self._doomed: list[tuple[int, str]] = []
        """Renamed files and when they go; 0: the delay begins at the next look."""
        self._changed = loaded.recovery is not None
        """Since the log was opened: there is something to seal when it is closed."""
        self._names_unsynced = True
        self._syncing_generation = 0
        self._staged: list[memoryview] = []
        self._staged_offset = loaded.log_end.offset
        self._staged_position = loaded.log_end.position
        self._void = False
        """Something staged was lost, and the caller has not asked what yet."""
        self._mark: Mark | None = None
        """The active segment before the first batch that is not written yet."""
        self._undo: list[tuple[int, ProducerEntry | None]] = []
        self._now_ms = self._flushed_ms = now_ms
        self.reconfigure(config)

    def reconfigure(self, config: LogConfig) -> None:
        """Later appends, rolls and retention follow `config`."""
        self.config = config
        self._admission = Admission(config)
        self._stamps_append_time = config.message_timestamp_type == LOG_APPEND_TIME
        self._max_batch_bytes = min(config.max_message_bytes, config.segment_bytes)
        self._segment_bytes = min(config.segment_bytes, MAX_SEGMENT_BYTES)
        self._age_limit_ms = config.segment_ms - self._jitter_ms()

    def _jitter_ms(self) -> int:
        """Spreads the rolls of partitions that began together; the same at every start."""
        widest = min(self.config.segment_jitter_ms, self.config.segment_ms)
        if widest <= 0:
            return 0
        seed = self.topic_id + segment_name(self._active.base_offset).encode()
        return int(crc32c(seed + self.directory.name.encode())) % widest

    # The leader's side.

    def stage(
        self,
        batch: memoryview,
        header: BatchHeader,
        *,
        leader_epoch: int,
        now_ms: int,
        origin: int = ORIGIN_CLIENT,
    ) -> StagedAppend:
        """Check one batch, give it offsets and keep it until `flush_staged`.

        `batch` must stay untouched by the caller until then; it is rewritten in place.
        KafkaError: refused, nothing changed. StorageError: writing what was staged before
        failed; after the next `flush_staged` those whose last offset is not below
        `log_end.offset` are void. Until then nothing more is taken, so that no later batch
        can get the offsets of a void one.
        """
        if self._closed or self.offline or self._void:
            self._check_usable()
        admission = self._admission
        size = len(batch)
        if size > self._max_batch_bytes:
            admission.check_size(size)
        if admission.inspects:
            batch, header = admission.inspect(batch, header, now_ms)
            size = len(batch)
            admission.check_size(size)
        max_timestamp = header.max_timestamp
        append_time = -1
        if self._stamps_append_time:
            max_timestamp = append_time = now_ms
        elif max_timestamp - now_ms > admission.future_ms:
            admission.check_time(max_timestamp, now_ms)
        producer_id = header.producer_id
        if producer_id >= 0:
            found = self._producers.admit(header, origin)
            if found is not None:
                time_ms = found.timestamp if self._stamps_append_time else -1
                return StagedAppend(found.first_offset, found.last_offset, time_ms, True)

        offset = self._staged_offset
        last = offset + header.last_offset_delta
        self._now_ms = now_ms
        if leader_epoch > self._epochs.latest:
            self._assign_epoch(leader_epoch, offset)
        if self._must_roll(size, last, max_timestamp, now_ms):
            self._roll(now_ms)
        if append_time >= 0:
            stamp_log_append_time(batch, header.attributes, now_ms)
        place(batch, header.batch_length, offset, leader_epoch)
        active = self._active
        if self._mark is None:
            self._mark = active.mark()
        if producer_id >= 0:
            before = self._producers.record(header, offset, last, max_timestamp)
            self._undo.append((producer_id, before))
        active.account(last, max_timestamp, self._staged_position, size)
        self._staged.append(batch)
        self._staged_offset = last + 1
        self._staged_position += size
        return StagedAppend(offset, last, append_time, False)

    def flush_staged(self) -> LogPosition:
        """Write all that is staged; the new log end.

        StorageError: what is not below `log_end.offset` is void, or `offline` is set.
        """
        try:
            return self._write_staged()
        finally:
            self._void = False

    def _write_staged(self) -> LogPosition:
        if not self._staged:
            return self.log_end
        active = self._active
        position = self._staged_position
        try:
            active.write(self._staged, position - active.size)
            active.flush_indexes()
        except OSError as error:
            self._roll_back(error)
        self._staged = []
        self._undo.clear()
        self._mark = None
        self._changed = True
        active.size = position
        self.log_end = end = LogPosition(self._staged_offset, active.base_offset, position)
        self._positions.remember(end)
        if end.offset - self.recovery_point >= self.config.flush_messages:
            self.flush()
        elif self.config.flush_ms != NO_LIMIT:
            self.flush_if_due(self._now_ms)
        return end

    def _roll_back(self, error: OSError) -> None:
        """Forget what is staged. Raises StorageError."""
        assert self._mark is not None
        self._void = True
        mark, self._mark = self._mark, None
        self._staged = []
        self._staged_offset, _, self._staged_position = self.log_end
        for producer_id, before in reversed(self._undo):
            self._producers.restore(producer_id, before)
        self._undo.clear()
        try:
            self._active.roll_back(mark)
            self._epochs.truncate_from_end(self.log_end.offset + 1)
        except OSError as second:
            self.offline = True
            raise StorageError(
                f"log {self.directory} failed to write ({error}) and to undo it ({second})"
            ) from error
        raise StorageError(f"log {self.directory} failed to write: {error}") from error

    def _must_roll(self, size: int, last_offset: int, max_timestamp: int, now_ms: int) -> bool:
        active, position = self._active, self._staged_position
        return position > 0 and (
            position + size > self._segment_bytes
            or last_offset - active.base_offset > MAX_RELATIVE_OFFSET
            or active.is_due(max_timestamp, now_ms, self._age_limit_ms)
            or active.is_index_full(self.config)
        )

    def _roll(self, now_ms: int) -> None:
        """A new, empty active segment at the log end. What is staged is written first."""
        self._write_staged()
        with self._disk("roll"):
            self._active.seal()
            self._snapshots.take(self.log_end.offset, self._producers.entries)
            fresh = self._new_segment(self.log_end.offset, now_ms)
            self._active.release()
        self._add_active(fresh)

    def _new_segment(self, base_offset: int, now_ms: int) -> Segment:
        fresh = Segment(
            self.directory,
            base_offset,
            size=0,
            index_interval_bytes=self.config.index_interval_bytes,
            now_ms=now_ms,
            descriptors=self._descriptors,
        )
        fresh.create_file()
        self._names_unsynced = True
        return fresh

    def _add_active(self, segment: Segment) -> None:
        self._segments.append(segment)
        self._active = segment
        self._age_limit_ms = self.config.segment_ms - self._jitter_ms()
        self._end_at(LogPosition(segment.base_offset, segment.base_offset, 0))

    def _end_at(self, end: LogPosition) -> None:
        self.log_end = end
        self._staged_offset, _, self._staged_position = end
        self._positions.remember(end)

    # To the disk itself.

    def flush(self) -> None:
        """fsync: the recovery point becomes the log end."""
        self._check_usable()
        self._write_staged()
        if self.recovery_point < self.log_end.offset:
            with self._disk("fsync", fatal=True):
                for segment in self._unsynced():
                    segment.sync()
                    if segment is not self._active:
                        segment.release()
                if self._names_unsynced:
                    sync_directory(self.directory)
                    self._names_unsynced = False
        self.recovery_point = self.log_end.offset
        self._flushed_ms = self._now_ms

    def _unsynced(self) -> list[Segment]:
        bases = [segment.base_offset for segment in self._segments[1:]]
        ends = [*bases, self.log_end.offset]
        return [
            segment
            for segment, end in zip(self._segments, ends, strict=True)
            if end > self.recovery_point
        ]

    def flush_if_due(self, now_ms: int) -> bool:
        """`flush` when there is something to flush and flush.ms has passed since the last."""
        self._now_ms = now_ms
        if (
            self.recovery_point >= self.log_end.offset
            or now_ms - self._flushed_ms < self.config.flush_ms
        ):
            return False
        self.flush()
        return True

    def _assign_epoch(self, epoch: int, start_offset: int) -> None:
        with self._disk("write its epochs"):
            self._epochs.assign(epoch, start_offset)

    def _check_usable(self) -> None:
        if self._void:
            raise StorageError(f"log {self.directory} failed to write an earlier batch")
        if self._closed:
            raise StorageError(f"log {self.directory} is closed")
        if self.offline:
            raise StorageError(f"log {self.directory} is offline after a disk error")

    @contextlib.contextmanager
    def _disk(self, doing: str, *, fatal: bool = False) -> Iterator[None]:
        """An OSError inside becomes a StorageError; a fatal one takes the log offline."""
        try:
            yield
        except OSError as error:
            self.offline = self.offline or fatal
            raise self._failed(doing, error) from error

    def _failed(self, doing: str, error: OSError) -> StorageError:
        return StorageError(f"log {self.directory} failed to {doing}: {error}")
