"""A connection without a network: a transport that remembers, and a table of handlers that
the test answers by hand."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from typing import Any

from mobula.actors.gateway.api_version_manager import ApiVersionManager
from mobula.actors.gateway.connection import Connection, ConnectionLimits
from mobula.actors.gateway.memory_pool import MemoryPool
from mobula.actors.gateway.request import Request, RequestContext
from mobula.actors.gateway.request_channel import RequestChannel
from mobula.actors.gateway.request_handler_pool import RequestHandlerPool
from mobula.protocol.api import FIRST_FLEXIBLE, Api, ApiKey

from .fakes import CLIENT, LISTENER, FakeClock, FakeLoop

APIS = ApiVersionManager(
    (
        Api(ApiKey.PRODUCE, range(14), served=range(3, 14)),
        Api(ApiKey.METADATA, range(14)),
        Api(ApiKey.API_VERSIONS, range(5)),
    )
)


def frame(
    correlation_id: int, body: bytes = b"", *, key: int = ApiKey.METADATA, version: int = 1
) -> bytes:
    head = struct.pack(">hhih", key, version, correlation_id, -1)
    if key in FIRST_FLEXIBLE and version >= FIRST_FLEXIBLE[key]:
        head += b"\x00"
    return struct.pack(">i", len(head) + len(body)) + head + body


def replies(data: bytes) -> list[tuple[int, bytes]]:
    """(correlation id, body) of each whole reply."""
    found = []
    at = 0
    while at + 4 <= len(data):
        (length,) = struct.unpack_from(">i", data, at)
        payload = data[at + 4 : at + 4 + length]
        assert len(payload) == length, "half a reply"
        found.append((struct.unpack_from(">i", payload)[0], payload[4:]))
        at += 4 + length
    return found


class FakeTransport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self.parts: list[list[Any]] = []
        self.reading = True
        self.closed = False
        self.aborted = False
        self.on_write: Callable[[], None] | None = None

    def write(self, data: Any) -> None:
        self.writelines([data])

    def writelines(self, parts: Any) -> None:
        assert not self.closed
        parts = list(parts)
        self.parts.append(parts)
        self.writes.append(b"".join(parts))
        if self.on_write is not None:
            self.on_write()

    def set_write_buffer_limits(self, high: Any = None, low: Any = None) -> None: ...

    def pause_reading(self) -> None:
        assert self.reading, "paused twice"
        self.reading = False

    def resume_reading(self) -> None:
        assert not self.reading, "resumed twice"
        self.reading = True

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.aborted = True

    @property
    def replies(self) -> list[tuple[int, bytes]]:
        return replies(b"".join(self.writes))


class ByHand:
    """A handler that keeps every request until the test answers it."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.holding = False
        self.at_once: Callable[[Request], None] | None = None

    def handle(self, request: Request) -> None:
        self.requests.append(request)
        if self.holding:
            request.holds_worker = True
        if self.at_once is not None:
            self.at_once(request)

    def resume(
        self, request: Request, continuation: Callable[..., None], args: tuple[Any, ...]
    ) -> None:
        continuation(*args)

    @property
    def correlation_ids(self) -> list[int]:
        return [request.header.correlation_id for request in self.requests]


class Plane:
    """The request plane of one gateway, with a loop whose turns the test takes."""

    def __init__(
        self,
        *,
        workers: int = 100,
        queue: int = 100,
        memory_bytes: int = -1,
        max_in_flight: int = 100,
        max_frame_bytes: int = 1_000_000,
        scratch_bytes: int = 64 * 1024,
    ) -> None:
        self.loop = FakeLoop(FakeClock())
        self.memory = MemoryPool(memory_bytes)
        self.channel = RequestChannel(queue, self.memory)
        self.handler = ByHand()
        self.pool = RequestHandlerPool(
            self.loop,  # type: ignore[arg-type]
            self.channel,
            self.handler,
            workers,
        )
        self.limits = ConnectionLimits(max_frame_bytes=max_frame_bytes, max_in_flight=max_in_flight)
        self.scratch = memoryview(bytearray(scratch_bytes))
        self.lost: list[Connection] = []
        self._to_flush: list[Connection] = []
        self.flushes = 0

    def connect(self) -> Client:
        return Client(self)

    def turn(self) -> None:
        """Everything that was scheduled for soon runs."""
        self.loop.advance(0)

    def flush_soon(self, connection: Connection) -> None:
        if not self._to_flush:
            self.loop.call_soon(self._flush)
        self._to_flush.append(connection)

    def _flush(self) -> None:
        connections, self._to_flush = self._to_flush, []
        for connection in connections:
            self.flushes += 1
            connection.flush()

    def connection_lost(self, connection: Connection) -> None:
        self.lost.append(connection)


class Client:
    """One connection, and what its client does."""

    def __init__(self, plane: Plane) -> None:
        self.connection = Connection(
            owner=plane,
            channel=plane.channel,
            versions=APIS,
            context=RequestContext("c", CLIENT, LISTENER),
            limits=plane.limits,
            scratch=plane.scratch,
        )
        self.transport = FakeTransport()
        self.connection.connection_made(self.transport)
        self._unread = b""

    def send(self, data: bytes) -> None:
        """As a socket does: nothing arrives while the server does not read."""
        self._unread += data
        while self._unread and self.transport.reading and not self.transport.closed:
            buffer = self.connection.get_buffer(-1)
            count = min(len(buffer), len(self._unread))
            buffer[:count] = self._unread[:count]
            self._unread = self._unread[count:]
            self.connection.buffer_updated(count)

    def resume(self) -> None:
        """What the kernel kept arrives, now that the server reads again."""
        self.send(b"")

    @property
    def unread_bytes(self) -> int:
        return len(self._unread)
