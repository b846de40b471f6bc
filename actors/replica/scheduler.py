"""The part of an event loop that the replica cores use; a simulation has one of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    def cancel(self) -> None: ...


class Scheduler(Protocol):
    def call_soon(self, callback: Callable[[], object], /) -> object:
        """Run after what is ready now: so what arrives in one turn goes together."""

    def call_later(self, delay: float, callback: Callable[[], object], /) -> Timer: ...
