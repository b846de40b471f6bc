"""The transactions of one log: which are open, which ended, and how far all is decided.

A transaction begins with its producer's first batch and ends with a control batch, the
marker. What lies before the first transaction that is open is stable. One that has ended
counts as open until its marker is below the high watermark: a follower that leads next may
not have it.

Invariant: a producer has at most one open transaction.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_ENTRY = struct.Struct(">hqqqq")
_VERSION = 0
ENTRY_BYTES = _ENTRY.size


class AbortedTransaction(NamedTuple):
    """As it stands in a segment's `.txnindex`."""

    producer_id: int
    first_offset: int
    last_offset: int
    """Of the marker."""
    last_stable_offset: int
    """When the marker was written: whatever ends later ends after this offset."""


class _Ended(NamedTuple):
    first_offset: int
    last_offset: int


class Transactions:
    def __init__(self) -> None:
        self._open: dict[int, int] = {}
        """First offsets by producer id, in the order in which they began."""
        self._undecided: list[_Ended] = []
        """Ended, and their markers not yet below the high watermark."""

    def __contains__(self, producer_id: int) -> bool:
        return producer_id in self._open

    def began(self, producer_id: int, first_offset: int) -> None:
        """A transactional batch; only the first of a transaction matters."""
        self._open.setdefault(producer_id, first_offset)

    def ended(
        self, producer_id: int, marker_offset: int, *, aborted: bool
    ) -> AbortedTransaction | None:
        """A marker; what is to be noted in the index, if there is anything.

        A marker of a producer without an open transaction here says nothing.
        """
        first_offset = self._open.pop(producer_id, None)
        if first_offset is None:
            return None
        self._undecided.append(_Ended(first_offset, marker_offset))
        if not aborted:
            return None
        stable = next(iter(self._open.values()), marker_offset + 1)
        return AbortedTransaction(producer_id, first_offset, marker_offset, stable)

    def first_unstable(self) -> int | None:
        """Where read_committed must stop at the latest; None: at the high watermark."""
        first_open = next(iter(self._open.values()), None)
        first_ended = min((ended.first_offset for ended in self._undecided), default=None)
        if first_open is None or first_ended is None:
            return first_ended if first_open is None else first_open
        return min(first_open, first_ended)

    def last_stable(self, high_watermark: int) -> int:
        """The last stable offset."""
        unstable = self.first_unstable()
        return high_watermark if unstable is None else min(unstable, high_watermark)

    def high_watermark_moved(self, high_watermark: int) -> None:
        """Markers below it are decided for good."""
        if self._undecided:
            self._undecided = [e for e in self._undecided if e.last_offset >= high_watermark]

    def open_first_offsets(self) -> Iterator[tuple[int, int]]:
        """(producer id, first offset) of each open transaction, the oldest first."""
        return iter(self._open.items())

    def copy(self) -> Transactions:
        """To go back to when a write fails."""
        twin = Transactions()
        twin._open = dict(self._open)
        twin._undecided = list(self._undecided)
        return twin


def pack_aborted(entry: AbortedTransaction) -> bytes:
    return _ENTRY.pack(_VERSION, *entry)


def iter_aborted(data: bytes) -> Iterator[AbortedTransaction]:
    """The whole entries of an index. ValueError: of a version that is not known."""
    for version, *fields in _ENTRY.iter_unpack(data[: len(data) // ENTRY_BYTES * ENTRY_BYTES]):
        if version != _VERSION:
            raise ValueError(f"transaction index of version {version}, expected {_VERSION}")
        yield AbortedTransaction(*fields)


def aborted_between(
    entries: Iterable[AbortedTransaction], start: int, end: int
) -> tuple[list[AbortedTransaction], bool]:
    """Those with records in [start, end), of one segment's index; and whether later segments
    need not be asked, because what is noted there began after `end`."""
    found: list[AbortedTransaction] = []
    for entry in entries:
        if entry.last_offset >= start and entry.first_offset < end:
            found.append(entry)
        if entry.last_stable_offset >= end:
            return found, True
    return found, False
