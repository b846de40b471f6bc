"""The deadlines of one shard, by name: one wheel, and one alarm of the event loop for it.

Invariant: a name has at most one deadline; to schedule it again replaces it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from mobula.actors.end_of_turn import Scheduler, Timer
from mobula.actors.purgatory.timing_wheel import TimerEntry, TimingWheel

Due = Callable[[], None]


class _Named(TimerEntry):
    __slots__ = ("due", "name")

    def __init__(self, deadline_ms: int, name: Hashable, due: Due) -> None:
        super().__init__(deadline_ms)
        self.name = name
        self.due = due


class Timers:
    def __init__(self, scheduler: Scheduler, now_ms: Callable[[], int]) -> None:
        """`now_ms` is monotonic."""
        self._scheduler = scheduler
        self._now_ms = now_ms
        self._wheel = TimingWheel(now_ms())
        self._entries: dict[Hashable, _Named] = {}
        self._alarm: Timer | None = None
        self._alarm_ms = 0

    def __contains__(self, name: Hashable) -> bool:
        return name in self._entries

    def schedule(self, name: Hashable, delay_ms: int, due: Due) -> None:
        self.cancel(name)
        entry = _Named(self._now_ms() + max(1, delay_ms), name, due)
        self._entries[name] = entry
        self._wheel.insert(entry)
        self._arm()

    def cancel(self, name: Hashable) -> None:
        entry = self._entries.pop(name, None)
        if entry is not None:
            self._wheel.cancel(entry)

    def close(self) -> None:
        """Nothing is due any more."""
        for name in list(self._entries):
            self.cancel(name)
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _arm(self) -> None:
        next_ms = self._wheel.next_deadline_ms()
        if next_ms is None or (self._alarm is not None and self._alarm_ms <= next_ms):
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_ms = next_ms
        delay_s = max(0, next_ms - self._now_ms()) / 1000
        self._alarm = self._scheduler.call_later(delay_s, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        for entry in self._wheel.advance(self._now_ms()):
            assert isinstance(entry, _Named)
            # A deadline that fell due before it may have cancelled or replaced this one.
            if self._entries.get(entry.name) is entry:
                del self._entries[entry.name]
                entry.due()
        self._arm()
