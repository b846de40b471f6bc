"""The Processor: a gateway's share of its broker's client connections.

Adopts accepted sockets, lets all connections write once a turn of the loop, closes idle
ones, and drains.

Invariant: every socket that was handed to `adopt` is reported to `on_closed` once, when
it is gone.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic_ns
from typing import Final

from mobula.actors.gateway.api_version_manager import ApiVersionManager
from mobula.actors.gateway.connection import Connection, ConnectionLimits
from mobula.actors.gateway.request import RequestContext
from mobula.actors.gateway.request_channel import RequestChannel

log = logging.getLogger(__name__)

_SCRATCH_BYTES: Final = 256 * 1024
_SWEEPS_A_LIFE: Final = 10
_LONGEST_SWEEP_S: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessorConfig:
    max_frame_bytes: int
    max_in_flight: int
    max_idle_ms: int
    send_buffer_bytes: int = -1
    receive_buffer_bytes: int = -1


class Processor:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        channel: RequestChannel,
        versions: ApiVersionManager,
        config: ProcessorConfig,
        on_closed: Callable[[str], None],
    ) -> None:
        self._loop = loop
        self._channel = channel
        self._versions = versions
        self._config = config
        self._limits = ConnectionLimits(
            max_frame_bytes=config.max_frame_bytes, max_in_flight=config.max_in_flight
        )
        self._on_closed = on_closed
        """`on_closed(client address)`."""
        self._scratch = memoryview(bytearray(_SCRATCH_BYTES))
        self._connections: set[Connection] = set()
        self._unread: list[tuple[socket.socket, str, str]] = []
        """Handed over before requests may be processed."""
        self._adopting: set[asyncio.Task[None]] = set()
        self._to_flush: list[Connection] = []
        self._serving = False
        self._draining = False
        self._drained: Callable[[], None] | None = None
        self._sweep: asyncio.TimerHandle | None = None
        self._closed_at_last_sweep: set[Connection] = set()
        self._count = 0

    @property
    def connections(self) -> int:
        return len(self._connections) + len(self._unread)

    def start(self) -> None:
        if self._sweep is None:
            self._schedule_sweep()

    def stop(self) -> None:
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        self._drop_unread()
        for connection in list(self._connections):
            connection.close()

    def adopt(self, client: socket.socket | None, listener: str, address: str = "") -> None:
        """Serve this client; not read before requests may be processed. None: it was lost
        because this process has no descriptor left."""
        if client is None:
            log.warning("a client was lost client=%s reason=no descriptor left", address)
            self._on_closed(address)
            return
        if not address:
            address = _peer_address(client)
        if self._draining:
            client.close()
            self._on_closed(address)
        elif self._serving:
            task = self._loop.create_task(self._connect(client, listener, address))
            self._adopting.add(task)
            task.add_done_callback(self._adopted)
        else:
            self._unread.append((client, listener, address))

    def serve(self, serving: bool) -> None:
        """Requests may be processed (or no more): logs, metadata and fencing allow it."""
        if serving == self._serving:
            return
        self._serving = serving
        for connection in list(self._connections):
            connection.serve(serving)
        if serving:
            unread, self._unread = self._unread, []
            for client, listener, address in unread:
                self.adopt(client, listener, address)

    def drain(self, deadline_ms: int, done: Callable[[], None]) -> None:
        """Read no more, answer what was read, close; `done()` when no connection is left.

        At `deadline_ms` (monotonic) what is still open is cut off.
        """
        self._draining = True
        self._drained = done
        self._drop_unread()
        for connection in list(self._connections):
            connection.drain()
        left_s = max(0.0, (deadline_ms - monotonic_ns() // 1_000_000) / 1000)
        self._loop.call_later(left_s, self._cut_off)
        self._check_drained()

    def flush_soon(self, connection: Connection) -> None:
        """Once a turn: replies that become ready meanwhile leave in the same write."""
        if not self._to_flush:
            self._loop.call_soon(self._flush)
        self._to_flush.append(connection)

    def connection_lost(self, connection: Connection) -> None:
        if connection not in self._connections:
            return
        self._connections.discard(connection)
        self._closed_at_last_sweep.discard(connection)
        self._on_closed(connection.context.client_address)
        self._check_drained()

    async def _connect(self, client: socket.socket, listener: str, address: str) -> None:
        self._count += 1
        context = RequestContext(f"{listener}-{address}-{self._count}", address, listener)
        connection = Connection(
            owner=self,
            channel=self._channel,
            versions=self._versions,
            context=context,
            limits=self._limits,
            scratch=self._scratch,
        )
        self._connections.add(connection)
        if self._draining:
            connection.drain()
        elif not self._serving:
            connection.serve(False)
        try:
            client.setblocking(False)
            self._tune(client)
            await self._loop.connect_accepted_socket(lambda: connection, client)
        except OSError as error:
            # The client went away between the accept and here.
            log.debug("connection was not adopted client=%s reason=%s", address, error)
            client.close()
            self.connection_lost(connection)
            return
        connection.connected()

    def _adopted(self, task: asyncio.Task[None]) -> None:
        self._adopting.discard(task)
        self._check_drained()

    def _tune(self, client: socket.socket) -> None:
        if client.family != socket.AF_UNIX:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._config.send_buffer_bytes > 0:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._config.send_buffer_bytes)
        if self._config.receive_buffer_bytes > 0:
            client.setsockopt(
                socket.SOL_SOCKET, socket.SO_RCVBUF, self._config.receive_buffer_bytes
            )

    def _flush(self) -> None:
        connections, self._to_flush = self._to_flush, []
        for connection in connections:
            connection.flush()

    def _schedule_sweep(self) -> None:
        every_s = min(self._config.max_idle_ms / 1000 / _SWEEPS_A_LIFE, _LONGEST_SWEEP_S)
        self._sweep = self._loop.call_later(every_s, self._sweep_connections)

    def _sweep_connections(self) -> None:
        since_ns = monotonic_ns() - self._config.max_idle_ms * 1_000_000
        short_of_memory = self._channel.memory.exhausted
        closed_now = set()
        for connection in list(self._connections):
            if connection.closed:
                if connection in self._closed_at_last_sweep:
                    connection.abort("it does not take its last replies")
                closed_now.add(connection)
            elif connection.is_idle(since_ns):
                connection.close()
            elif short_of_memory and connection.hogs_memory():
                connection.abort("memory is short and its request does not come")
        self._closed_at_last_sweep = closed_now
        self._schedule_sweep()

    def _drop_unread(self) -> None:
        unread, self._unread = self._unread, []
        for client, _, address in unread:
            client.close()
            self._on_closed(address)

    def _cut_off(self) -> None:
        self._check_drained()
        for connection in list(self._connections):
            connection.abort("stopping, and its requests did not end in time")

    def _check_drained(self) -> None:
        if self._drained is not None and not self._connections and not self._adopting:
            done, self._drained = self._drained, None
            done()


def _peer_address(client: socket.socket) -> str:
    try:
        name = client.getpeername()
    except OSError:
        return ""
    return name[0] if isinstance(name, tuple) else "unix"
