"""KafkaRequestHandlerPool: how many requests may be in their first stage at once.

A worker is a number, not a thread: a request has one from the moment its handler is
called until its local work is done (for a produce: until the append is answered; for
what is answered at once: as long as the call takes). With a free worker and nothing
queued the handler runs inside the read that brought the request.

Invariant: 0 <= idle <= size; a first stage never begins inside another.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic_ns
from typing import Any, Protocol

from mobula.actors.gateway.request import Request
from mobula.actors.gateway.request_channel import RequestChannel


class ApiRequestHandler(Protocol):
    def handle(self, request: Request) -> None:
        """Run the request's first stage. Raises nothing."""

    def resume(
        self, request: Request, continuation: Callable[..., None], args: tuple[Any, ...]
    ) -> None:
        """Run a later stage. Raises nothing."""


class RequestHandlerPool:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        channel: RequestChannel,
        apis: ApiRequestHandler,
        size: int,
    ) -> None:
        self.size = size
        self.idle = size
        self.busy = False
        """A first stage is running."""
        self._loop = loop
        self._channel = channel
        self.apis = apis
        self._awake = False
        channel.handlers = self

    def run(self, request: Request) -> None:
        """The first stage, inside this call. Only with an idle worker, and when not busy."""
        self.idle -= 1
        self.busy = True
        request.has_worker = True
        request.dequeued_ns = monotonic_ns()
        self.apis.handle(request)
        self.busy = False
        if request.has_worker and not request.holds_worker:
            self._channel.local_done(request)

    def free(self, request: Request) -> None:
        request.has_worker = False
        self.idle += 1
        if self._channel.requests:
            self.wake()

    def wake(self) -> None:
        """Look at the queues once this turn's replies are all handled."""
        if not self._awake:
            self._awake = True
            self._loop.call_soon(self._work)

    def _work(self) -> None:
        self._awake = False
        channel = self._channel
        while channel.callbacks:
            request, continuation, args = channel.callbacks.popleft()
            if not request.ended:
                self.apis.resume(request, continuation, args)
        while self.idle > 0 and (request_or_none := channel.receive_request()) is not None:
            self.run(request_or_none)
        channel.room_made()
