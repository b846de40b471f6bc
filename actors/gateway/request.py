"""One request in flight: what came, who sent it, when it crossed each line.

Invariant: exactly one of `respond`, `no_response` and `close_connection` ends it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from mobula.actors.link.interface import Buffer
from mobula.protocol.headers import RequestHeader

if TYPE_CHECKING:
    from mobula.actors.gateway.connection import Connection
    from mobula.actors.gateway.request_channel import Response


@dataclass(frozen=True, slots=True)
class RequestContext:
    """Who sent it, and over which listener."""

    connection_id: str
    client_address: str
    listener: str
    principal: str = "User:ANONYMOUS"


class ResponseSink(Protocol):
    """What a request tells on its way, and where its one terminal response goes: the
    RequestChannel."""

    def send(self, request: Request, body: list[Buffer]) -> None: ...
    def no_op(self, request: Request) -> None: ...
    def close_connection(self, request: Request, reason: str) -> None: ...
    def resume(
        self, request: Request, continuation: Callable[..., None], args: tuple[Any, ...]
    ) -> None: ...
    def local_done(self, request: Request) -> None: ...
    def release_records(self, request: Request) -> None: ...


class Request:
    """Time stamps are nanoseconds of the monotonic clock, 0 until the line is crossed."""

    __slots__ = (
        "body",
        "charged_bytes",
        "connection",
        "context",
        "dequeued_ns",
        "ended",
        "frame",
        "has_worker",
        "header",
        "holds_worker",
        "local_done_ns",
        "on_abandoned",
        "queued_for_response_ns",
        "received_ns",
        "remote_done_ns",
        "response",
        "sent_ns",
        "sink",
        "size_bytes",
        "throttled_ns",
    )

    def __init__(
        self,
        header: RequestHeader,
        frame: memoryview,
        context: RequestContext,
        sink: ResponseSink,
        received_ns: int,
    ) -> None:
        self.header = header
        self.frame = frame
        self.body = frame[header.body_offset :]
        self.context = context
        self.sink = sink
        self.size_bytes = len(frame)
        self.connection: Connection | None = None
        self.response: Response | None = None
        """Set once it ended; it leaves when all earlier ones have left."""
        self.charged_bytes = 0
        """Of the memory pool."""
        self.has_worker = False
        self.holds_worker = False
        """Set by a handler whose local work goes on after it returns, until `local_done`."""
        self.ended = False
        self.on_abandoned: Callable[[], None] | None = None
        """Runs when the connection is lost before the response: give back what waits."""
        self.received_ns = received_ns
        self.dequeued_ns = 0
        self.local_done_ns = 0
        self.remote_done_ns = 0
        self.throttled_ns = 0
        self.queued_for_response_ns = 0
        self.sent_ns = 0

    def respond(self, *body: Buffer) -> None:
        """Send a response with this body; the header is put before it."""
        self.sink.send(self, list(body))

    def no_response(self) -> None:
        """The API expects none (acks=0)."""
        self.sink.no_op(self)

    def close_connection(self, reason: str) -> None:
        """After the replies to earlier requests have left."""
        self.sink.close_connection(self, reason)

    def resume(self, continuation: Callable[..., None], *args: Any) -> None:
        """Go on with what came back for this request.

        Runs at once, or before the next queued request when a first stage is running; not
        at all when the request has ended meanwhile. What it raises goes through the same
        error funnel as a handler's first stage.
        """
        self.sink.resume(self, continuation, args)

    def local_done(self) -> None:
        """This broker's own part is over; what follows waits for others."""
        self.sink.local_done(self)

    def release_records(self) -> None:
        """The bytes of the request are needed no more: give back their memory."""
        self.sink.release_records(self)
