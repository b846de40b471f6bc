"""An event loop and a clock whose time is a variable."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable

_START_WALL_MS = 1_700_000_000_000


class VirtualTimer:
    __slots__ = ("callback", "cancelled")

    def __init__(self, callback: Callable[[], object]) -> None:
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class VirtualLoop:
    """What is ready runs in turns, as an event loop does: what a callback schedules with
    `call_soon` belongs to the next turn."""

    def __init__(self) -> None:
        self.now_us = 0
        self._ready: deque[Callable[[], object]] = deque()
        self._timers: list[tuple[int, int, VirtualTimer]] = []
        self._count = 0

    # The scheduler that cores see.

    def call_soon(self, callback: Callable[[], object], /) -> None:
        self._ready.append(callback)

    def call_later(self, delay: float, callback: Callable[[], object], /) -> VirtualTimer:
        timer = VirtualTimer(callback)
        self._count += 1
        due_us = self.now_us + max(round(delay * 1_000_000), 0)
        heapq.heappush(self._timers, (due_us, self._count, timer))
        return timer

    # The clock that cores see.

    def monotonic_ms(self) -> int:
        return self.now_us // 1_000

    def now_ms(self) -> int:
        return _START_WALL_MS + self.now_us // 1_000

    # What tests do.

    def turn(self) -> bool:
        """Run what is ready now. False when nothing was."""
        ready, self._ready = self._ready, deque()
        for callback in ready:
            callback()
        return bool(ready)

    def settle(self) -> None:
        """Run until nothing is ready; time stands still."""
        while self.turn():
            pass

    def step(self) -> bool:
        """Let time pass to the next timer and run what follows. False when none is left."""
        self.settle()
        while self._timers:
            due_us, _, timer = heapq.heappop(self._timers)
            if not timer.cancelled:
                self.now_us = max(self.now_us, due_us)
                timer.callback()
                self.settle()
                return True
        return False

    def run_for(self, duration_ms: int) -> None:
        end_us = self.now_us + duration_ms * 1_000
        self.settle()
        while self._timers and self._timers[0][0] <= end_us:
            self.step()
        self.now_us = end_us
