"""The RequestChannel: requests on their way to a worker, responses on their way back.

A bounded queue of requests, and a queue of callbacks (what came back for a request that
is under way) that goes before it. A response is one of five kinds; three of them end a
request.

Invariant: a request ends exactly once, by SendResponse, NoOpResponse or
CloseConnectionResponse, or by being abandoned with its connection; with its end its
memory charge, its queue slot and its worker are free.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from time import monotonic_ns
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from mobula.actors.gateway.memory_pool import MemoryPool
from mobula.actors.gateway.request import Request
from mobula.actors.link.interface import Buffer
from mobula.protocol.api import ApiKey

if TYPE_CHECKING:
    from mobula.actors.gateway.connection import Connection
    from mobula.actors.gateway.request_handler_pool import RequestHandlerPool

log = logging.getLogger(__name__)

_NO_BYTES: Final = memoryview(b"")


class SendResponse:
    __slots__ = ("body", "size_bytes")

    def __init__(self, body: list[Buffer]) -> None:
        self.body = body
        size_bytes = 0
        for part in body:
            size_bytes += len(part)
        self.size_bytes = size_bytes


class NoOpResponse:
    """Nothing is sent; later responses may leave."""

    __slots__ = ()


class CloseConnectionResponse:
    """The connection is closed once the earlier responses have left."""

    __slots__ = ()


class StartThrottlingResponse:
    """The connection is not read, and what was read waits. Ends no request."""

    __slots__ = ()


class EndThrottlingResponse:
    __slots__ = ()


Response: TypeAlias = SendResponse | NoOpResponse | CloseConnectionResponse

NO_OP: Final = NoOpResponse()
CLOSE: Final = CloseConnectionResponse()


class RequestChannel:
    """The sink of every request of a gateway."""

    def __init__(self, capacity: int, memory: MemoryPool) -> None:
        self.capacity = capacity
        self.memory = memory
        self.requests: deque[Request] = deque()
        self.callbacks: deque[tuple[Request, Callable[..., None], tuple[Any, ...]]] = deque()
        self.handlers: RequestHandlerPool
        """Set by the pool that takes from this channel."""
        self._without_place: dict[Connection, None] = {}

    @property
    def full(self) -> bool:
        return len(self.requests) >= self.capacity

    def send_request(self, request: Request) -> None:
        """Give it to a worker, or queue it. Only when the queue is not full."""
        handlers = self.handlers
        if self.requests or handlers.idle <= 0 or handlers.busy:
            self.requests.append(request)
        else:
            handlers.run(request)

    def wait_for_place(self, connection: Connection) -> None:
        """`connection.queue_has_room()` runs when a request can be sent again."""
        self._without_place[connection] = None

    def forget(self, connection: Connection) -> None:
        self._without_place.pop(connection, None)

    def receive_request(self) -> Request | None:
        """The next request for a worker."""
        return self.requests.popleft() if self.requests else None

    def room_made(self) -> None:
        """Let those that waited for a place have it, first come first served."""
        while self._without_place and len(self.requests) < self.capacity:
            connection = next(iter(self._without_place))
            del self._without_place[connection]
            connection.queue_has_room()

    def send(self, request: Request, body: list[Buffer]) -> None:
        if request.ended:
            self._ended_twice(request)
            return
        request.response = SendResponse(body)
        self._end(request)

    def no_op(self, request: Request) -> None:
        if request.ended:
            self._ended_twice(request)
            return
        request.response = NO_OP
        self._end(request)

    def close_connection(self, request: Request, reason: str) -> None:
        if request.ended:
            self._ended_twice(request)
            return
        log.info(
            "closing connection client=%s api=%d version=%d reason=%s",
            request.context.client_address,
            request.header.api_key,
            request.header.api_version,
            reason,
        )
        request.response = CLOSE
        self._end(request)

    def throttle(
        self, request: Request, response: StartThrottlingResponse | EndThrottlingResponse
    ) -> None:
        """In addition to the one response that ends the request."""
        connection = request.connection
        if connection is None:
            return
        if isinstance(response, StartThrottlingResponse):
            request.throttled_ns = monotonic_ns()
            connection.throttle()
        else:
            connection.unthrottle()

    def resume(
        self, request: Request, continuation: Callable[..., None], args: tuple[Any, ...]
    ) -> None:
        if request.ended:
            return
        handlers = self.handlers
        if handlers.busy:
            self.callbacks.append((request, continuation, args))
            handlers.wake()
        else:
            handlers.apis.resume(request, continuation, args)

    def local_done(self, request: Request) -> None:
        if not request.local_done_ns:
            request.local_done_ns = monotonic_ns()
        if request.has_worker:
            self.handlers.free(request)

    def release_records(self, request: Request) -> None:
        charged, request.charged_bytes = request.charged_bytes, 0
        request.frame = request.body = _NO_BYTES
        if charged:
            self.memory.release(charged)

    def abandon(self, request: Request) -> None:
        """Its connection is gone: what waits for it is given back, nothing is sent.

        A produce that is still queued goes its way: to be written is all that a client
        with acks=0 asked for.
        """
        if request.ended:
            return
        if not request.dequeued_ns:
            if request.header.api_key == ApiKey.PRODUCE:
                return
            self.requests.remove(request)
            self.room_made()
        request.ended = True
        on_abandoned, request.on_abandoned = request.on_abandoned, None
        if on_abandoned is not None:
            on_abandoned()
        self.local_done(request)
        self.release_records(request)

    def _end(self, request: Request) -> None:
        """Every response that ends a request passes here; what is charged to a client, or
        counted, is known now."""
        request.ended = True
        # It leads back here, mostly: a cycle that only a garbage collection would find.
        request.on_abandoned = None
        now_ns = request.queued_for_response_ns = monotonic_ns()
        if not request.local_done_ns:
            request.local_done_ns = now_ns
        request.remote_done_ns = now_ns
        if request.has_worker:
            self.handlers.free(request)
        charged = request.charged_bytes
        if charged:
            request.charged_bytes = 0
            self.memory.release(charged)
        request.frame = request.body = _NO_BYTES
        connection = request.connection
        if connection is not None:
            connection.response_ready(request)

    def _ended_twice(self, request: Request) -> None:
        if request.response is None:
            return  # It was abandoned: nobody waits for an answer.
        log.error(
            "a second response to one request was ignored api=%d version=%d client=%s",
            request.header.api_key,
            request.header.api_version,
            request.context.client_address,
            stack_info=True,
        )
