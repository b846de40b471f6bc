"""Stands-in for what surrounds the replica cores: replies, links, partitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from mobula.actors.link.interface import Buffer, LinkError
from mobula.actors.link.method import Message, Method
from mobula.actors.replica.messages import Pull, PullAnswer, PulledPartition
from mobula.actors.replica.pull_session import Key, SessionPartition, out_of_reach
from mobula.protocol.errors import ErrorCode, KafkaError
from mobula.storage.log import LogRange

TOPIC = bytes(range(16))


class FakeReply:
    def __init__(self, caller: str = "broker-1/replica-0") -> None:
        self.caller = caller
        self.on_cancel: Callable[[], None] | None = None
        self.messages: list[Any] = []
        self.bulks: list[bytes] = []
        self.failures: list[str] = []

    def __call__(self, message: Message, bulk: Sequence[Buffer] = ()) -> None:
        self.messages.append(message)
        self.bulks.append(b"".join(bulk))

    def fail(self, reason: str) -> None:
        self.failures.append(reason)

    @property
    def message(self) -> Any:
        """The one answer."""
        assert len(self.messages) == 1
        return self.messages[0]


class Call(NamedTuple):
    handle: int
    method: Method[Any, Any]
    message: Any
    on_reply: Callable[[Any, memoryview], None]
    on_error: Callable[[LinkError], None]


class FakeLink:
    def __init__(self, target: str) -> None:
        self.target = target
        self.calls: dict[int, Call] = {}
        self.notices: list[Any] = []
        self.sent = 0
        self._listeners: list[Callable[[bool], None]] = []

    def call(
        self,
        method: Method[Any, Any],
        message: Any,
        on_reply: Callable[[Any, memoryview], None],
        on_error: Callable[[LinkError], None],
        *,
        bulk: Sequence[Buffer] = (),
        timeout_ms: int = 30_000,
    ) -> int:
        self.sent += 1
        self.calls[self.sent] = Call(self.sent, method, message, on_reply, on_error)
        return self.sent

    def notify(
        self, method: Method[Any, Any], message: Any, *, bulk: Sequence[Buffer] = ()
    ) -> None:
        self.notices.append(message)

    def cancel(self, handle: int) -> None:
        self.calls.pop(handle, None)

    def on_state(self, listener: Callable[[bool], None]) -> None:
        self._listeners.append(listener)

    def transport_name(self) -> str:
        return "local"

    def close(self) -> None:
        self.calls.clear()

    # What tests do.

    def take(self) -> Call:
        """The one open call."""
        assert len(self.calls) == 1
        return self.calls.pop(next(iter(self.calls)))

    def answer(self, message: Message, bulk: bytes = b"") -> None:
        """Answer the oldest open call."""
        call = self.calls.pop(next(iter(self.calls)))
        call.on_reply(message, memoryview(bytearray(bulk)))

    def break_calls(self) -> None:
        for handle in list(self.calls):
            call = self.calls.pop(handle, None)
            if call is not None:
                call.on_error(LinkError(self.target, "broken", sent=True))

    def came_up(self) -> None:
        for listener in self._listeners:
            listener(True)


class FakeSource:
    """A led partition whose every record is one batch of 100 bytes."""

    def __init__(self, partition: int, log_end_offset: int = 0, leader_epoch: int = 5) -> None:
        self.key: Key = (TOPIC, partition)
        self.readers: list[SessionPartition] = []
        self.leader_epoch = leader_epoch
        self.log_start_offset = 0
        self.log_end_offset = log_end_offset
        self.high_watermark_offset = 0
        self.heard: list[int] = []
        self.unreadable = False

    def follower_pulled(
        self, pull: Pull, position: PulledPartition, now_ms: int
    ) -> PullAnswer | None:
        if position.leader_epoch != self.leader_epoch:
            return out_of_reach(self, int(ErrorCode.fenced_leader_epoch))
        self.heard.append(position.fetch_offset)
        return None

    def ranges_from(self, offset: int, max_bytes: int) -> tuple[list[LogRange], int]:
        if self.unreadable:
            raise KafkaError(ErrorCode.kafka_storage_error)
        count = min(max(max_bytes // 100, 1), self.log_end_offset - offset)
        if count == 0:
            return [], offset
        return [LogRange(0, offset * 100, count * 100)], offset + count

    def read(self, log_range: LogRange) -> memoryview:
        return memoryview(bytes([self.key[1]]) * log_range.length)


def position(partition: int, offset: int = 0, epoch: int = 5) -> PulledPartition:
    return PulledPartition(TOPIC, partition, epoch, offset, -1, 0)


def pull(
    *changed: PulledPartition,
    session: int = 0,
    sequence: int = 0,
    removed: list[Key] | None = None,
    wants_bytes: bool = False,
    max_bytes: int = 10_000,
) -> Pull:
    return Pull(
        1, 101, session, sequence, wants_bytes, max_bytes, 500, list(changed), removed or []
    )
