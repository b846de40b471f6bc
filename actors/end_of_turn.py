"""What runs at the end of a turn of the event loop: once, after all that arrived in it.

A loop's own `call_soon` runs what a callback schedules in the next turn, with a look at
every socket between. Here it runs in the same pass, in order: a replica's turn and the
writes that it causes are one.

Invariant: a callback that raises is logged and stops no other.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

log = logging.getLogger(__name__)


class Turn(Protocol):
    def call_soon(self, callback: Callable[[], object], /) -> object:
        """Run after what is ready now: so what arrives in one turn goes together."""


class Timer(Protocol):
    def cancel(self) -> None: ...


class Scheduler(Turn, Protocol):
    """The part of an event loop that cores use; a simulation has one of its own."""

    def call_later(self, delay: float, callback: Callable[[], object], /) -> Timer: ...


class EndOfTurn:
    """A Scheduler."""

    __slots__ = ("_callbacks", "_loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._callbacks: list[Callable[[], object]] = []

    def call_soon(self, callback: Callable[[], object], /) -> None:
        callbacks = self._callbacks
        if not callbacks:
            self._loop.call_soon(self._run)
        callbacks.append(callback)

    def call_later(self, delay: float, callback: Callable[[], object], /) -> Timer:
        return self._loop.call_later(delay, callback)

    def _run(self) -> None:
        callbacks = self._callbacks
        # The list may grow meanwhile.
        for callback in callbacks:
            try:
                callback()
            except Exception:
                log.exception("a callback failed callback=%r", callback)
        callbacks.clear()
