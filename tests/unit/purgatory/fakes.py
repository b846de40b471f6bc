"""Stands-in for what surrounds the purgatory: replies, rows, links, an event loop."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mobula.actors.link.interface import Buffer, Handler
from mobula.actors.link.method import Message, Method
from mobula.actors.purgatory.delayed_operation import Key
from mobula.actors.rows import Role, Row
from mobula.actors.spec import PURGATORY, ActorSpec, purgatory_name

TOPIC = bytes(range(16))
KEY: Key = (TOPIC, 0)


def leader(**changes: Any) -> Row:
    """A leader's row: high watermark 10 at byte 1000 of segment 0, log end 20 at 2000."""
    row = Row(
        topic_id=TOPIC,
        partition=0,
        role=Role.LEADER,
        leader_epoch=3,
        generation=1,
        log_start_offset=0,
        low_watermark=0,
        high_watermark=10,
        high_watermark_segment=0,
        high_watermark_position=1000,
        last_stable_offset=10,
        last_stable_segment=0,
        last_stable_position=1000,
        log_end_offset=20,
        log_end_segment=0,
        log_end_position=2000,
        epoch_start_offset=0,
        in_sync_replicas=3,
        min_in_sync_replicas=1,
    )
    return row._replace(**changes)


class FakeReply:
    def __init__(self) -> None:
        self.caller = "broker-0/gateway-0"
        self.on_cancel: Callable[[], None] | None = None
        self.messages: list[Any] = []
        self.failures: list[str] = []

    def __call__(self, message: Message, bulk: Sequence[Buffer] = ()) -> None:
        self.messages.append(message)

    def fail(self, reason: str) -> None:
        self.failures.append(reason)

    def cancel(self) -> None:
        assert self.on_cancel is not None
        self.on_cancel()


class FakePartitions:
    """Rows by key; `known` are the partitions that metadata has."""

    def __init__(self) -> None:
        self.rows: dict[Key, Row] = {}
        self.known: set[Key] = set()
        self.finds = 0

    def find(self, key: Key) -> Row | None:
        self.finds += 1
        return self.rows.get(key)

    def absent_code(self, key: Key) -> int:
        return 6 if key in self.known else 3


class FakeHandle:
    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class FakeLoop:
    """Time stands still until `run_until`; timers run in order, at their own time."""

    def __init__(self) -> None:
        self.now_ms = 1_000_000
        self._timers: list[tuple[int, int, FakeHandle]] = []
        self._count = 0
        self.fired = 0

    def call_later(self, delay: float, callback: Callable[[], None]) -> FakeHandle:
        handle = FakeHandle(callback)
        self._count += 1
        heapq.heappush(self._timers, (self.now_ms + round(delay * 1000), self._count, handle))
        return handle

    def pass_ms(self, duration_ms: int) -> None:
        end_ms = self.now_ms + duration_ms
        while self._timers and self._timers[0][0] <= end_ms:
            self.now_ms, _, handle = heapq.heappop(self._timers)
            if handle.callback is not None:
                self.fired += 1
                handle.callback()
        self.now_ms = end_ms


class FakeClock:
    def __init__(self, loop: FakeLoop) -> None:
        self._loop = loop

    def now_ms(self) -> int:
        return self._loop.now_ms

    def monotonic_ms(self) -> int:
        return self._loop.now_ms


class FakeLink:
    def __init__(self, target: str) -> None:
        self.target = target
        self._listeners: list[Callable[[bool], None]] = []
        self.up = True

    def on_state(self, listener: Callable[[bool], None]) -> None:
        self._listeners.append(listener)
        if self.up:
            listener(True)

    def set_up(self, up: bool) -> None:
        self.up = up
        for listener in self._listeners:
            listener(up)


class FakeRuntime:
    def __init__(self, run_dir: Path) -> None:
        self.spec = ActorSpec(
            cluster="test",
            kind=PURGATORY,
            local_name=purgatory_name(0),
            broker_id=0,
            run_dir=str(run_dir),
            data_dir=str(run_dir / "data"),
        )
        self.loop = FakeLoop()
        self.clock = FakeClock(self.loop)
        self.links: dict[str, FakeLink] = {}
        self.handlers: dict[int, Handler] = {}

    def link(self, local_name: str) -> FakeLink:
        return self.links.setdefault(local_name, FakeLink(local_name))

    def serve(self, method: Method[Any, Any], handler: Handler) -> None:
        self.handlers[method.id] = handler

    def call(self, method: Method[Any, Any], message: Message) -> FakeReply:
        reply = FakeReply()
        self.handlers[method.id](message, memoryview(b""), reply)
        return reply
