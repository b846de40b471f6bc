"""Time, the end of a turn and a log, all in the hands of a test."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from heapq import heappop, heappush
from itertools import count
from typing import Any

from mobula.actors.coordinator.outcome import Outcome
from mobula.actors.coordinator.shard import Appended
from mobula.protocol.errors import KafkaError


class _Alarm:
    def __init__(self, callback: Callable[[], object]) -> None:
        self.callback: Callable[[], object] | None = callback

    def cancel(self) -> None:
        self.callback = None


class VirtualScheduler:
    """A Scheduler whose time moves when told to."""

    def __init__(self) -> None:
        self.now_ms = 1_000_000
        self._soon: list[Callable[[], object]] = []
        self._later: list[tuple[int, int, _Alarm]] = []
        self._order = count()

    def time_ms(self) -> int:
        return self.now_ms

    def call_soon(self, callback: Callable[[], object], /) -> None:
        self._soon.append(callback)

    def call_later(self, delay: float, callback: Callable[[], object], /) -> _Alarm:
        alarm = _Alarm(callback)
        at_ms = self.now_ms + max(0, round(delay * 1000))
        heappush(self._later, (at_ms, next(self._order), alarm))
        return alarm

    def turn(self) -> None:
        while self._soon:
            soon, self._soon = self._soon, []
            for callback in soon:
                callback()

    def advance(self, by_ms: int) -> None:
        end_ms = self.now_ms + by_ms
        self.turn()
        while self._later and self._later[0][0] <= end_ms:
            at_ms, _, alarm = heappop(self._later)
            self.now_ms = max(self.now_ms, at_ms)
            if alarm.callback is not None:
                alarm.callback()
            self.turn()
        self.now_ms = end_ms


class VirtualJournal:
    """A log that commits when told to."""

    def __init__(self) -> None:
        self.records: list[Any] = []
        self.waiting: list[tuple[int, Callable[[Appended], None]]] = []
        self.loads: list[Callable[[bool], None]] = []
        self.enough_replicas = True

    def can_append(self) -> bool:
        return self.enough_replicas

    def append(self, records: Sequence[Any], done: Callable[[Appended], None]) -> None:
        base = len(self.records)
        self.records += records
        self.waiting.append((base, done))

    def commit(self) -> None:
        waiting, self.waiting = self.waiting, []
        for base, done in waiting:
            done(Appended(None, base))

    def fail(self, error: KafkaError, kept: int) -> None:
        """The appends that wait fail; so many records stay in the log."""
        waiting, self.waiting = self.waiting, []
        del self.records[kept:]
        for _, done in waiting:
            done(Appended(error))

    def load(
        self, take: Callable[[Any], None], done: Callable[[int | None], None]
    ) -> Callable[[], None]:
        def finish(readable: bool) -> None:
            for record in self.records:
                take(record)
            done(len(self.records) if readable else None)

        self.loads.append(finish)
        return lambda: self.loads.remove(finish)

    def finish_load(self, *, readable: bool = True) -> None:
        self.loads.pop(0)(readable)


class Alarms:
    """Of a machine that is tested without a shard: decisions fall due as time is moved."""

    def __init__(self, decided: Callable[[Outcome[Any, Any]], None]) -> None:
        self.now_ms = 0
        self._decided = decided
        self._due: dict[Hashable, tuple[int, Callable[[], Outcome[Any, Any]]]] = {}

    def schedule(
        self, name: Hashable, delay_ms: int, decision: Callable[[], Outcome[Any, Any]]
    ) -> None:
        self._due[name] = (self.now_ms + delay_ms, decision)

    def cancel(self, name: Hashable) -> None:
        self._due.pop(name, None)

    def advance(self, by_ms: int) -> None:
        end_ms = self.now_ms + by_ms
        while due := [(at, name) for name, (at, _) in self._due.items() if at <= end_ms]:
            at_ms, name = min(due, key=lambda each: each[0])
            self.now_ms = max(self.now_ms, at_ms)
            self._decided(self._due.pop(name)[1]())
        self.now_ms = end_ms
