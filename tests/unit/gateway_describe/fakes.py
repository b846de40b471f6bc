"""Stands-in for what surrounds a handler: the request's sink, links, a small cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from mobula.actors.broker.messages import LinkStatus
from mobula.actors.config import Config
from mobula.actors.gateway.request import Request, RequestContext
from mobula.actors.gateway.services import Services
from mobula.actors.link.interface import Buffer, Handler, LinkError
from mobula.actors.link.method import Message, Method
from mobula.actors.metadata.image import MetadataImage
from mobula.actors.metadata.records import (
    BrokerRegistered,
    ClusterCreated,
    Endpoint,
    PartitionChanged,
    Record,
    TopicCreated,
)
from mobula.actors.runtime import Clock, SystemClock
from mobula.actors.spec import GATEWAY, ActorSpec, gateway_name
from mobula.protocol.headers import RequestHeader
from mobula.protocol.messages import build_request, decode_response, encode

LISTENER = "PLAINTEXT"


def broker(
    broker_id: int,
    *,
    fenced: bool = False,
    listener: str = LISTENER,
    rack: str | None = None,
    replica_actors: int = 1,
) -> BrokerRegistered:
    return BrokerRegistered(
        broker_id=broker_id,
        broker_epoch=broker_id,
        incarnation=f"life-{broker_id}",
        endpoints=[Endpoint(listener, "127.0.0.1", 9092 + broker_id)],
        rack=rack,
        ray_node_id="node",
        data_dir="",
        directory_id=bytes(16),
        num_replica_actors=replica_actors,
        fenced=fenced,
        in_controlled_shutdown=False,
    )


def topic(name: str, partitions: int, replicas: Sequence[int] = (0, 1, 2)) -> list[Record]:
    topic_id = name.encode().ljust(16, b"-")[:16]
    return [
        TopicCreated(topic_id, name),
        *(
            PartitionChanged(topic_id, index, list(replicas), list(replicas), replicas[0], 5, 1)
            for index in range(partitions)
        ),
    ]


def cluster(*records: Record) -> MetadataImage:
    image = MetadataImage()
    image.replay_all([ClusterCreated("cluster-id"), *records])
    return image


class FakeLink:
    """Keeps calls until a test answers or fails them."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.calls: dict[int, tuple[Message, Callable[..., None], Callable[..., None]]] = {}
        self.cancelled: list[int] = []

    def call(
        self,
        method: Method[Any, Any],
        message: Message,
        on_reply: Callable[..., None],
        on_error: Callable[..., None],
        *,
        bulk: Sequence[Buffer] = (),
        timeout_ms: int = 30_000,
    ) -> int:
        handle = len(self.calls)
        self.calls[handle] = (message, on_reply, on_error)
        return handle

    def answer(self, message: Message, handle: int = 0) -> None:
        self.calls[handle][1](message, memoryview(b""))

    def fail(self, handle: int = 0) -> None:
        self.calls[handle][2](LinkError(self.target, "gone", sent=True))

    def cancel(self, handle: int) -> None:
        self.cancelled.append(handle)

    def notify(self, method: Any, message: Any, *, bulk: Sequence[Buffer] = ()) -> None: ...
    def on_state(self, listener: Callable[[bool], None]) -> None: ...
    def transport_name(self) -> str:
        return "local"

    def close(self) -> None: ...


class FakeRuntime:
    loop: asyncio.AbstractEventLoop
    incarnation = 1
    restarts = 0
    ray_node_id = "node"

    def __init__(self, broker_id: int, data_dir: str) -> None:
        self.clock: Clock = SystemClock()
        self.links: dict[str, FakeLink] = {}
        self.spec = ActorSpec(
            cluster="test",
            kind=GATEWAY,
            local_name=gateway_name(broker_id, 0),
            broker_id=broker_id,
            run_dir="/nowhere",
            data_dir=data_dir,
        )

    def link(self, local_name: str) -> FakeLink:
        return self.links.setdefault(local_name, FakeLink(local_name))

    def serve(self, method: Method[Any, Any], handler: Handler) -> None: ...
    def link_statuses(self) -> list[LinkStatus]:
        return []

    def die(self, reason: str) -> None:
        raise AssertionError(reason)

    async def spawn(self, spec: ActorSpec) -> None: ...
    async def kill(self, local_name: str) -> None: ...


class FakeSink:
    """Where the response goes. What comes back on a link is handed on at once."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    def send(self, request: Request, body: list[Buffer]) -> None:
        assert not request.ended
        request.ended = True
        self.bodies.append(b"".join(body))

    def resume(
        self, request: Request, continuation: Callable[..., None], args: tuple[Any, ...]
    ) -> None:
        if not request.ended:
            continuation(*args)

    def no_op(self, request: Request) -> None: ...
    def close_connection(self, request: Request, reason: str) -> None: ...
    def local_done(self, request: Request) -> None: ...
    def release_records(self, request: Request) -> None: ...


def services(
    image: MetadataImage,
    *,
    broker_id: int = 0,
    settings: dict[str, str] | None = None,
    data_dir: str = "/nowhere",
) -> Services:
    return Services(
        runtime=FakeRuntime(broker_id, data_dir),
        broker_id=broker_id,
        config=Config(settings or {}),
        image=image,
        rows={},
    )


class Exchange:
    """One request through a handler, over the wire's own codecs."""

    def __init__(self, handler: Any, version: int, tree: dict[str, Any], on: Services) -> None:
        self._key, self._version = handler.API.key, version
        assert version in handler.API.versions
        body = bytearray(encode(build_request(self._key, version, tree)))
        self.sink = FakeSink()
        self.request = Request(
            RequestHeader(self._key, version, 7, "tester", 0),
            memoryview(body),
            RequestContext("connection", "127.0.0.1", LISTENER),
            self.sink,
            received_ns=1,
        )
        handler.handle(self.request, on)

    @property
    def response(self) -> Any:
        (body,) = self.sink.bodies
        return decode_response(self._key, self._version, body)
