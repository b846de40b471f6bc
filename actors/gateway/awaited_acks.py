"""Produces with acks=all, from their append until enough replicas have it, or it takes long.

A replica actor tells the gateways whose appends wait when a high watermark moves, in the
turn in which it moves; most produces end by that word, a hop earlier than by the
purgatory's. What has waited some milliseconds, may not wait that long, or has failed goes
to the purgatory, which owns the deadlines and every other kind of completion.

Invariant: a produce waits here under one partition, the first of its own that is not
settled, or it is answered, abandoned or in the purgatory. Under one partition the required
offsets grow.
"""

from __future__ import annotations

from collections import deque
from typing import Final, Protocol, TypeAlias

from mobula.actors.link.interface import Reply
from mobula.actors.purgatory.messages import PartitionsChanged
from mobula.actors.runtime import Runtime

Key: TypeAlias = tuple[bytes, int]

PATIENCE_MS: Final = 10


class AckWait(Protocol):
    """A produce whose appends are done."""

    timeout_ms: int
    sweep: int
    """The number of the last sweep before it came."""

    def advance(self) -> Key | None:
        """The partition that it waits for by the published rows. None: it is over here,
        because it was answered, abandoned or given to the purgatory."""

    def to_purgatory(self) -> None: ...


class AwaitedAcks:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._waiting: dict[Key, deque[AckWait]] = {}
        self._sweeps = 0
        self._armed = False

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def add(self, wait: AckWait) -> None:
        key = wait.advance()
        if key is None:
            return
        if wait.timeout_ms <= PATIENCE_MS:
            wait.to_purgatory()
            return
        wait.sweep = self._sweeps
        self._put(key, wait)
        if not self._armed:
            self._arm()

    def changed(self, message: PartitionsChanged, _bulk: memoryview, _reply: Reply) -> None:
        """Rows were published anew."""
        waiting = self._waiting
        for change in message.changes:
            key = (change.topic_id, change.partition)
            queue = waiting.get(key)
            if queue is None:
                continue
            while queue and (now := queue[0].advance()) != key:
                wait = queue.popleft()
                if now is not None:
                    self._put(now, wait)
            if not queue:
                del waiting[key]

    def _put(self, key: Key, wait: AckWait) -> None:
        queue = self._waiting.get(key)
        if queue is None:
            queue = self._waiting[key] = deque()
        queue.append(wait)

    def _arm(self) -> None:
        self._armed = True
        self._runtime.loop.call_later(PATIENCE_MS / 1000, self._sweep)

    def _sweep(self) -> None:
        """What was here at the last sweep has waited long enough."""
        self._armed = False
        for key, queue in list(self._waiting.items()):
            while queue and queue[0].sweep < self._sweeps:
                wait = queue.popleft()
                if wait.advance() is not None:
                    wait.to_purgatory()
            if not queue:
                del self._waiting[key]
        self._sweeps += 1
        if self._waiting:
            self._arm()
