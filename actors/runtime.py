"""What an actor gets from whatever hosts it (Ray, or a test), and what it must offer.

An actor is a plain class: `__init__` assigns fields, `start()` does the I/O. Its host
owns the process, the event loop and the links; so a test can build the class with a
runtime of its own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from mobula.actors.broker.messages import LinkStatus
from mobula.actors.end_of_turn import Scheduler
from mobula.actors.link.interface import Handler, Link
from mobula.actors.link.method import Method
from mobula.actors.spec import ActorSpec


class Clock(Protocol):
    def now_ms(self) -> int:
        """Wall time: for timestamps that are stored or sent."""

    def monotonic_ms(self) -> int:
        """For deadlines."""


class SystemClock:
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000


class Runtime(Protocol):
    spec: ActorSpec
    loop: asyncio.AbstractEventLoop
    turn: Scheduler
    """Of that loop: for the data path, which finishes what it began before the next turn."""
    clock: Clock
    incarnation: int
    """Different in every life of the process."""
    restarts: int
    ray_node_id: str

    def link(self, local_name: str) -> Link:
        """The one link to that actor; made at the first call, and kept."""

    def serve(self, method: Method[Any, Any], handler: Handler) -> None:
        """Answer calls of this method. Calls of a method not yet served are refused."""

    def link_statuses(self) -> list[LinkStatus]: ...

    def die(self, reason: str) -> None:
        """The state cannot be trusted any more: end the process; Ray starts it anew."""

    async def spawn(self, spec: ActorSpec) -> None:
        """Make another actor on this node, or do nothing when it exists."""

    async def kill(self, local_name: str) -> None:
        """End an actor for good."""


class Actor(Protocol):
    async def start(self) -> None:
        """Do the I/O and serve. Idempotent. Runs at each life of the process."""

    async def stop(self) -> None:
        """Release what is held. After a clean stop nothing is left to recover."""

    def state(self) -> tuple[str, Mapping[str, int]]:
        """One word, and counters, for `mobula status`."""


ActorFactory = Callable[[Runtime], Actor]
