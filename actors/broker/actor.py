"""The broker actor: the listening socket, registration, metadata, and its own actors' lives.

It never sits on the produce or fetch path: when it dies, connections, appends and pulls go
on without it, and its next life takes the listening socket back from a gateway.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Mapping
from pathlib import Path
from random import SystemRandom

from mobula.actors.broker.acceptor import Acceptor
from mobula.actors.broker.connection_quotas import ConnectionQuotas
from mobula.actors.broker.data_folder import DataFolder
from mobula.actors.broker.lifecycle import BrokerLifecycle
from mobula.actors.broker.listener import advertised, listen
from mobula.actors.broker.messages import (
    CONNECTIONS_CLOSED,
    DRAIN,
    SERVE,
    STATUS,
    AskStatus,
    ConnectionsClosed,
    Drain,
    Serve,
)
from mobula.actors.broker.metadata_publisher import MetadataPublisher
from mobula.actors.broker.replica_actors import ReplicaActors
from mobula.actors.config import Config
from mobula.actors.config.listeners import Listener, parse_listeners
from mobula.actors.controller.messages import PulledMetadata, RegisterBroker
from mobula.actors.coordinator.coordinators import Coordinators
from mobula.actors.gateway.sockets_channel import GatewaySockets, fds_path
from mobula.actors.link.ask import ask
from mobula.actors.link.interface import LinkError, Reply
from mobula.actors.metadata.records import Endpoint
from mobula.actors.runtime import Runtime
from mobula.actors.spec import (
    CONTROLLER_NAME,
    gateway_name,
    purgatory_name,
    replica_name,
)
from mobula.actors.tasks import Tasks
from mobula.storage.meta_properties import MetaProperties

log = logging.getLogger(__name__)

_TICK_S = 1.0
_LEAVE_S = 10.0


class BrokerActor:
    def __init__(self, runtime: Runtime) -> None:
        spec = runtime.spec
        self._runtime = runtime
        self._config = Config(spec.config)
        self._broker_id = spec.broker_id
        gateways = self._config.integer("num.network.threads")
        self._gateways = [gateway_name(spec.broker_id, i) for i in range(gateways)]
        self._replica_count = self._config.integer("num.replica.actors")
        self._purgatory = purgatory_name(spec.broker_id)
        self._publisher = MetadataPublisher(self._applied)
        self._tasks = Tasks(runtime)
        self._coordinators = Coordinators(
            runtime, self._config, lambda: self._publisher.image, self._tasks.spawn, SystemRandom()
        )
        self._started = False
        self._serving = False
        self._state = "starting"
        self._folder: DataFolder
        self._lifecycle: BrokerLifecycle
        self._acceptor: Acceptor
        self._replicas: ReplicaActors

    async def start(self) -> None:
        """True after it: the broker is unfenced and accepts connections."""
        if self._started:
            return
        self._started = True
        self._folder = DataFolder(Path(self._runtime.spec.data_dir), self._broker_id)
        (listener,) = parse_listeners(self._config.strings("listeners"))
        endpoint = advertised(listener, self._advertised())
        # In a thread: a gateway that hangs must not stop this actor's loop.
        listening = await asyncio.to_thread(self._listening, listener)
        self._acceptor = Acceptor(
            self._runtime.loop, listener.name, listening, self._connection_quotas()
        )
        self._runtime.serve(CONNECTIONS_CLOSED, self._connections_closed)
        self._lifecycle = BrokerLifecycle(
            self._runtime.link(CONTROLLER_NAME),
            await self._registration(endpoint, self._folder.meta),
            heartbeat_interval_ms=self._config.integer("broker.heartbeat.interval.ms"),
            metadata_offset=lambda: self._publisher.image.offset,
            on_metadata=self._metadata_pulled,
            on_epoch=self._epoch_changed,
        )
        await self._lifecycle.register()
        self._folder.adopt(self._lifecycle.cluster_id)
        self._tasks.spawn(self._lifecycle.heartbeats())
        self._tasks.spawn(self._lifecycle.follow_metadata())
        epoch = self._lifecycle.broker_epoch
        await self._lifecycle.wait_until(lambda: self._publisher.image.offset >= epoch)
        self._replicas = ReplicaActors(
            self._runtime, self._publisher, self._lifecycle, self._replica_count
        )
        self._replicas.start()
        self._coordinators.start()
        self._coordinators.metadata_changed()
        self._publisher.add(self._purgatory, self._runtime.link(self._purgatory), is_replica=False)
        for name in self._gateways:
            self._follow_gateway(name)
        self._tasks.spawn(self._ticks())
        self._state = "recovering"
        await self._lifecycle.wait_until(self._publisher.all_applied)
        self._lifecycle.recovered = True
        self._lifecycle.nudge()
        await self._lifecycle.wait_until(lambda: not self._lifecycle.fenced)
        self._serve()
        log.info("broker is running address=%s:%d", endpoint.host, endpoint.port)

    async def stop(self) -> None:
        """Leave leadership, stop accepting, drain the actors, close the logs, say so."""
        self._state = "stopping"
        self._replicas.stop()
        if self._config.boolean("controlled.shutdown.enable"):
            await self._leave()
        self._acceptor.close()
        self._coordinators.stop()
        drain = Drain(self._runtime.clock.monotonic_ms() + int(_LEAVE_S * 1000))
        # What is parked is answered while the gateways finish: they wait for it.
        for stage in ([*self._gateways, self._purgatory], self._replicas.names()):
            await asyncio.gather(*(self._drain(name, drain) for name in stage))
        for name in self._replicas.dedicated():
            await self._runtime.kill(name)
        self._tasks.cancel()
        self._folder.release()
        self._state = "stopped"
        self._acceptor.release()

    def state(self) -> tuple[str, Mapping[str, int]]:
        serving = self._state == "running"
        return self._state, {
            "broker_epoch": self._publisher.broker_epoch,
            "metadata_offset": self._publisher.image.offset,
            "connections": self._acceptor.connections if serving else 0,
        }

    async def _leave(self) -> None:
        """Give leadership away; not when the whole cluster stops, its controller first."""
        controller = self._runtime.link(CONTROLLER_NAME)
        controller.on_state(lambda _up: self._tasks.spawn(self._lifecycle.changed()))
        self._lifecycle.leaving = True
        self._lifecycle.nudge()
        try:
            async with asyncio.timeout(_LEAVE_S):
                await self._lifecycle.wait_until(
                    lambda: self._lifecycle.may_shut_down or controller.transport_name() == "down"
                )
        except TimeoutError:
            log.warning("leadership was not given away in time; stopping all the same")

    async def _drain(self, name: str, drain: Drain) -> None:
        try:
            await ask(
                self._runtime.link(name), DRAIN, drain, timeout_ms=int(_LEAVE_S * 1000) + 2000
            )
        except LinkError as error:
            log.warning("actor was not drained actor=%s reason=%s", name, error)

    def _advertised(self) -> Listener | None:
        if "advertised.listeners" not in self._config.values:
            return None
        return parse_listeners(self._config.strings("advertised.listeners"))[0]

    def _listening(self, listener: Listener) -> socket.socket:
        """The socket of this broker's former life if a gateway kept it, else a new one."""
        for name in self._gateways:
            sockets = GatewaySockets(fds_path(self._runtime.spec.run_dir, name))
            kept = sockets.take_back()
            sockets.close()
            if listener.name in kept:
                log.info("took the listening socket back gateway=%s", name)
                return kept[listener.name]
        return listen(
            listener,
            self._config.integer("socket.listen.backlog.size"),
            self._config.integer("socket.receive.buffer.bytes"),
        )

    def _connection_quotas(self) -> ConnectionQuotas:
        return ConnectionQuotas(
            max_connections=self._config.integer("max.connections"),
            max_connections_per_ip=self._config.integer("max.connections.per.ip"),
        )

    async def _registration(self, endpoint: Endpoint, meta: MetaProperties) -> RegisterBroker:
        return RegisterBroker(
            self._broker_id,
            meta.cluster_id,
            f"{self._runtime.incarnation:016x}",
            [endpoint],
            self._config.values.get("broker.rack"),
            self._runtime.ray_node_id,
            self._runtime.spec.data_dir,
            meta.directory_id,
            self._replica_count,
            not await self._replicas_kept_running(),
        )

    async def _replicas_kept_running(self) -> bool:
        """True when only this actor was restarted: its replica actors lead on as before."""
        for index in range(self._replica_count):
            link = self._runtime.link(replica_name(self._broker_id, index))
            try:
                status = await ask(link, STATUS, AskStatus(), timeout_ms=15_000)
            except LinkError:
                return False
            if status.counters.get("metadata_offset", -1) < 0:
                return False
        return True

    def _epoch_changed(self, broker_epoch: int) -> None:
        self._publisher.broker_epoch = broker_epoch

    def _metadata_pulled(self, pulled: PulledMetadata) -> None:
        self._publisher.received(
            snapshot=pulled.snapshot, offset=pulled.offset, records=pulled.records
        )
        if self._state != "starting":
            self._replicas.metadata_changed()
            self._coordinators.metadata_changed()

    def _applied(self, name: str, first: bool) -> None:
        if first:
            self._replicas.applied(name)
            if name in self._gateways and self._serving:
                self._runtime.link(name).notify(SERVE, Serve(True))
        self._tasks.spawn(self._lifecycle.changed())

    def _serve(self) -> None:
        self._serving = True
        self._state = "running"
        for name in self._gateways:
            self._runtime.link(name).notify(SERVE, Serve(True))
        self._acceptor.open()

    def _follow_gateway(self, name: str) -> None:
        link = self._runtime.link(name)

        def changed(up: bool) -> None:
            if self._state == "stopped":
                return
            if not up:
                self._acceptor.gateway_down(name)
                return
            sockets = GatewaySockets(fds_path(self._runtime.spec.run_dir, name))
            self._acceptor.gateway_up(name, sockets)

        self._publisher.add(name, link, is_replica=False)
        link.on_state(changed)

    def _connections_closed(
        self, message: ConnectionsClosed, _bulk: memoryview, _reply: Reply
    ) -> None:
        self._acceptor.connections_closed(message.gateway, message.counts)

    async def _ticks(self) -> None:
        while True:
            await asyncio.sleep(_TICK_S)
            self._publisher.tick()
