"""The hierarchical timing wheel: deadlines with O(1) insert and cancel.

A level has 20 slots; a slot of the lowest level is one millisecond, a slot of each
higher level is as long as the whole level below. Levels are made when a deadline first
needs them. An entry far away waits in a coarse slot and moves down as its time comes
near, so nothing is ever sorted.

Invariant: an entry is in at most one slot, and a level's `occupied` bits name exactly
its slots that are not empty.
"""

from __future__ import annotations

SLOTS = 20
_ALL = (1 << SLOTS) - 1


class TimerEntry:
    """What can be put in a wheel. It belongs to one wheel at a time."""

    __slots__ = ("deadline_ms", "level", "slot")

    def __init__(self, deadline_ms: int) -> None:
        self.deadline_ms = deadline_ms
        self.level: _Level | None = None
        self.slot = 0


class _Level:
    __slots__ = ("occupied", "slots", "span_ms", "tick_ms")

    def __init__(self, tick_ms: int) -> None:
        self.tick_ms = tick_ms
        self.span_ms = tick_ms * SLOTS
        self.slots: list[dict[TimerEntry, None]] = [{} for _ in range(SLOTS)]
        self.occupied = 0

    def next_ms(self, now_ms: int) -> int | None:
        """When the nearest occupied slot begins."""
        occupied = self.occupied
        if not occupied:
            return None
        first = now_ms // self.tick_ms
        at = first % SLOTS
        turned = ((occupied >> at) | (occupied << (SLOTS - at))) & _ALL
        ahead = (turned & -turned).bit_length() - 1
        return (first + ahead) * self.tick_ms


class TimingWheel:
    """Pure: the caller brings the time, which never goes back."""

    def __init__(self, now_ms: int) -> None:
        self._now_ms = now_ms
        self._levels = [_Level(1)]
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def insert(self, entry: TimerEntry) -> bool:
        """False when the deadline has passed already: the entry is then in no slot."""
        if not self._place(entry):
            return False
        self._size += 1
        return True

    def cancel(self, entry: TimerEntry) -> None:
        """Take an entry out. Nothing happens when it is in no slot."""
        level = entry.level
        if level is None:
            return
        entry.level = None
        slot = level.slots[entry.slot]
        del slot[entry]
        if not slot:
            level.occupied &= ~(1 << entry.slot)
        self._size -= 1

    def advance(self, now_ms: int) -> list[TimerEntry]:
        """Move the time; returns the entries whose deadline is reached, earliest first."""
        expired: list[TimerEntry] = []
        while True:
            level, start_ms = self._nearest()
            if level is None or start_ms > now_ms:
                break
            self._now_ms = max(self._now_ms, start_ms)
            index = (start_ms // level.tick_ms) % SLOTS
            entries = level.slots[index]
            level.slots[index] = {}
            level.occupied &= ~(1 << index)
            for entry in entries:
                entry.level = None
                if not self._place(entry):
                    expired.append(entry)
        self._now_ms = max(self._now_ms, now_ms)
        self._size -= len(expired)
        return expired

    def next_deadline_ms(self) -> int | None:
        """No entry is due before this, None when there is no entry.

        It may be earlier than the first deadline by the width of a coarse slot: an
        `advance` then expires nothing, and the next answer is nearer.
        """
        level, start_ms = self._nearest()
        return None if level is None else start_ms

    def _place(self, entry: TimerEntry) -> bool:
        deadline_ms = entry.deadline_ms
        now_ms = self._now_ms
        if deadline_ms <= now_ms:
            return False
        for level in self._levels:
            tick_ms = level.tick_ms
            if deadline_ms < now_ms - now_ms % tick_ms + level.span_ms:
                break
        else:
            level = self._grow(deadline_ms)
            tick_ms = level.tick_ms
        slot = (deadline_ms // tick_ms) % SLOTS
        level.slots[slot][entry] = None
        level.occupied |= 1 << slot
        entry.level = level
        entry.slot = slot
        return True

    def _grow(self, deadline_ms: int) -> _Level:
        while True:
            level = _Level(self._levels[-1].span_ms)
            self._levels.append(level)
            if deadline_ms < self._now_ms - self._now_ms % level.tick_ms + level.span_ms:
                return level

    def _nearest(self) -> tuple[_Level | None, int]:
        nearest: _Level | None = None
        nearest_ms = 0
        now_ms = self._now_ms
        for level in self._levels:
            start_ms = level.next_ms(now_ms)
            # At a tie the coarse slot goes first: it may hold entries that are due then.
            if start_ms is not None and (nearest is None or start_ms <= nearest_ms):
                nearest, nearest_ms = level, start_ms
        return nearest, nearest_ms
