"""Fakes of what a gateway talks to: links, the clock, the runtime; and batches to send."""

from __future__ import annotations

import asyncio
import itertools
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from crc32c import crc32c

from mobula.actors.broker.messages import LinkStatus
from mobula.actors.config import Config
from mobula.actors.gateway.request import Request, RequestContext
from mobula.actors.gateway.request_handler_helper import handle_error
from mobula.actors.gateway.services import Services
from mobula.actors.link.interface import Buffer, Handler, LinkError
from mobula.actors.link.method import Message, Method
from mobula.actors.metadata.image import MetadataImage
from mobula.actors.metadata.records import (
    BrokerRegistered,
    ClusterCreated,
    Endpoint,
    PartitionChanged,
    TopicCreated,
)
from mobula.actors.spec import GATEWAY, ActorSpec, gateway_name
from mobula.protocol.errors import DecodeError, KafkaError
from mobula.protocol.headers import RequestHeader

BROKER_ID = 0
LISTENER = "PLAINTEXT"
CLIENT = "127.0.0.1"
ORDERS = b"orders-topic-id!"
EVENTS = b"events-topic-id!"


@dataclass
class Call:
    method: Method[Any, Any]
    message: Any
    on_reply: Callable[[Any, memoryview], None]
    on_error: Callable[[LinkError], None]
    bulk: list[bytes]
    timeout_ms: int
    cancelled: bool = False

    def reply(self, message: Message, bulk: bytes = b"") -> None:
        assert not self.cancelled
        self.on_reply(message, memoryview(bytearray(bulk)))

    def fail(self, reason: str = "broken", *, sent: bool = True) -> None:
        assert not self.cancelled
        self.on_error(LinkError("fake", reason, sent=sent))


class FakeLink:
    """Keeps every call until the test answers it."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.calls: list[Call] = []
        self.notices: list[Message] = []
        self.listeners: list[Callable[[bool], None]] = []

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
        copied = [bytes(part) for part in bulk]
        self.calls.append(Call(method, message, on_reply, on_error, copied, timeout_ms))
        return len(self.calls) - 1

    def notify(
        self, method: Method[Any, Any], message: Any, *, bulk: Sequence[Buffer] = ()
    ) -> None:
        self.notices.append(message)

    def cancel(self, handle: int) -> None:
        self.calls[handle].cancelled = True

    def on_state(self, listener: Callable[[bool], None]) -> None:
        self.listeners.append(listener)
        listener(True)

    def state_changed(self, up: bool) -> None:
        for listener in self.listeners:
            listener(up)

    def transport_name(self) -> str:
        return "local"

    def close(self) -> None: ...

    @property
    def last(self) -> Call:
        return self.calls[-1]


class FakeClock:
    def __init__(self) -> None:
        self.ms = 1_000_000

    def now_ms(self) -> int:
        return self.ms

    def monotonic_ms(self) -> int:
        return self.ms


class FakeTimer:
    def __init__(self, due_ms: int, callback: Callable[[], None]) -> None:
        self.due_ms = due_ms
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class FakeLoop:
    """Timers that the test fires by moving the clock."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self.timers: list[FakeTimer] = []

    def call_later(self, delay_s: float, callback: Callable[..., None], *args: Any) -> FakeTimer:
        timer = FakeTimer(self._clock.ms + int(delay_s * 1000), lambda: callback(*args))
        self.timers.append(timer)
        return timer

    def call_soon(self, callback: Callable[..., None], *args: Any) -> FakeTimer:
        return self.call_later(0, callback, *args)

    def advance(self, ms: int) -> None:
        until_ms = self._clock.ms + ms
        while due := [t for t in self.timers if t.due_ms <= until_ms]:
            timer = min(due, key=lambda t: t.due_ms)
            self.timers.remove(timer)
            self._clock.ms = max(self._clock.ms, timer.due_ms)
            if not timer.cancelled:
                timer.callback()
        self._clock.ms = until_ms


class FakeRuntime:
    incarnation = 1
    restarts = 0
    ray_node_id = "node"

    def __init__(
        self,
        *,
        config: dict[str, str] | None = None,
        run_dir: str = "/nowhere",
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self.spec = ActorSpec(
            cluster="test",
            kind=GATEWAY,
            local_name=gateway_name(BROKER_ID, 0),
            broker_id=BROKER_ID,
            config=config or {},
            run_dir=run_dir,
            data_dir="/nowhere",
        )
        self.clock = FakeClock()
        self.loop: Any = loop or FakeLoop(self.clock)
        self.links: dict[str, FakeLink] = {}
        self.served: dict[int, Handler] = {}

    def link(self, local_name: str) -> Any:
        if local_name not in self.links:
            self.links[local_name] = FakeLink(local_name)
        return self.links[local_name]

    def serve(self, method: Method[Any, Any], handler: Handler) -> None:
        self.served[method.id] = handler

    def link_statuses(self) -> list[LinkStatus]:
        return []

    def die(self, reason: str) -> None:
        raise AssertionError(reason)

    async def spawn(self, spec: ActorSpec) -> None: ...

    async def kill(self, local_name: str) -> None: ...


class FakeReply:
    caller = "broker-0"
    on_cancel: Callable[[], None] | None = None

    def __init__(self) -> None:
        self.messages: list[Message] = []

    def __call__(self, message: Message, bulk: Sequence[Buffer] = ()) -> None:
        self.messages.append(message)

    def fail(self, reason: str) -> None:
        raise AssertionError(reason)


@dataclass
class FakeSink:
    """What became of requests that have no connection."""

    sent: list[bytes] = field(default_factory=list)
    no_ops: int = 0
    closed: list[str] = field(default_factory=list)
    released: int = 0
    local_dones: int = 0

    def send(self, request: Request, body: list[Buffer]) -> None:
        assert not request.ended
        request.ended = True
        self.sent.append(b"".join(body))

    def no_op(self, request: Request) -> None:
        assert not request.ended
        request.ended = True
        self.no_ops += 1

    def close_connection(self, request: Request, reason: str) -> None:
        assert not request.ended
        request.ended = True
        self.closed.append(reason)

    def resume(
        self, request: Request, continuation: Callable[..., None], args: tuple[Any, ...]
    ) -> None:
        if request.ended:
            return
        try:
            continuation(*args)
        except (KafkaError, DecodeError) as error:
            handle_error(request, error)

    def local_done(self, request: Request) -> None:
        self.local_dones += 1

    def release_records(self, request: Request) -> None:
        self.released += 1

    @property
    def endings(self) -> int:
        return len(self.sent) + self.no_ops + len(self.closed)


def request_of(
    key: int, version: int, body: bytes, sink: FakeSink, *, client: str = CLIENT
) -> Request:
    frame = memoryview(bytearray(body))
    header = RequestHeader(int(key), version, 7, "test", 0)
    return Request(header, frame, RequestContext("c-1", client, LISTENER), sink, 1)


def broker(
    broker_id: int, *, fenced: bool = False, rack: str | None = None, listener: str = LISTENER
) -> BrokerRegistered:
    return BrokerRegistered(
        broker_id,
        1,
        "incarnation",
        [Endpoint(listener, f"host-{broker_id}", 9092 + broker_id)],
        rack,
        "node",
        "/nowhere",
        b"directory-id-16b",
        1,
        fenced,
        False,
    )


def partition(
    topic_id: bytes,
    index: int,
    *,
    leader: int = BROKER_ID,
    epoch: int = 3,
    replicas: Sequence[int] = (0, 1, 2),
    isr: Sequence[int] = (0, 1, 2),
) -> PartitionChanged:
    return PartitionChanged(topic_id, index, list(replicas), list(isr), leader, epoch, 1)


def cluster_image(*records: Any) -> MetadataImage:
    """Three brokers; `orders` with two partitions led here and one led by broker 1."""
    image = MetadataImage()
    image.replay_all(
        [
            ClusterCreated("cluster-id"),
            broker(0, rack="a"),
            broker(1, rack="b"),
            broker(2),
            TopicCreated(ORDERS, "orders"),
            partition(ORDERS, 0),
            partition(ORDERS, 1),
            partition(ORDERS, 2, leader=1, epoch=5),
            *records,
        ]
    )
    return image


def services_of(
    runtime: FakeRuntime, image: MetadataImage | None = None, **config: str
) -> Services:
    settings = {key.replace("_", "."): value for key, value in config.items()}
    return Services(
        runtime=runtime,
        broker_id=BROKER_ID,
        config=Config(settings),
        image=image or cluster_image(),
        rows={},
    )


_HEADER = struct.Struct(">qiibIhiqqqhii")
_sequence = itertools.count()


def batch(
    *,
    records: int = 1,
    size: int = 100,
    attributes: int = 0,
    magic: int = 2,
    producer_id: int = -1,
) -> bytes:
    """A batch whose header and CRC hold; its records are bytes nobody looks at."""
    payload = struct.pack(">q", next(_sequence)) + bytes(max(0, size - 8))
    epoch, sequence = (0, 0) if producer_id >= 0 else (-1, -1)
    covered = (
        struct.pack(
            ">hiqqqhii", attributes, records - 1, 0, 0, producer_id, epoch, sequence, records
        )
        + payload
    )
    head = struct.pack(">qiibI", 0, 9 + len(covered), -1, magic, crc32c(covered))
    return head + covered
