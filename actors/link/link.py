"""The calling end of a link: which calls are open, until when, and who hears of them.

It owns the calls and outlives its pipes: when one breaks, every call that was sent on it
fails at once, and what is called meanwhile waits for the next.

Invariant: a call ends exactly once, by `on_reply`, by `on_error` or by `cancel`; neither
callback runs before `call` has returned.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import msgspec

from mobula.actors.link.dial import Dialers, Dialling
from mobula.actors.link.interface import Buffer, LinkError, ReplyT, RequestT
from mobula.actors.link.method import Method, encode
from mobula.actors.link.pipe import LinkLimits, Pipe
from mobula.actors.link.wire import (
    CALL,
    CANCEL,
    FAILURE,
    LAST_CALL_ID,
    LENGTH_BYTES,
    NOTIFY,
    REPLY,
    REST_BYTES,
    Hello,
    bulk_bytes,
    decode_reason,
    pack_head,
    small_frame,
    unpack_rest,
)

logger = logging.getLogger(__name__)

_SWEEP_S = 0.05
"""How late a deadline may be noticed."""
_NEVER_S = float("inf")


_Call: TypeAlias = tuple[
    float,
    Callable[[Any], Any],
    Callable[[Any, memoryview], None],
    Callable[[LinkError], None],
]
"""Deadline, how to decode the reply, `on_reply`, `on_error`: a bare tuple, made per call."""


class _Waiting(NamedTuple):
    """A call that no pipe has taken yet."""

    head: bytes
    bulk: Sequence[Buffer]
    size: int


class ActorLink:
    """Made by the runtime, one per peer; looks for the peer from the start."""

    def __init__(
        self,
        target: str,
        loop: asyncio.AbstractEventLoop,
        dialers: Dialers,
        limits: LinkLimits,
    ) -> None:
        self.target = target
        self.peer_incarnation: int | None = None
        """Of the last life of the peer that greeted."""
        self._loop = loop
        self._limits = limits
        self._pipe: Pipe | None = None
        self._calls: dict[int, _Call] = {}
        self._waiting: dict[int, _Waiting] = {}
        self._waiting_bytes = 0
        self._last_id = 0
        self._soonest_s = _NEVER_S
        self._sweeping = False
        self._listeners: list[Callable[[bool], None]] = []
        self._closed = False
        self._dialling = Dialling(target, loop, dialers, self._opened)
        self._dialling.start()

    def call(
        self,
        method: Method[RequestT, ReplyT],
        message: RequestT,
        on_reply: Callable[[ReplyT, memoryview], None],
        on_error: Callable[[LinkError], None],
        *,
        bulk: Sequence[Buffer] = (),
        timeout_ms: int = 30_000,
    ) -> int:
        call_id = self._last_id + 1 if self._last_id < LAST_CALL_ID else 1
        self._last_id = call_id
        deadline_s = self._loop.time() + timeout_ms / 1000
        self._calls[call_id] = (deadline_s, method.decode_reply.decode, on_reply, on_error)
        if deadline_s < self._soonest_s:  # noqa: PLR1730 (min() costs more, at every call)
            self._soonest_s = deadline_s
        if not self._sweeping:
            self._sweeping = True
            self._loop.call_later(_SWEEP_S, self._sweep)
        body = encode(message)
        size = REST_BYTES + len(body)
        if bulk:
            size += bulk_bytes(bulk)
            if size > self._limits.max_frame_bytes:
                self._refuse_soon(call_id, f"a call of {size} bytes is too large")
                return call_id
        head = pack_head(size, CALL, call_id, method.id, len(body)) + body
        pipe = self._pipe
        if pipe is None:
            self._wait(call_id, _Waiting(head, bulk, size + LENGTH_BYTES))
        elif pipe.queued_bytes > self._limits.max_queued_bytes:
            self._refuse_soon(call_id, f"{pipe.queued_bytes} bytes wait to be sent already")
        else:
            pipe.send(head, bulk, size + LENGTH_BYTES)
        return call_id

    def _wait(self, call_id: int, waiting: _Waiting) -> None:
        if self._closed:
            self._refuse_soon(call_id, "the link is closed")
        elif self._waiting_bytes > self._limits.max_queued_bytes:
            self._refuse_soon(call_id, f"{self._waiting_bytes} bytes wait for the link already")
        else:
            self._waiting[call_id] = waiting
            self._waiting_bytes += waiting.size

    def notify(
        self, method: Method[RequestT, Any], message: RequestT, *, bulk: Sequence[Buffer] = ()
    ) -> None:
        pipe = self._pipe
        if pipe is None or pipe.queued_bytes > self._limits.max_queued_bytes:
            return
        body = encode(message)
        size = REST_BYTES + len(body) + bulk_bytes(bulk)
        if size > self._limits.max_frame_bytes:
            logger.error("notify too large target=%s method=%s", self.target, method.name)
            return
        pipe.send(
            pack_head(size, NOTIFY, 0, method.id, len(body)) + body, bulk, size + LENGTH_BYTES
        )

    def cancel(self, handle: int) -> None:
        if self._calls.pop(handle, None) is not None:
            self._withdraw(handle)

    def _withdraw(self, call_id: int) -> None:
        """Nobody here waits for the call any more: take it back, or tell the callee."""
        waiting = self._waiting.pop(call_id, None)
        if waiting is not None:
            self._waiting_bytes -= waiting.size
        elif self._pipe is not None:
            frame = small_frame(CANCEL, call_id)
            self._pipe.send(frame, (), len(frame))

    def on_state(self, listener: Callable[[bool], None]) -> None:
        self._listeners.append(listener)
        if self._pipe is not None:
            listener(True)

    def transport_name(self) -> str:
        return "down" if self._pipe is None else self._pipe.transport_name

    @property
    def queued_bytes(self) -> int:
        """What was called and has not left yet."""
        return self._waiting_bytes if self._pipe is None else self._pipe.queued_bytes

    @property
    def writable(self) -> bool:
        """False while calls would be refused because too much waits already."""
        return not self._closed and self.queued_bytes <= self._limits.max_queued_bytes

    def nudge(self) -> None:
        """The peer was just heard of: if the link is down, look for it now."""
        self._dialling.nudge()

    def close(self) -> None:
        """End the link; calls that are open fail."""
        if self._closed:
            return
        self._closed = True
        self._dialling.stop()
        if self._pipe is not None:
            self._pipe.close()
            self._went_down("the link is closed")
        for call_id in list(self._calls):
            self._fail(call_id, "the link is closed")

    def _opened(self, pipe: Pipe, hello: Hello) -> None:
        logger.info(
            "link up target=%s transport=%s incarnation=%d",
            self.target,
            pipe.transport_name,
            hello.incarnation,
        )
        self.peer_incarnation = hello.incarnation
        self._pipe = pipe
        pipe.receiver = self
        waiting, self._waiting, self._waiting_bytes = self._waiting, {}, 0
        for head, bulk, size in waiting.values():
            pipe.send(head, bulk, size)
        self._tell(True)

    def received(self, frame: memoryview) -> None:
        kind, call_id, _, length = unpack_rest(frame)
        call = self._calls.pop(call_id, None)
        if call is None:
            return
        _, decode, on_reply, on_error = call
        end = REST_BYTES + length
        if kind == REPLY and end <= len(frame):
            try:
                message = decode(frame[REST_BYTES:end])
            except msgspec.MsgspecError as cause:
                error = LinkError(self.target, f"bad reply: {cause}", sent=True)
            else:
                try:
                    on_reply(message, frame[end:])
                except Exception:
                    logger.exception("a callback failed target=%s", self.target)
                return
        elif kind == FAILURE:
            error = LinkError(self.target, decode_reason(frame[REST_BYTES:end]), sent=True)
        else:
            error = LinkError(self.target, f"answered by a frame of kind {kind}", sent=True)
        self._run_on_error(on_error, error)

    def lost(self, reason: str) -> None:
        self._went_down(reason)
        if not self._closed:
            self._dialling.start()

    def _went_down(self, reason: str) -> None:
        logger.info("link down target=%s reason=%s", self.target, reason)
        self._pipe = None
        sent = [call_id for call_id in self._calls if call_id not in self._waiting]
        self._tell(False)
        for call_id in sent:
            self._fail(call_id, reason)

    def _tell(self, up: bool) -> None:
        for listener in self._listeners:
            if up is not (self._pipe is not None):
                # A listener closed the link; what it was told before no longer holds.
                return
            try:
                listener(up)
            except Exception:
                logger.exception("a state listener failed target=%s", self.target)

    def _refuse_soon(self, call_id: int, reason: str) -> None:
        self._loop.call_soon(self._refuse, call_id, reason)

    def _refuse(self, call_id: int, reason: str) -> None:
        call = self._calls.pop(call_id, None)
        if call is not None:
            self._run_on_error(call[3], LinkError(self.target, reason, sent=False))

    def _fail(self, call_id: int, reason: str) -> None:
        """End a call here; whether the callee may have seen it depends on where it is."""
        call = self._calls.pop(call_id, None)
        if call is not None:
            sent = call_id not in self._waiting
            self._withdraw(call_id)
            self._run_on_error(call[3], LinkError(self.target, reason, sent=sent))

    def _run_on_error(self, on_error: Callable[[LinkError], None], error: LinkError) -> None:
        try:
            on_error(error)
        except Exception:
            logger.exception("a callback failed target=%s", self.target)

    def _sweep(self) -> None:
        """End what is past its deadline. Looks at the calls only when one can be."""
        now_s = self._loop.time()
        if now_s >= self._soonest_s:
            late = [call_id for call_id, call in self._calls.items() if call[0] <= now_s]
            for call_id in late:
                self._fail(call_id, "no answer before the deadline")
            self._soonest_s = min((call[0] for call in self._calls.values()), default=_NEVER_S)
        if self._calls:
            self._loop.call_later(_SWEEP_S, self._sweep)
        else:
            self._sweeping = False
            self._soonest_s = _NEVER_S
