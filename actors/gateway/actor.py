"""The gateway actor: the shell that puts the request plane together.

It takes client sockets from its broker's acceptor and the metadata from its broker; no
request is read before the metadata is there and the broker said that it may be served.
After a restart it begins empty: its clients were cut off and connect again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from mobula.actors.broker.messages import (
    CONNECTIONS_CLOSED,
    DRAIN,
    METADATA_UPDATE,
    SERVE,
    ConnectionsClosed,
    Drain,
    MetadataUpdate,
    Serve,
)
from mobula.actors.config import Config
from mobula.actors.gateway.api_version_manager import ApiVersionManager
from mobula.actors.gateway.kafka_apis import HANDLERS, KafkaApis
from mobula.actors.gateway.memory_pool import UNLIMITED, MemoryPool
from mobula.actors.gateway.processor import Processor, ProcessorConfig
from mobula.actors.gateway.request_channel import RequestChannel
from mobula.actors.gateway.request_handler_pool import RequestHandlerPool
from mobula.actors.gateway.services import Services
from mobula.actors.gateway.sockets_channel import SocketsChannel, fds_path
from mobula.actors.link.interface import Reply
from mobula.actors.link.method import Nothing
from mobula.actors.metadata.image import MetadataImage
from mobula.actors.metadata.records import decode_record
from mobula.actors.purgatory.messages import PARTITIONS_CHANGED
from mobula.actors.runtime import Runtime
from mobula.actors.spec import CONTROLLER_NAME, broker_name, purgatory_name, replica_name


class GatewayActor:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        spec = runtime.spec
        config = Config(spec.config)
        gateways = config.integer("num.network.threads")
        memory_bytes = config.integer("queued.max.request.bytes")
        self._memory = MemoryPool(UNLIMITED if memory_bytes < 0 else _share(memory_bytes, gateways))
        self._channel = RequestChannel(
            _share(config.integer("queued.max.requests"), gateways), self._memory
        )
        versions = ApiVersionManager(handler.API for handler in HANDLERS)
        self._services = Services(
            runtime=runtime,
            broker_id=spec.broker_id,
            config=config,
            image=MetadataImage(),
            rows={},
            versions=versions,
        )
        self._handlers = RequestHandlerPool(
            runtime.loop,
            self._channel,
            KafkaApis(self._services),
            _share(config.integer("num.io.threads"), gateways),
        )
        self._processor = Processor(
            runtime.loop,
            self._channel,
            versions,
            ProcessorConfig(
                max_frame_bytes=config.integer("socket.request.max.bytes"),
                max_in_flight=config.integer("connection.max.in.flight.requests"),
                max_idle_ms=config.integer("connections.max.idle.ms"),
                send_buffer_bytes=config.integer("socket.send.buffer.bytes"),
                receive_buffer_bytes=config.integer("socket.receive.buffer.bytes"),
            ),
            self._connection_closed,
        )
        self._sockets = SocketsChannel(
            fds_path(spec.run_dir, spec.local_name), runtime.loop, self._processor.adopt
        )
        self._broker = broker_name(spec.broker_id)
        self._broker_up = False
        self._closed: Counter[str] = Counter()
        """Connections that ended and that the broker has not been told of."""
        self._may_serve = False
        self._draining = False
        self._started = False

    async def start(self) -> None:
        if self._started:
            return
        self._started = True
        self._runtime.serve(METADATA_UPDATE, self._metadata_update)
        self._runtime.serve(SERVE, self._serve)
        self._runtime.serve(DRAIN, self._drain)
        self._runtime.serve(PARTITIONS_CHANGED, self._services.awaited_acks.changed)
        self._runtime.link(self._broker).on_state(self._broker_changed)
        self._open_links()
        self._processor.start()
        self._sockets.start()

    def _open_links(self) -> None:
        """So that the first request does not wait for them."""
        broker_id = self._runtime.spec.broker_id
        replicas = self._services.config.integer("num.replica.actors")
        names = [replica_name(broker_id, index) for index in range(replicas)]
        for name in (*names, purgatory_name(broker_id), CONTROLLER_NAME):
            self._runtime.link(name)

    async def stop(self) -> None:
        self._sockets.stop()
        self._processor.stop()

    def state(self) -> tuple[str, Mapping[str, int]]:
        if self._draining:
            word = "draining"
        elif self._services.image.offset < 0:
            word = "waiting for metadata"
        else:
            word = "running" if self._may_serve else "waiting for the broker"
        return word, {
            "connections": self._processor.connections,
            "queued_requests": len(self._channel.requests),
            "busy_workers": self._handlers.size - self._handlers.idle,
            "request_bytes": self._memory.used_bytes,
            "metadata_offset": self._services.image.offset,
        }

    def _metadata_update(self, message: MetadataUpdate, _bulk: memoryview, reply: Reply) -> None:
        records = [decode_record(record) for record in message.records]
        image = MetadataImage() if message.snapshot else self._services.image
        image.replay_all(records)
        image.offset = message.offset
        self._services.image = image
        self._update_serving()
        reply(Nothing())

    def _serve(self, message: Serve, _bulk: memoryview, reply: Reply) -> None:
        self._may_serve = message.serving
        self._update_serving()
        reply(Nothing())

    def _update_serving(self) -> None:
        self._processor.serve(self._may_serve and self._services.image.offset >= 0)

    def _drain(self, message: Drain, _bulk: memoryview, reply: Reply) -> None:
        self._draining = True
        self._processor.drain(message.deadline_ms, lambda: reply(Nothing()))

    def _connection_closed(self, address: str) -> None:
        if not self._closed:
            self._runtime.loop.call_soon(self._report_closed)
        self._closed[address] += 1

    def _broker_changed(self, up: bool) -> None:
        self._broker_up = up
        self._report_closed()

    def _report_closed(self) -> None:
        """A notice on a link that is down would be lost, and the broker's count with it."""
        if not self._broker_up or not self._closed:
            return
        counts, self._closed = dict(self._closed), Counter()
        self._runtime.link(self._broker).notify(
            CONNECTIONS_CLOSED, ConnectionsClosed(self._runtime.spec.local_name, counts)
        )


def _share(total: int, gateways: int) -> int:
    """This gateway's part of a limit of the whole broker; never nothing."""
    return max(1, total // gateways)
