"""How a log shrinks: truncation at its end, retention and deleted records at its begin."""

from __future__ import annotations

import contextlib
import logging
import os

from mobula.protocol.errors import ErrorCode, KafkaError
from mobula.storage.loader import producers_at
from mobula.storage.position import LogPosition
from mobula.storage.retention import count_deletable
from mobula.storage.segment import Segment
from mobula.storage.writer import LogWriter

_log = logging.getLogger(__name__)


class LogCutter(LogWriter):
    """The base of `Log`. Files go by renaming: who has one open can read on."""

    def truncate_to(self, offset: int) -> bool:
        """Drop `offset` and all after it; a batch that holds it goes as a whole. False
        when there was nothing to drop."""
        self._check_usable()
        self._write_staged()
        if offset >= self.log_end.offset:
            # An epoch of our own that began at log end and has no records is none.
            with self._disk("write its epochs"):
                self._epochs.truncate_from_end(self.log_end.offset)
            return False
        if offset <= self._segments[0].base_offset:
            self.truncate_fully_and_start_at(offset)
            return True
        with self._disk("truncate", fatal=True):
            at = self._positions.find(offset, self.log_end)
            while self._segments[-1].base_offset > at.segment:
                self._retire(self._segments.pop())
            self._active = active = self._segments[-1]
            if at.position < active.size:
                end_offset = active.header_at(at.position).base_offset
                active.cut(at.position, end_offset)
            self._after_cut(LogPosition(active.next_offset, active.base_offset, active.size))
        return True

    def _after_cut(self, end: LogPosition) -> None:
        self.generation += 1
        self._changed = True
        self._positions.forget(end)
        self._end_at(end)
        self.recovery_point = min(self.recovery_point, end.offset)
        self._epochs.truncate_from_end(end.offset)
        self._producers.entries = producers_at(end.offset, self._snapshots, self._segments)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop everything; the log is empty and begins at `offset`."""
        self._check_usable()
        self._write_staged()
        with self._disk("truncate", fatal=True):
            while self._segments:
                self._retire(self._segments.pop())
            self._snapshots.clear()
            self._producers.entries = {}
            self._epochs.clear()
            self._add_active(self._new_segment(offset, self._now_ms))
            self.log_start_offset = self.recovery_point = offset
            self.generation += 1
            self._changed = True
            self._positions.forget(self.log_end)

    def advance_log_start(self, offset: int) -> bool:
        """Records before `offset` count as deleted. False when they did already."""
        if offset <= self.log_start_offset:
            return False
        if offset > self.log_end.offset:
            raise KafkaError(
                ErrorCode.offset_out_of_range,
                f"log start cannot move to {offset}, the log ends at {self.log_end.offset}",
            )
        self.log_start_offset = offset
        with self._disk("write its epochs"):
            self._epochs.truncate_from_start(offset)
        return True

    def apply_retention(self, now_ms: int, high_watermark: int) -> int:
        """Delete whole segments that are past retention; how many. Also removes files
        that earlier calls deleted, and forgets expired producers."""
        self._check_usable()
        self._write_staged()
        with self._disk("apply retention"):
            self._remove_doomed(now_ms)
            self._producers.expire(now_ms, self.config.producer_id_expiration_ms)
            count = count_deletable(
                self._segments,
                self.config,
                log_start_offset=self.log_start_offset,
                log_end_offset=self.log_end.offset,
                high_watermark=high_watermark,
                now_ms=now_ms,
            )
            if not count:
                return 0
            if count == len(self._segments):
                self._roll(now_ms)
            for segment in self._segments[:count]:
                self._retire(segment)
            del self._segments[:count]
            self._positions.forget(self.log_end)
            start = max(self.log_start_offset, self._segments[0].base_offset)
            self.log_start_offset = start
            self.recovery_point = max(self.recovery_point, start)
            self._epochs.truncate_from_start(start)
            self._snapshots.drop_before(start)
        _log.info("deleted segments log=%s count=%d start=%d", self.directory.name, count, start)
        return count

    def _retire(self, segment: Segment) -> None:
        self._doomed += [(0, path) for path in segment.retire()]

    def _remove_doomed(self, now_ms: int) -> None:
        due = now_ms + self.config.file_delete_delay_ms
        kept = []
        for at_ms, path in self._doomed:
            if not at_ms and due > now_ms:
                kept.append((due, path))
            elif at_ms > now_ms:
                kept.append((at_ms, path))
            else:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)
        self._doomed = kept
