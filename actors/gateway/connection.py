"""One client connection: frames in, requests dispatched in order, replies out in order.

Several requests may be under way at once. Each takes a slot in the order of arrival; a
response fills its slot, and the finished slots at the head leave together, in one write
a turn of the loop.

The socket is not read, or what was read waits, as long as any cause for it lasts (see
`mute_causes`).

Invariant: replies leave in the order of the requests; a frame that was read is
dispatched once, or dropped with its connection.
"""

from __future__ import annotations

import asyncio
import logging
import struct
from collections import deque
from dataclasses import dataclass
from time import monotonic_ns
from typing import Final, Protocol, cast

from mobula.actors.gateway.api_version_manager import ApiVersionManager
from mobula.actors.gateway.memory_pool import IncomingFrame
from mobula.actors.gateway.mute_causes import (
    CLOSING,
    DRAINING,
    IN_FLIGHT,
    MEMORY,
    NOT_SERVING,
    QUEUE_FULL,
    THROTTLED,
    UNSENT,
    WHAT_WAS_READ_WAITS,
    WRITE_BLOCKED,
)
from mobula.actors.gateway.request import Request, RequestContext
from mobula.actors.gateway.request_channel import (
    CloseConnectionResponse,
    RequestChannel,
    SendResponse,
)
from mobula.actors.link.interface import Buffer
from mobula.protocol.api import FIRST_TAGGED_RESPONSE_HEADER
from mobula.protocol.errors import DecodeError
from mobula.protocol.frames import FrameError, FrameReader
from mobula.protocol.headers import parse_request_header

log = logging.getLogger(__name__)

_JOINED_BYTES: Final = 4096
"""Replies smaller than this together are copied into one buffer: cheaper than a list."""
_HIGH_WATER_BYTES: Final = 256 * 1024

_pack_prefix: Final = struct.Struct(">ii").pack
_pack_prefix_and_no_tags: Final = struct.Struct(">iix").pack

_NOT_KAFKA: Final = (
    (b"\x16\x03", "a TLS hello on a plaintext listener"),
    (b"GET ", "an HTTP request"),
    (b"POST", "an HTTP request"),
    (b"HEAD", "an HTTP request"),
)


class ConnectionOwner(Protocol):
    """The processor."""

    def flush_soon(self, connection: Connection) -> None: ...
    def connection_lost(self, connection: Connection) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    max_frame_bytes: int
    max_in_flight: int


class Connection(asyncio.BufferedProtocol):
    __slots__ = (
        "_channel",
        "_enabled",
        "_flushing",
        "_incoming",
        "_limits",
        "_lost",
        "_muted",
        "_owner",
        "_reader",
        "_reading",
        "_receiving",
        "_scratch",
        "_slots",
        "_spoken",
        "_transport",
        "_unsent_bytes",
        "_versions",
        "_waiting",
        "closed",
        "context",
        "get_buffer",
        "last_active_ns",
    )

    def __init__(
        self,
        *,
        owner: ConnectionOwner,
        channel: RequestChannel,
        versions: ApiVersionManager,
        context: RequestContext,
        limits: ConnectionLimits,
        scratch: memoryview,
    ) -> None:
        self.context = context
        self.closed = False
        """Closing or closed: nothing is dispatched any more."""
        self.last_active_ns = monotonic_ns()
        self._owner = owner
        self._channel = channel
        self._versions = versions
        self._enabled = versions.enabled
        self._limits = limits
        self._scratch = scratch
        self._reader = FrameReader(limits.max_frame_bytes, scratch)
        # The loop asks the reader itself: one call less a read.
        self.get_buffer = self._reader.get_buffer  # type: ignore[method-assign]
        self._transport: asyncio.Transport = _NOT_CONNECTED
        self._slots: deque[Request] = deque()
        self._waiting: deque[memoryview] = deque()
        """Frames that were read before a cause to stop arose, in order."""
        self._muted = 0
        self._reading = True
        self._incoming = IncomingFrame(channel.memory)
        self._receiving = False
        """A frame is under way."""
        self._unsent_bytes = 0
        """Of replies that are ready and not yet written."""
        self._flushing = False
        self._lost = False
        self._spoken = False

    @property
    def muted(self) -> int:
        return self._muted

    @property
    def in_flight(self) -> int:
        return len(self._slots)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(_HIGH_WATER_BYTES)

    def connected(self) -> None:
        """The loop reads from now on: make good what was decided before it did."""
        if self.closed:
            self._transport.close()
        elif self._muted:
            self._transport.pause_reading()

    def buffer_updated(self, nbytes: int) -> None:
        now_ns = self.last_active_ns = monotonic_ns()
        reader = self._reader
        memory = self._channel.memory
        try:
            frames = reader.buffer_updated(nbytes)
        except FrameError as error:
            self._take(error.frames, now_ns)
            self._refuse(self._guess() or str(error))
            return
        if reader.expecting or self._receiving:
            self._receiving = reader.expecting > 0
            self._incoming.received(nbytes, reader.expecting)
        if frames:
            self._take(frames, now_ns)
        if memory.used_bytes >= memory.capacity_bytes and not self._incoming.reserved_bytes:
            self._mute(MEMORY)
            memory.wait(self._memory_free)

    def pause_writing(self) -> None:
        self._mute(WRITE_BLOCKED)

    def resume_writing(self) -> None:
        self._unmute(WRITE_BLOCKED)

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = self.closed = True
        self._muted |= CLOSING
        self._channel.forget(self)
        self._abandon_all()
        self._drop_waiting()
        self._owner.connection_lost(self)

    # What the channel and the processor call.

    def response_ready(self, request: Request) -> None:
        """The request ended: its response leaves once it is the head of the slots."""
        response = request.response
        if type(response) is SendResponse:
            self._unsent_bytes += response.size_bytes
            if self._unsent_bytes > _HIGH_WATER_BYTES:
                self._mute(UNSENT)
        elif type(response) is CloseConnectionResponse:
            self._mute(CLOSING)
        if not self._flushing and self._slots and self._slots[0] is request:
            self._flushing = True
            self._owner.flush_soon(self)

    def flush(self) -> None:
        """Write the finished slots at the head, as one write."""
        self._flushing = False
        if self._lost:
            return
        slots = self._slots
        parts: list[Buffer] = []
        total_bytes = 0
        now_ns = monotonic_ns()
        close = False
        while slots and (response := slots[0].response) is not None:
            request = slots.popleft()
            request.sent_ns = now_ns
            if type(response) is SendResponse:
                total_bytes += response.size_bytes
                parts.append(_reply_head(request, response.size_bytes))
                parts += response.body
            elif type(response) is CloseConnectionResponse:
                close = True
                break
        if parts:
            self.last_active_ns = now_ns
            self._unsent_bytes -= total_bytes
            if total_bytes <= _JOINED_BYTES:
                self._transport.write(b"".join(parts))
            else:
                self._transport.writelines(parts)
        if close:
            self.close()
        elif self._muted:
            self._after_replies()

    def queue_has_room(self) -> None:
        self._unmute(QUEUE_FULL)

    def throttle(self) -> None:
        self._mute(THROTTLED)

    def unthrottle(self) -> None:
        self._unmute(THROTTLED)

    def serve(self, serving: bool) -> None:
        if serving:
            self._unmute(NOT_SERVING)
        else:
            self._mute(NOT_SERVING)

    def drain(self) -> None:
        """Read no more, answer what was read, then close."""
        self._mute(DRAINING)
        self._after_replies()

    def close(self) -> None:
        """What was written before still leaves; what is under way is abandoned."""
        if self._lost or self.closed:
            return
        self.closed = True
        self._mute(CLOSING)
        self._abandon_all()
        self._drop_waiting()
        self._transport.close()

    def abort(self, reason: str) -> None:
        """Close without waiting for the client to take what was written."""
        log.info("aborting connection client=%s reason=%s", self.context.client_address, reason)
        self.closed = True
        self._transport.abort()

    def hogs_memory(self) -> bool:
        return self._incoming.hogs_memory()

    def is_idle(self, since_ns: int) -> bool:
        """Nothing was read or written since, and nothing is under way but what the client
        does not take."""
        return self.last_active_ns < since_ns and (
            not self._slots or bool(self._muted & WRITE_BLOCKED)
        )

    # Causes to stop, and what happens when they are gone.

    def _mute(self, cause: int) -> None:
        self._muted |= cause
        if self._reading:
            self._reading = False
            self._transport.pause_reading()

    def _unmute(self, cause: int) -> None:
        if not self._muted & cause:
            return
        self._muted &= ~cause
        if self._waiting:
            self._dispatch_waiting()
        if not self._muted:
            if not self._reading:
                self._reading = True
                self._transport.resume_reading()
        elif self._muted & DRAINING:
            self._after_replies()

    def _memory_free(self) -> None:
        if self._receiving:
            self._incoming.received(0, self._reader.expecting)
        self._unmute(MEMORY)

    def _after_replies(self) -> None:
        if self._muted & UNSENT and self._unsent_bytes <= _HIGH_WATER_BYTES:
            self._unmute(UNSENT)
        if self._muted & IN_FLIGHT and len(self._slots) < self._limits.max_in_flight:
            self._unmute(IN_FLIGHT)
        if self._slots or self.closed:
            return
        if self._muted & CLOSING or (self._muted & DRAINING and not self._waiting):
            self.close()

    # Frames.

    def _take(self, frames: list[memoryview], now_ns: int) -> None:
        memory = self._channel.memory
        for frame in frames:
            memory.used_bytes += len(frame)
            if self._muted & WHAT_WAS_READ_WAITS or self._waiting:
                self._waiting.append(frame)
            else:
                self._dispatch(frame, now_ns)
        if self._muted & CLOSING:
            self._drop_waiting()

    def _dispatch_waiting(self) -> None:
        now_ns = monotonic_ns()
        while self._waiting and not self._muted & WHAT_WAS_READ_WAITS:
            self._dispatch(self._waiting.popleft(), now_ns)

    def _dispatch(self, frame: memoryview, now_ns: int) -> None:
        channel = self._channel
        if len(channel.requests) >= channel.capacity:
            self._waiting.appendleft(frame)
            self._mute(QUEUE_FULL)
            channel.wait_for_place(self)
            return
        try:
            header = parse_request_header(frame)
        except DecodeError as error:
            channel.memory.release(len(frame))
            self._refuse(str(error))
            return
        if (
            header.api_key << 16 | header.api_version
        ) not in self._enabled and not self._versions.is_enabled(
            header.api_key, header.api_version
        ):
            channel.memory.release(len(frame))
            self._refuse(f"api {header.api_key} version {header.api_version} is not served")
            return
        request = Request(header, frame, self.context, channel, now_ns)
        request.connection = self
        request.charged_bytes = len(frame)
        self._spoken = True
        self._slots.append(request)
        if len(self._slots) >= self._limits.max_in_flight:
            self._mute(IN_FLIGHT)
        channel.send_request(request)

    def _refuse(self, reason: str) -> None:
        """Not the protocol: say so once, and close when the earlier replies have left."""
        log.warning(
            "closing connection client=%s listener=%s reason=%s",
            self.context.client_address,
            self.context.listener,
            reason,
        )
        self._mute(CLOSING)
        self._drop_waiting()
        self._after_replies()

    def _guess(self) -> str | None:
        """What speaks here, when its first bytes say so."""
        if self._spoken:
            return None
        for first, name in _NOT_KAFKA:
            if self._scratch[: len(first)] == first:
                return name
        return None

    def _abandon_all(self) -> None:
        slots, self._slots = self._slots, deque()
        for request in slots:
            request.connection = None
            self._channel.abandon(request)

    def _drop_waiting(self) -> None:
        memory = self._channel.memory
        memory.forget(self._memory_free)
        held = sum(map(len, self._waiting))
        self._waiting.clear()
        if held:
            memory.release(held)
        self._incoming.release()


def _reply_head(request: Request, body_bytes: int) -> bytes:
    """A reply's length and header."""
    header = request.header
    if header.api_version >= FIRST_TAGGED_RESPONSE_HEADER[header.api_key]:
        return _pack_prefix_and_no_tags(body_bytes + 5, header.correlation_id)
    return _pack_prefix(body_bytes + 4, header.correlation_id)


class _NotConnected(asyncio.Transport):
    """Before `connection_made` there is nothing to pause or close; see `connected`."""

    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...
    def close(self) -> None: ...
    def abort(self) -> None: ...


_NOT_CONNECTED: Final = _NotConnected()
