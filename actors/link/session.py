"""The serving end of one link: calls come in, replies go out, parked ones are kept.

Invariant: each call that came in gets at most one frame back; when the caller is gone
every reply that is still open is told once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec

from mobula.actors.link.interface import Buffer, Handler
from mobula.actors.link.method import Message, encode
from mobula.actors.link.pipe import LinkLimits, Pipe
from mobula.actors.link.wire import (
    CALL,
    CANCEL,
    HELLO,
    LENGTH_BYTES,
    NOTIFY,
    REPLY,
    REST_BYTES,
    VERSION,
    Hello,
    bulk_bytes,
    decode_hello,
    failure_frame,
    hello_frame,
    pack_head,
    unpack_rest,
)

logger = logging.getLogger(__name__)

Served = tuple[Callable[[Any], Any], Handler, str]
"""How to decode the request, who handles it, the method's name."""


class SessionOwner(Protocol):
    """What a session needs to know from the endpoint it belongs to."""

    hello: Hello
    limits: LinkLimits
    served: dict[int, Served]

    def greeted(self, session: ServingSession) -> None: ...
    def ended(self, session: ServingSession) -> None: ...


class OpenReply:
    """The answering end of one call."""

    __slots__ = ("_call_id", "_method_id", "_session", "caller", "on_cancel")

    def __init__(self, session: ServingSession, call_id: int, method_id: int) -> None:
        self._session: ServingSession | None = session
        self._call_id = call_id
        self._method_id = method_id
        self.caller = session.caller
        self.on_cancel: Callable[[], None] | None = None

    def __call__(self, message: Message, bulk: Sequence[Buffer] = ()) -> None:
        session = self._session
        if session is not None:
            self._session = None
            session.reply(self._call_id, self._method_id, message, bulk)

    def fail(self, reason: str) -> None:
        session = self._session
        if session is not None:
            self._session = None
            session.refuse(self._call_id, reason)

    def cancelled(self) -> None:
        """The caller wants no reply, or cannot get one."""
        self._session = None
        on_cancel, self.on_cancel = self.on_cancel, None
        if on_cancel is None:
            return
        try:
            on_cancel()
        except Exception:
            logger.exception("on_cancel failed caller=%s", self.caller)


class NoReply:
    """What the handler of a notify gets."""

    __slots__ = ("caller", "on_cancel")

    def __init__(self, caller: str) -> None:
        self.caller = caller
        self.on_cancel: Callable[[], None] | None = None

    def __call__(self, message: Message, bulk: Sequence[Buffer] = ()) -> None:
        pass

    def fail(self, reason: str) -> None:
        pass


class ServingSession:
    """One caller's connection."""

    def __init__(self, owner: SessionOwner) -> None:
        self.caller = ""
        self.incarnation = 0
        self.pipe: Pipe
        """Set right after; the pipe needs its receiver first."""
        self._owner = owner
        self._served = owner.served
        self._open: dict[int, OpenReply] = {}
        self._no_reply = NoReply("")
        self._ended = False

    def received(self, frame: memoryview) -> None:
        kind, call_id, method_id, length = unpack_rest(frame)
        end = REST_BYTES + length
        if end > len(frame):
            self._break("a message longer than its frame")
        elif kind == CALL:
            self._call(call_id, method_id, frame, end)
        elif kind == NOTIFY:
            self._notify(method_id, frame, end)
        elif kind == CANCEL:
            reply = self._open.pop(call_id, None)
            if reply is not None:
                reply.cancelled()
        elif kind == HELLO:
            self._greet(frame[REST_BYTES:end])
        else:
            self._break(f"a frame of unknown kind {kind}")

    def _greet(self, message: memoryview) -> None:
        try:
            hello = decode_hello(message)
        except msgspec.MsgspecError as error:
            return self._break(f"a greeting that is none: {error}")
        if hello.version != VERSION:
            return self._break(f"{hello.name} speaks version {hello.version}, not {VERSION}")
        self.caller, self.incarnation = hello.name, hello.incarnation
        self._no_reply = NoReply(hello.name)
        frame = hello_frame(self._owner.hello)
        self.pipe.send(frame, (), len(frame))
        return self._owner.greeted(self)

    def _call(self, call_id: int, method_id: int, frame: memoryview, end: int) -> None:
        served = self._served.get(method_id)
        if served is None:
            return self.refuse(call_id, f"method {method_id} is not served")
        decode, handler, name = served
        try:
            message = decode(frame[REST_BYTES:end])
        except msgspec.MsgspecError as error:
            logger.error("bad message method=%s caller=%s error=%s", name, self.caller, error)
            return self.refuse(call_id, f"bad message: {error}")
        reply = OpenReply(self, call_id, method_id)
        try:
            handler(message, frame[end:], reply)
        except Exception:
            logger.exception("handler failed method=%s caller=%s", name, self.caller)
            reply.fail("internal error")
        if reply._session is not None:
            if self._ended:
                reply.cancelled()
            else:
                self._open[call_id] = reply
        return None

    def _notify(self, method_id: int, frame: memoryview, end: int) -> None:
        served = self._served.get(method_id)
        if served is None:
            return
        decode, handler, name = served
        try:
            handler(decode(frame[REST_BYTES:end]), frame[end:], self._no_reply)
        except Exception:
            logger.exception("handler failed method=%s caller=%s", name, self.caller)

    def reply(self, call_id: int, method_id: int, message: Message, bulk: Sequence[Buffer]) -> None:
        self._open.pop(call_id, None)
        body = encode(message)
        size = REST_BYTES + len(body)
        if bulk:
            size += bulk_bytes(bulk)
            if size > self._owner.limits.max_frame_bytes:
                return self.refuse(call_id, f"a reply of {size} bytes is too large")
        head = pack_head(size, REPLY, call_id, method_id, len(body)) + body
        return self._send(head, bulk, size + LENGTH_BYTES)

    def refuse(self, call_id: int, reason: str) -> None:
        self._open.pop(call_id, None)
        frame = failure_frame(call_id, reason)
        self._send(frame, (), len(frame))

    def _send(self, head: bytes, bulk: Sequence[Buffer], size: int) -> None:
        pipe = self.pipe
        if pipe.queued_bytes > self._owner.limits.max_unread_bytes:
            self._break(f"{pipe.queued_bytes} bytes of replies wait for a caller that reads none")
        else:
            pipe.send(head, bulk, size)

    def _break(self, reason: str) -> None:
        self.pipe.close()
        self.lost(reason)

    def lost(self, reason: str) -> None:
        if self._ended:
            return
        self._ended = True
        if self.caller:
            logger.info(
                "caller gone caller=%s open=%d reason=%s", self.caller, len(self._open), reason
            )
        self._owner.ended(self)
        replies, self._open = self._open, {}
        for reply in replies.values():
            reply.cancelled()

    def close(self, reason: str) -> None:
        """Let go of the caller: it will find its calls failed."""
        self._break(reason)
