"""An actor's life inside its process: one thread, one event loop, from start to stop.

Invariant: an actor that could not start ends its process, after a pause that grows with
each failed life and in which whoever asks hears the reason.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from mobula.actors.broker.messages import ActorStatus
from mobula.actors.linked_runtime import LinkedRuntime
from mobula.actors.process import Lives, end_process, rest_garbage_collector, write_lives
from mobula.actors.runtime import Actor

logger = logging.getLogger(__name__)

_FIRST_PAUSE_S = 1.0
_LAST_PAUSE_S = 15.0

ResultT = TypeVar("ResultT")


class ActorStartError(RuntimeError):
    """The actor could not start; the text says why."""


class Hosted:
    """Methods without an underscore may be called on any thread but the loop's."""

    def __init__(
        self,
        runtime: LinkedRuntime,
        make_actor: Callable[[], Actor],
        lives: Lives,
        lives_path: Path,
    ) -> None:
        self._runtime = runtime
        self._make_actor = make_actor
        self._lives = lives
        self._lives_path = lives_path
        self._actor: Actor | None = None
        self._failure: str | None = None
        self._settled = threading.Event()

    def begin(self) -> None:
        """Start the actor, in the background."""
        name = self._runtime.spec.local_name
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def ready(self, timeout_s: float) -> bool:
        if not self._settled.wait(timeout_s):
            return False
        if self._failure is not None:
            raise ActorStartError(self._failure)
        return True

    def run(self, work: Coroutine[Any, Any, ResultT], timeout_s: float) -> ResultT:
        """Do that on the loop. Raises TimeoutError."""
        return asyncio.run_coroutine_threadsafe(work, self._runtime.loop).result(timeout_s)

    def status(self, timeout_s: float) -> ActorStatus:
        return self.run(self._status(), timeout_s)

    def stop(self, timeout_s: float) -> None:
        self.run(self._stop(), timeout_s)

    async def _status(self) -> ActorStatus:
        return self._runtime.status()

    async def _stop(self) -> None:
        if self._actor is not None:
            await self._actor.stop()
        self._runtime.close()

    def _run(self) -> None:
        loop = self._runtime.loop
        asyncio.set_event_loop(loop)
        starting = loop.create_task(self._start())
        try:
            loop.run_forever()
        finally:
            logger.critical("the event loop ended started=%s", starting.done())
            end_process()

    async def _start(self) -> None:
        name, restarts = self._runtime.spec.name, self._runtime.restarts
        logger.info("starting name=%s pid=%d restarts=%d", name, os.getpid(), restarts)
        try:
            await self._runtime.open()
            self._actor = self._make_actor()
            self._runtime.attach(self._actor)
            await self._actor.start()
        except Exception as error:
            logger.exception("the actor could not start name=%s", name)
            await self._fail(str(error) or repr(error))
            return
        if self._lives.failed:
            self._lives.failed = 0
            write_lives(self._lives_path, self._lives)
        rest_garbage_collector()
        logger.info("started name=%s", name)
        self._settled.set()

    async def _fail(self, reason: str) -> None:
        self._lives.failed += 1
        write_lives(self._lives_path, self._lives)
        self._failure = reason
        self._settled.set()
        self._runtime.close()
        await asyncio.sleep(min(_FIRST_PAUSE_S * 2 ** (self._lives.failed - 1), _LAST_PAUSE_S))
        end_process()
