"""Which leader epoch began at which offset: the file `leader-epoch-checkpoint`.

Invariant: epochs and start offsets both grow from entry to entry.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from pathlib import Path

from mobula.storage.checkpoints import format_checkpoint, parse_checkpoint
from mobula.storage.files import overwrite, read_small

FILE_NAME = "leader-epoch-checkpoint"
UNKNOWN = (-1, -1)


class LeaderEpochs:
    """Every change is written at once, in place and without fsync: batches carry their
    epochs, and opening the log mends what a crash left half written."""

    def __init__(self, directory: Path, entries: list[tuple[int, int]] | None = None) -> None:
        self._path = f"{directory}/{FILE_NAME}"
        self.entries: list[tuple[int, int]] = entries or []
        """(epoch, start offset)"""
        self.latest = self.entries[-1][0] if self.entries else -1

    @classmethod
    def load(cls, directory: Path) -> LeaderEpochs:
        """ValueError when the file is damaged; no file is no epochs."""
        try:
            text = read_small(f"{directory}/{FILE_NAME}").decode()
        except FileNotFoundError:
            return cls(directory)
        entries = [(int(epoch), int(start)) for epoch, start in parse_checkpoint(text, 2)]
        for before, after in pairwise(entries):
            if before[0] >= after[0] or before[1] > after[1]:
                raise ValueError(f"{FILE_NAME} does not grow: {before} then {after}")
        return cls(directory, entries)

    def assign(self, epoch: int, start_offset: int) -> bool:
        """`epoch` begins at `start_offset`. Entries that contradict it are dropped."""
        if self.entries:
            last_epoch, last_start = self.entries[-1]
            if epoch == last_epoch and start_offset >= last_start:
                return False
        kept = self.entries
        while kept and (kept[-1][0] >= epoch or kept[-1][1] >= start_offset):
            kept.pop()
        kept.append((epoch, start_offset))
        self._store()
        return True

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """(largest known epoch not above `epoch`, where it ends), as Kafka answers."""
        if epoch == -1:
            return UNKNOWN
        if epoch == self.latest:
            return epoch, log_end_offset
        above = bisect_right(self.entries, epoch, key=lambda entry: entry[0])
        if above == len(self.entries):
            return UNKNOWN
        end = self.entries[above][1]
        return (self.entries[above - 1][0], end) if above else (epoch, end)

    def epoch_of(self, offset: int) -> int:
        """The epoch in which `offset` was written; -1 when unknown."""
        found = bisect_right(self.entries, offset, key=lambda entry: entry[1])
        return self.entries[found - 1][0] if found else -1

    def truncate_from_end(self, end_offset: int) -> None:
        """The log ends at `end_offset` now."""
        if self.entries and self.entries[-1][1] >= end_offset:
            while self.entries and self.entries[-1][1] >= end_offset:
                self.entries.pop()
            self._store()

    def truncate_from_start(self, start_offset: int) -> None:
        """The log starts at `start_offset` now: the epoch that covers it starts there."""
        covering = bisect_right(self.entries, start_offset, key=lambda entry: entry[1])
        if not covering:
            return
        first = (self.entries[covering - 1][0], start_offset)
        if covering > 1 or self.entries[0] != first:
            self.entries[:covering] = [first]
            self._store()

    def clear(self) -> None:
        if self.entries:
            self.entries = []
            self._store()

    def _store(self) -> None:
        self.latest = self.entries[-1][0] if self.entries else -1
        overwrite(self._path, format_checkpoint(self.entries).encode())
