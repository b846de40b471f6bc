"""Accepted sockets reach exactly one gateway, also when gateways are slow or gone."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import uvloop

from mobula.actors.broker.acceptor import Acceptor
from mobula.actors.broker.connection_quotas import ConnectionQuotas
from mobula.actors.gateway.sockets_channel import GatewaySockets, SocketsChannel


class Bench:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.loop = asyncio.get_running_loop()
        self.listening = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.listening.setblocking(False)
        self.quotas = ConnectionQuotas(max_connections=5000, max_connections_per_ip=5000)
        self.acceptor = Acceptor(self.loop, "PLAINTEXT", self.listening, self.quotas)
        self.taken: dict[str, list[socket.socket]] = {}
        self.channels: dict[str, SocketsChannel] = {}
        self.clients: list[socket.socket] = []

    def gateway(self, name: str) -> None:
        taken = self.taken.setdefault(name, [])
        channel = SocketsChannel(self.folder / name, self.loop, lambda sock, *_: taken.append(sock))
        channel.start()
        self.channels[name] = channel
        self.acceptor.gateway_up(name, GatewaySockets(self.folder / name))

    def connect(self, count: int) -> None:
        for _ in range(count):
            self.clients.append(socket.create_connection(self.listening.getsockname()))

    def total(self) -> int:
        return sum(map(len, self.taken.values()))

    def close(self) -> None:
        self.acceptor.close()
        for name, channel in self.channels.items():
            self.acceptor.gateway_down(name)
            channel.stop()
        sockets = [sock for taken in self.taken.values() for sock in taken]
        for sock in [*sockets, *self.clients, self.listening]:
            sock.close()


@pytest.fixture
def run(tmp_path: Path) -> Callable[[Callable[[Bench], Coroutine[Any, Any, None]]], None]:
    def runner(scenario: Callable[[Bench], Coroutine[Any, Any, None]]) -> None:
        async def bounded() -> None:
            bench = Bench(tmp_path)
            try:
                await asyncio.wait_for(scenario(bench), 30)
            finally:
                bench.close()

        uvloop.run(bounded())

    return runner


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.005)


def test_sockets_are_dealt_out_round_robin(run: Callable[..., None]) -> None:
    async def scenario(bench: Bench) -> None:
        bench.gateway("a")
        bench.gateway("b")
        bench.acceptor.open()
        bench.connect(20)
        await until(lambda: bench.total() == 20)
        assert len(bench.taken["a"]) == len(bench.taken["b"]) == 10
        assert bench.quotas.total == 20

    run(scenario)


def test_nothing_is_accepted_before_the_broker_serves(run: Callable[..., None]) -> None:
    async def scenario(bench: Bench) -> None:
        bench.gateway("a")
        bench.connect(1)
        await asyncio.sleep(0)
        assert bench.total() == 0
        bench.acceptor.open()
        await until(lambda: bench.total() == 1)

    run(scenario)


def test_a_dead_gateway_is_passed_over(run: Callable[..., None]) -> None:
    async def scenario(bench: Bench) -> None:
        bench.gateway("a")
        bench.gateway("b")
        bench.acceptor.open()
        bench.channels["a"].stop()
        bench.connect(10)
        await until(lambda: len(bench.taken["b"]) == 10)

    run(scenario)


def test_a_gateway_that_stands_still_gets_its_clients_when_it_goes_on(
    run: Callable[..., None],
) -> None:
    async def scenario(bench: Bench) -> None:
        path = bench.folder / "slow"
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as slow:
            slow.bind(str(path))
            slow.listen()
            bench.acceptor.gateway_up("slow", GatewaySockets(path))
            bench.acceptor.open()
            bench.connect(900)
            await until(lambda: bench.acceptor._held is not None)
            before = bench.quotas.total
            assert 0 < before < 900
            peer, _ = slow.accept()
            peer.setblocking(False)
            with peer:
                await until(lambda: _drained(peer) and bench.quotas.total == 900)
            bench.acceptor.gateway_down("slow")

    run(scenario)


def _drained(peer: socket.socket) -> bool:
    while True:
        try:
            _, fds, _, _ = socket.recv_fds(peer, 4096, 16)
        except BlockingIOError:
            return True
        for fd in fds:
            socket.socket(fileno=fd).close()
