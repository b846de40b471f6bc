"""How a link that is down comes up again: over which transport, and how often it tries.

With `link.transport=auto` a socket of the peer on this node is tried at every turn; an
actor that has none is looked for through Ray, less often. A peer that greets through Ray
and says that it lives on this node is not taken: its socket is about to be there.

Invariant: at most one attempt per transport is under way, and at most one is taken.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import msgspec

from mobula.actors.link.pipe import Pipe, Receiver
from mobula.actors.link.wire import (
    HELLO,
    REST_BYTES,
    VERSION,
    Hello,
    decode_hello,
    hello_frame,
    unpack_rest,
)

AUTO = "auto"
RAY = "ray"
RAY_BETWEEN_BROKERS = "ray-between-brokers"
"""The values of `link.transport`."""

_FIRST_DELAY_S = 0.01
_LAST_DELAY_S = 0.5
_RAY_FIRST_DELAY_S = 0.3
"""With `auto`: how long a socket of the peer is waited for before Ray is asked."""
_RAY_LAST_DELAY_S = 5.0


class Dialer(Protocol):
    """Opens pipes of one transport."""

    def dial(self, target: str, receiver: Receiver) -> Pipe:
        """A pipe that can be sent on at once. `receiver.lost` says that it failed."""


@dataclass(frozen=True, slots=True)
class Dialers:
    """The ways that an actor has to reach others."""

    hello: Hello
    local: Dialer | None = None
    ray: Dialer | None = None

    def to(self, transport: str, from_broker: int, to_broker: int) -> Dialers:
        """Those that `link.transport` allows; -1 is no broker's actor."""
        apart = transport == RAY_BETWEEN_BROKERS and -1 < from_broker != to_broker > -1
        if self.ray is not None and (apart or transport == RAY):
            return replace(self, local=None)
        return self


OnOpen = Callable[[Pipe, Hello], None]


class _Attempt:
    """One pipe until the peer has greeted back."""

    def __init__(self, owner: Dialling) -> None:
        self._owner = owner
        self.pipe: Pipe

    def received(self, frame: memoryview) -> None:
        kind, _, _, length = unpack_rest(frame)
        try:
            hello = decode_hello(frame[REST_BYTES : REST_BYTES + length])
        except msgspec.MsgspecError:
            hello = None
        if kind != HELLO or hello is None or hello.version != VERSION:
            self.pipe.close()
            self._owner.failed(self)
        else:
            self._owner.greeted(self, hello)

    def lost(self, reason: str) -> None:
        self._owner.failed(self)


class Dialling:
    """The search for one peer. Runs from `start` until a pipe is open, or `stop`."""

    def __init__(
        self, target: str, loop: asyncio.AbstractEventLoop, dialers: Dialers, on_open: OnOpen
    ) -> None:
        self._target = target
        self._loop = loop
        self._dialers = dialers
        self._on_open = on_open
        self._local: _Attempt | None = None
        self._ray: _Attempt | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._delay_s = _FIRST_DELAY_S
        self._ray_delay_s = _RAY_FIRST_DELAY_S
        self._ray_at_s = 0.0
        self._running = False
        self._was_elsewhere = False
        """The peer was last reached through Ray, so it is asked first."""

    def start(self) -> None:
        if self._running:
            return
        self._running = True
        self._delay_s = _FIRST_DELAY_S
        self._ray_delay_s = _RAY_FIRST_DELAY_S
        self._ray_at_s = self._loop.time() + (0.0 if self._was_elsewhere else _RAY_FIRST_DELAY_S)
        self._turn()

    def stop(self) -> None:
        self._running = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        attempts = (self._local, self._ray)
        self._local = self._ray = None
        for attempt in attempts:
            if attempt is not None:
                attempt.pipe.close()

    def nudge(self) -> None:
        """The peer was just heard of: look again now."""
        if self._running:
            self._delay_s = _FIRST_DELAY_S
            self._turn()

    def _turn(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(self._delay_s, self._turn)
        self._delay_s = min(self._delay_s * 2, _LAST_DELAY_S)
        if self._dialers.local is not None and self._local is None:
            self._local = self._attempt(self._dialers.local)
        if self._dialers.ray is not None and self._ray is None:
            now_s = self._loop.time()
            if self._dialers.local is None:
                self._ray = self._attempt(self._dialers.ray)
            elif now_s >= self._ray_at_s:
                self._ray_delay_s = min(self._ray_delay_s * 2, _RAY_LAST_DELAY_S)
                self._ray_at_s = now_s + self._ray_delay_s
                self._ray = self._attempt(self._dialers.ray)

    def _attempt(self, dialer: Dialer) -> _Attempt:
        attempt = _Attempt(self)
        attempt.pipe = dialer.dial(self._target, attempt)
        frame = hello_frame(self._dialers.hello)
        attempt.pipe.send(frame, (), len(frame))
        return attempt

    def failed(self, attempt: _Attempt) -> None:
        if attempt is self._local:
            self._local = None
        elif attempt is self._ray:
            self._ray = None

    def greeted(self, attempt: _Attempt, hello: Hello) -> None:
        here = hello.ray_node_id == self._dialers.hello.ray_node_id
        if attempt is self._ray and self._dialers.local is not None and here:
            self._ray = None
            attempt.pipe.close()
            self.nudge()
            return
        if attempt is self._local:
            self._local = None
        elif attempt is self._ray:
            self._ray = None
        else:
            return
        self._was_elsewhere = not here
        self.stop()
        self._on_open(attempt.pipe, hello)
