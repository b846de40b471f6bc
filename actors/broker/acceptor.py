"""The Acceptor: it alone listens, and deals accepted sockets out to the gateways.

The listening socket outlives this actor: every gateway holds a duplicate, and a restarted
broker actor takes it back, so a client that connects meanwhile waits in the backlog.

Invariant: a socket is handed to exactly one gateway, round robin among those that are up;
with none up nothing is accepted.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections import Counter
from dataclasses import dataclass, field

from mobula.actors.broker.connection_quotas import ConnectionQuotas
from mobula.actors.gateway.sockets_channel import GatewaySockets

log = logging.getLogger(__name__)

_ACCEPTS_A_TURN = 64
_OUT_OF_DESCRIPTORS_PAUSE_S = 0.2
_BUSY_PAUSE_S = 0.02
_OUT_OF_DESCRIPTORS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


@dataclass(slots=True, eq=False)
class _Gateway:
    sockets: GatewaySockets
    connections: Counter[str] = field(default_factory=Counter)


class Acceptor:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        listener_name: str,
        listening: socket.socket,
        quotas: ConnectionQuotas,
    ) -> None:
        self._loop = loop
        self._listener_name = listener_name
        self._listening = listening
        self._quotas = quotas
        self._gateways: dict[str, _Gateway] = {}
        self._order: list[str] = []
        self._next = 0
        self._open = False
        self._reading = False
        self._held: tuple[socket.socket, str] | None = None
        """Accepted while every gateway was busy."""

    @property
    def connections(self) -> int:
        return self._quotas.total

    def gateway_up(self, name: str, sockets: GatewaySockets) -> None:
        """This gateway takes sockets from now on; it gets a duplicate of the listener."""
        self.gateway_down(name)
        sockets.keep(self._listener_name, self._listening)
        self._gateways[name] = _Gateway(sockets)
        self._order = sorted(self._gateways)
        self._update()

    def gateway_down(self, name: str) -> None:
        gateway = self._gateways.pop(name, None)
        if gateway is None:
            return
        gateway.sockets.close()
        for address, count in gateway.connections.items():
            self._quotas.closed(address, count)
        self._order = sorted(self._gateways)
        self._update()

    def connections_closed(self, name: str, counts: dict[str, int]) -> None:
        gateway = self._gateways.get(name)
        if gateway is None:
            return
        for address, count in counts.items():
            known = min(count, gateway.connections[address])
            if known:
                gateway.connections[address] -= known
                self._quotas.closed(address, known)

    def open(self) -> None:
        """Requests may be processed: begin to accept."""
        self._open = True
        self._update()

    def close(self) -> None:
        """Accept no more. The descriptor stays open for the gateways' duplicates."""
        self._open = False
        self._update()

    def release(self) -> None:
        """Let go of the listening socket and of every gateway. Not to be used afterwards."""
        self.close()
        for name in list(self._gateways):
            self.gateway_down(name)
        self._listening.close()

    def _update(self) -> None:
        wanted = self._open and bool(self._gateways) and self._held is None
        if wanted and not self._reading:
            self._loop.add_reader(self._listening.fileno(), self._accept)
        elif self._reading and not wanted:
            self._loop.remove_reader(self._listening.fileno())
        self._reading = wanted

    def _accept(self) -> None:
        for _ in range(_ACCEPTS_A_TURN):
            if not self._reading:
                return
            try:
                client, address = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _OUT_OF_DESCRIPTORS:
                    raise
                self._pause(error)
                return
            if not self._assign(client, address[0]):
                self._hold(client, address[0])
                return
            client.close()

    def _assign(self, client: socket.socket, address: str) -> bool:
        """False when every gateway is busy: the client must wait for one."""
        refusal = self._quotas.refusal(address)
        if refusal is not None:
            log.warning("connection refused client=%s reason=%s", address, refusal)
            return True
        self._next += 1
        turn = self._next % max(len(self._order), 1)
        for name in self._order[turn:] + self._order[:turn]:
            gateway = self._gateways[name]
            if gateway.sockets.hand_over(client, self._listener_name, address):
                gateway.connections[address] += 1
                self._quotas.opened(address)
                return True
            if gateway.sockets.broken:
                self.gateway_down(name)
        if self._gateways:
            return False
        log.warning("connection dropped client=%s reason=no gateway is up", address)
        return True

    def _hold(self, client: socket.socket, address: str) -> None:
        """Accept nobody else until this client has a gateway."""
        if self._reading:
            self._loop.remove_reader(self._listening.fileno())
            self._reading = False
        self._held = (client, address)
        self._loop.call_later(_BUSY_PAUSE_S, self._try_held)

    def _try_held(self) -> None:
        if self._held is None:
            return
        client, address = self._held
        self._held = None
        if not self._assign(client, address):
            self._hold(client, address)
            return
        client.close()
        self._update()

    def _pause(self, error: OSError) -> None:
        """Out of descriptors or memory: leave the backlog alone for a moment."""
        log.warning("cannot accept reason=%s", error)
        self._loop.remove_reader(self._listening.fileno())
        self._reading = False
        self._loop.call_later(_OUT_OF_DESCRIPTORS_PAUSE_S, self._update)
