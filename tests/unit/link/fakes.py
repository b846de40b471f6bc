"""A loop whose time is a variable, and the ends of a pipe that tests hold in their hands."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import Any, cast

from mobula.actors.link.interface import Buffer
from mobula.actors.link.pipe import Receiver
from mobula.actors.link.wire import (
    REPLY,
    REST_BYTES,
    VERSION,
    Hello,
    hello_frame,
    pack_head,
    unpack_rest,
)


class Timer:
    def __init__(self, callback: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.callback: Callable[..., Any] | None = callback
        self.args = args

    def cancel(self) -> None:
        self.callback = None


class FakeLoop:
    """As much of an event loop as links use."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.soon: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
        self._timers: list[tuple[float, int, Timer]] = []
        self._count = 0

    def time(self) -> float:
        return self.now_s

    def call_soon(self, callback: Callable[..., Any], *args: Any) -> None:
        self.soon.append((callback, args))

    call_soon_threadsafe = call_soon

    def call_later(self, delay_s: float, callback: Callable[..., Any], *args: Any) -> Timer:
        timer = Timer(callback, args)
        self._count += 1
        heapq.heappush(self._timers, (self.now_s + delay_s, self._count, timer))
        return timer

    def next_timer_s(self) -> float | None:
        return min((at for at, _, timer in self._timers if timer.callback), default=None)

    def turn(self) -> None:
        """Run what was called soon, and what that calls soon, until nothing is left."""
        while self.soon:
            ready, self.soon = self.soon, []
            for callback, args in ready:
                callback(*args)

    def advance(self, seconds: float) -> None:
        end_s = self.now_s + seconds
        self.turn()
        while self._timers and self._timers[0][0] <= end_s:
            self.now_s, _, timer = heapq.heappop(self._timers)
            if timer.callback is not None:
                timer.callback(*timer.args)
            self.turn()
        self.now_s = end_s


class FakePipe:
    """Keeps what is sent."""

    def __init__(self, receiver: Receiver, transport_name: str = "local") -> None:
        self.receiver = receiver
        self.transport_name = transport_name
        self.queued_bytes = 0
        self.sent: list[bytes] = []
        """Frames without their length."""
        self.closed = False

    def send(self, head: bytes, bulk: Sequence[Buffer], size: int) -> None:
        frame = b"".join((head, *bulk))
        assert len(frame) == size == int.from_bytes(frame[:4]) + 4
        self.sent.append(frame[4:])

    def close(self) -> None:
        self.closed = True

    def kinds(self) -> list[int]:
        return [unpack_rest(frame)[0] for frame in self.sent]

    def receive(self, frame: bytes) -> None:
        """`frame` has its length."""
        self.receiver.received(memoryview(bytearray(frame[4:])))

    def greet(self, name: str = "callee", incarnation: int = 7, node: str = "node-1") -> None:
        self.receive(hello_frame(Hello(VERSION, name, incarnation, node)))

    def reply(self, call_id: int, message: bytes, bulk: bytes = b"") -> None:
        size = REST_BYTES + len(message) + len(bulk)
        self.receive(pack_head(size, REPLY, call_id, 1, len(message)) + message + bulk)


class FakeDialer:
    """Every pipe that was dialled, in order."""

    def __init__(self, transport_name: str = "local") -> None:
        self.pipes: list[FakePipe] = []
        self._transport_name = transport_name

    def dial(self, target: str, receiver: Receiver) -> FakePipe:
        pipe = FakePipe(receiver, self._transport_name)
        self.pipes.append(pipe)
        return pipe


class FakeReceiver:
    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.reasons: list[str] = []

    def received(self, frame: memoryview) -> None:
        self.frames.append(bytes(frame))

    def lost(self, reason: str) -> None:
        self.reasons.append(reason)


def as_loop(loop: FakeLoop) -> Any:
    return cast(Any, loop)
