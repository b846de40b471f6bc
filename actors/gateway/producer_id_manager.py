"""ProducerIdManager: producer ids from blocks that the controller gives out.

The next block is asked for before this one is used up, so that a producer does not wait.

Invariant: no id is given out twice; a block is used by this gateway alone.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Final

from mobula.actors.controller.messages import (
    ALLOCATE_PRODUCER_IDS,
    AllocateProducerIds,
    ProducerIdBlock,
)
from mobula.actors.link.interface import LinkError
from mobula.actors.runtime import Runtime
from mobula.actors.spec import CONTROLLER_NAME
from mobula.protocol.errors import ErrorCode

log = logging.getLogger(__name__)

_TIMEOUT_MS: Final = 5_000
_PREFETCH_BELOW: Final = 10
"""A tenth of a block left: ask for the next."""


class Waiter:
    """A producer that waits for its id; `on_id(None)`: there is none to be had now."""

    __slots__ = ("on_id",)

    def __init__(self, on_id: Callable[[int | None], None]) -> None:
        self.on_id = on_id


class ProducerIdManager:
    def __init__(self, runtime: Runtime, broker_id: int) -> None:
        self._runtime = runtime
        self._broker_id = broker_id
        self._next = 0
        self._end = 0
        self._count = 0
        self._following: ProducerIdBlock | None = None
        self._asking = False
        self._waiting: deque[Waiter] = deque()

    def take(self) -> int | None:
        """An id of the block at hand; None when it is used up: then `wait`."""
        if self._next == self._end and not self._use_following():
            return None
        taken = self._next
        self._next += 1
        if (self._end - self._next) * _PREFETCH_BELOW < self._count and self._following is None:
            self._ask()
        return taken

    def wait(self, on_id: Callable[[int | None], None]) -> Waiter:
        """`on_id` runs once, never inside this call, unless the waiter is forgotten."""
        waiter = Waiter(on_id)
        self._waiting.append(waiter)
        self._ask()
        return waiter

    def forget(self, waiter: Waiter) -> None:
        if waiter in self._waiting:
            self._waiting.remove(waiter)

    def _use_following(self) -> bool:
        block, self._following = self._following, None
        if block is None:
            return False
        self._next, self._end, self._count = block.first, block.first + block.count, block.count
        return True

    def _ask(self) -> None:
        if self._asking:
            return
        self._asking = True
        self._runtime.link(CONTROLLER_NAME).call(
            ALLOCATE_PRODUCER_IDS,
            AllocateProducerIds(self._broker_id),
            self._given,
            self._not_given,
            timeout_ms=_TIMEOUT_MS,
        )

    def _given(self, block: ProducerIdBlock, _bulk: memoryview) -> None:
        self._asking = False
        if block.error_code != ErrorCode.none or block.count <= 0:
            log.warning("no producer ids were given code=%d", block.error_code)
            self._answer_all()
            return
        self._following = block
        while self._waiting and (producer_id := self.take()) is not None:
            self._waiting.popleft().on_id(producer_id)
        if self._waiting:
            self._ask()

    def _not_given(self, error: LinkError) -> None:
        self._asking = False
        log.warning("no producer ids were given reason=%s", error)
        self._answer_all()

    def _answer_all(self) -> None:
        waiting, self._waiting = self._waiting, deque()
        for waiter in waiting:
            waiter.on_id(None)
