"""Opening a log: from what is in its folder to what `Log` starts with.

After a clean close only the tail of the last segment is looked at. After anything else
every batch from the recovery point on is checked, what is torn is cut off, and indexes,
epochs and producers are made to agree with what is left.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from mobula.storage import epochs, partition_metadata
from mobula.storage.batch import BatchHeader
from mobula.storage.config import LogConfig
from mobula.storage.descriptors import Descriptors
from mobula.storage.epochs import LeaderEpochs
from mobula.storage.position import LogPosition
from mobula.storage.producer_state import ProducerEntry, ProducerStates
from mobula.storage.scan import LOOKUP_BLOCK_BYTES, scan_headers
from mobula.storage.segment import (
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SUFFIXES,
    TIME_INDEX_SUFFIX,
    Segment,
    segment_name,
)
from mobula.storage.snapshots import SNAPSHOT_SUFFIX, ProducerSnapshots

_LOOK_BACK_BYTES = (64 << 10, 512 << 10, 4 << 20)
_LOOK_BACK_BATCHES = 300
"""How far before a snapshot to look for what producers may send again: what was under way
when the log ended stands at its end."""
_STRAY_SUFFIXES = (DELETED_SUFFIX, ".cleaned", ".swap", ".tmp")


class Recovery(NamedTuple):
    """What opening a log that was not closed cleanly found."""

    scanned_bytes: int
    truncated_bytes: int
    truncated_at_offset: int
    """Where the log was cut, or ends though it was longer; -1 when nothing is missing."""
    reason: str
    """What is missing and how that is known; empty when nothing is."""
    rebuilt_indexes: int


@dataclass(slots=True, kw_only=True)
class Loaded:
    segments: list[Segment]
    epochs: LeaderEpochs
    producers: ProducerStates
    snapshots: ProducerSnapshots
    log_end: LogPosition
    log_start_offset: int
    recovery_point: int
    recovery: Recovery | None


class Loader:
    def __init__(
        self, directory: Path, config: LogConfig, now_ms: int, descriptors: Descriptors
    ) -> None:
        self._directory = directory
        self._config = config
        self._now_ms = now_ms
        self._descriptors = descriptors
        self._names: set[str] = set()
        self._segments: list[Segment] = []
        self._producers = ProducerStates()
        self._scanned = 0
        self._truncated = 0
        self._truncated_at = -1
        self._reason = ""
        self._rebuilt = 0

    def load(
        self, topic_id: bytes, *, clean: bool, recovery_point: int, log_start_offset: int
    ) -> Loaded:
        """OSError, StorageError: the folder cannot be used."""
        self._list()
        self._check_topic(topic_id)
        self._snapshots = ProducerSnapshots(self._directory, self._snapshot_offsets)
        self._rebuild_missing_indexes()
        epochs_lost = self._load_epochs()
        if not self._segments:
            self._create_first(log_start_offset)
            clean = True
        whole = clean and self._tail_is_whole(recovery_point)
        if whole:
            self._load_producers(self._segments[-1].next_offset)
        else:
            self._recover(self._segments[-1].base_offset if clean else recovery_point)
            self._note_lost_end(recovery_point)
        if self._segments[-1].next_offset < log_start_offset:
            self._start_over(log_start_offset)
        if epochs_lost:
            self._read_epochs_from_batches()
        active = self._segments[-1]
        log_end = LogPosition(active.next_offset, active.base_offset, active.size)
        start = max(log_start_offset, self._segments[0].base_offset)
        self._epochs.truncate_from_end(log_end.offset)
        self._epochs.truncate_from_start(start)
        for segment in self._segments:
            segment.release()
        return Loaded(
            segments=self._segments,
            epochs=self._epochs,
            producers=self._producers,
            snapshots=self._snapshots,
            log_end=log_end,
            log_start_offset=start,
            recovery_point=log_end.offset if whole else min(recovery_point, log_end.offset),
            recovery=None
            if whole
            else Recovery(
                self._scanned, self._truncated, self._truncated_at, self._reason, self._rebuilt
            ),
        )

    def _list(self) -> None:
        """The folder, looked at once. Leftovers of deletions and swaps are removed."""
        self._directory.mkdir(parents=True, exist_ok=True)
        sizes: dict[int, int] = {}
        self._snapshot_offsets: list[int] = []
        with os.scandir(self._directory) as entries:
            for entry in entries:
                name = entry.name
                if name.endswith(_STRAY_SUFFIXES):
                    os.unlink(entry.path)
                    continue
                self._names.add(name)
                stem, _, suffix = name.partition(".")
                if not stem.isdigit():
                    continue
                if suffix == LOG_SUFFIX[1:]:
                    sizes[int(stem)] = entry.stat().st_size
                elif suffix == SNAPSHOT_SUFFIX[1:]:
                    self._snapshot_offsets.append(int(stem))
        for name in [name for name in self._names if name.endswith(SUFFIXES)]:
            stem = name.partition(".")[0]
            if stem.isdigit() and int(stem) not in sizes:
                os.unlink(self._directory / name)
        self._segments = [self._segment(base, size) for base, size in sorted(sizes.items())]

    def _segment(self, base_offset: int, size: int) -> Segment:
        return Segment(
            self._directory,
            base_offset,
            size=size,
            index_interval_bytes=self._config.index_interval_bytes,
            now_ms=self._now_ms,
            descriptors=self._descriptors,
        )

    def _check_topic(self, topic_id: bytes) -> None:
        if partition_metadata.FILE_NAME in self._names:
            partition_metadata.check_topic_id(self._directory, topic_id)
        else:
            partition_metadata.store_topic_id(self._directory, topic_id)

    def _create_first(self, base_offset: int) -> None:
        segment = self._segment(base_offset, 0)
        segment.create_file()
        self._segments.append(segment)

    def _rebuild_missing_indexes(self) -> None:
        """Of rolled segments; the last one's are looked at in any case."""
        for segment in self._segments[:-1]:
            name = segment_name(segment.base_offset)
            if not {name + INDEX_SUFFIX, name + TIME_INDEX_SUFFIX} <= self._names:
                segment.rebuild_indexes()
                segment.release()
                self._rebuilt += 1

    def _load_epochs(self) -> bool:
        """True when the file is damaged, or missing although there are batches."""
        if epochs.FILE_NAME not in self._names:
            self._epochs = LeaderEpochs(self._directory)
            return any(segment.size for segment in self._segments)
        try:
            self._epochs = LeaderEpochs.load(self._directory)
        except ValueError:
            self._epochs = LeaderEpochs(self._directory)
            return True
        return False

    def _read_epochs_from_batches(self) -> None:
        self._epochs.clear()
        for segment in self._segments:
            for _, header in scan_headers(segment.fd(), 0, segment.size):
                self._learn_epoch(header)

    def _learn_epoch(self, header: BatchHeader) -> None:
        if header.partition_leader_epoch > self._epochs.latest:
            self._epochs.assign(header.partition_leader_epoch, header.base_offset)

    def _tail_is_whole(self, recovery_point: int) -> bool:
        active = self._segments[-1]
        if active.size:
            if active.load_tail() != active.size:
                return False
            active.release()
        return active.next_offset >= recovery_point

    def _note_lost_end(self, recovery_point: int) -> None:
        end = self._segments[-1].next_offset
        if end < recovery_point and self._truncated_at < 0:
            self._truncated_at = end
            self._reason = f"the log ends there, but was on disk up to offset {recovery_point}"

    def _load_producers(self, end_offset: int) -> None:
        self._producers.entries = producers_at(end_offset, self._snapshots, self._segments)

    def _recover(self, recovery_point: int) -> None:
        first = 0
        for at, segment in enumerate(self._segments):
            if segment.base_offset <= recovery_point:
                first = at
        self._load_producers(self._segments[first].base_offset)
        gaps = "compact" in self._config.cleanup_policy
        for at in range(first, len(self._segments)):
            segment = self._segments[at]
            if (
                at > first
                and not gaps
                and segment.base_offset != self._segments[at - 1].next_offset
            ):
                self._cut_after(at - 1, self._segments[at - 1].size)
                break
            self._rebuilt += 1
            end = segment.recover(self._recovered_batch, gaps=gaps)
            self._scanned += segment.size
            if end < segment.size:
                self._cut_after(at, end)
                break
            segment.release()
        self._snapshots.drop_after(self._segments[-1].next_offset)

    def _recovered_batch(self, header: BatchHeader) -> None:
        self._learn_epoch(header)
        self._producers.replay(header)

    def _cut_after(self, at: int, end: int) -> None:
        """Segment `at` is sound up to `end`; nothing after that is kept."""
        segment = self._segments[at]
        self._truncated += segment.size - end
        self._truncated_at = segment.next_offset
        self._reason = f"torn or damaged at byte {end} of {segment.path.name}"
        if end < segment.size:
            segment.cut(end, segment.next_offset)
        for later in self._segments[at + 1 :]:
            self._truncated += later.size
            for doomed in later.retire():
                os.unlink(doomed)
        del self._segments[at + 1 :]

    def _start_over(self, base_offset: int) -> None:
        """All that the log has lies before its start."""
        for segment in self._segments:
            for doomed in segment.retire():
                os.unlink(doomed)
        self._segments.clear()
        self._snapshots.clear()
        self._producers = ProducerStates()
        self._epochs.clear()
        self._create_first(base_offset)


def producers_at(
    end_offset: int, snapshots: ProducerSnapshots, segments: list[Segment]
) -> dict[int, ProducerEntry]:
    """What a log that ends at `end_offset` knows of producers: by its newest snapshot, and
    every batch between that and its end. Later snapshots are dropped."""
    snapshots.drop_after(end_offset)
    producers = ProducerStates()
    since = segments[0].base_offset
    taken = snapshots.newest(end_offset)
    if taken is not None:
        since, producers.entries = taken
        if producers.entries:
            producers.complete(_last_headers(segments, since))
    replay_producers(producers, segments, since, end_offset)
    return producers.entries


def _last_headers(segments: list[Segment], end_offset: int) -> list[BatchHeader]:
    """Of the last batches before `end_offset`: a few hundred, or what a few megabytes hold."""
    headers: list[BatchHeader] = []
    for wanted_bytes in _LOOK_BACK_BYTES:
        headers = _headers_in_last(wanted_bytes, segments, end_offset)
        if len(headers) >= _LOOK_BACK_BATCHES:
            break
    return headers


def _headers_in_last(
    wanted_bytes: int, segments: list[Segment], end_offset: int
) -> list[BatchHeader]:
    found: list[BatchHeader] = []
    for segment in reversed(segments):
        if wanted_bytes <= 0:
            break
        if segment.base_offset >= end_offset or not segment.size:
            continue
        located = segment.locate(end_offset)
        end = segment.size if located is None else located[0]
        start = segment.boundary_below(max(end - wanted_bytes, 0))
        headers = scan_headers(segment.fd(), start, end, LOOKUP_BLOCK_BYTES)
        found[:0] = [header for _, header in headers]
        wanted_bytes -= end - start
        segment.release()
    return found


def replay_producers(
    producers: ProducerStates, segments: list[Segment], since: int, end_offset: int
) -> None:
    """Tell `producers` of every batch in [since, end_offset)."""
    for at, segment in enumerate(segments):
        if segment.base_offset >= end_offset:
            return
        if at + 1 < len(segments) and segments[at + 1].base_offset <= since:
            continue
        if since >= end_offset:
            return
        start = segment.scan_start(max(since, segment.base_offset))
        for _, header in scan_headers(segment.fd(), start, segment.size):
            if header.base_offset >= end_offset:
                return
            if header.base_offset >= since:
                producers.replay(header)
