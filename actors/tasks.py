"""Tasks for start-up and administration that must not fail unseen."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from mobula.actors.runtime import Runtime

log = logging.getLogger(__name__)


class Tasks:
    """A task that raises ends the actor: whatever it looked after is nobody's any more."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._running: set[asyncio.Task[Any]] = set()

    def spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        task = self._runtime.loop.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._done)

    def cancel(self) -> None:
        for task in list(self._running):
            task.cancel()

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("task failed name=%s", task.get_coro(), exc_info=task.exception())
            self._runtime.die("a task failed")
