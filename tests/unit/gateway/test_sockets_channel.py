from __future__ import annotations

import asyncio
import os
import socket
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvloop

from mobula.actors.gateway.sockets_channel import GatewaySockets, SocketsChannel, fds_path


@pytest.fixture
def path() -> Iterator[Path]:
    # A Unix socket's path is limited to about a hundred bytes.
    with tempfile.TemporaryDirectory(prefix="gw") as folder:
        yield fds_path(folder, "broker-0/gateway-1")


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(asyncio.wait_for(test(), 20))


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.001)


def listening_socket() -> socket.socket:
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen(8)
    return listening


def test_a_client_handed_over_is_served_by_the_gateway_alone(path: Path) -> None:
    async def scenario() -> None:
        clients: list[Any] = []
        channel = SocketsChannel(
            path, asyncio.get_running_loop(), lambda *client: clients.append(client)
        )
        channel.start()
        ours, theirs = socket.socketpair()
        sockets = GatewaySockets(path)
        assert sockets.hand_over(theirs, "EXTERNAL", "::1")
        theirs.close()
        await until(lambda: bool(clients))
        adopted, listener, address = clients[0]
        assert (listener, address) == ("EXTERNAL", "::1")
        adopted.sendall(b"hello")
        assert ours.recv(5) == b"hello"
        adopted.close()
        assert ours.recv(5) == b""
        assert not os.get_inheritable(channel._listening.fileno())  # type: ignore[union-attr]
        ours.close()
        sockets.close()
        channel.stop()

    run(scenario)


def test_many_clients_arrive_each_once_and_in_order(path: Path) -> None:
    async def scenario() -> None:
        clients: list[Any] = []
        channel = SocketsChannel(
            path, asyncio.get_running_loop(), lambda sock, *_: clients.append(sock)
        )
        channel.start()
        sockets = GatewaySockets(path)
        pairs = [socket.socketpair() for _ in range(200)]
        for number, (ours, theirs) in enumerate(pairs):
            ours.sendall(str(number).encode())
            assert sockets.hand_over(theirs)
            theirs.close()
        await until(lambda: len(clients) == 200)
        assert [int(client.recv(10)) for client in clients] == list(range(200))
        for sock in (*clients, *(ours for ours, _ in pairs)):
            sock.close()
        sockets.close()
        channel.stop()

    run(scenario)


def test_a_restarted_broker_takes_its_listening_socket_back(path: Path) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        channel = SocketsChannel(path, loop, lambda *_: None)
        channel.start()
        listening = listening_socket()
        address = listening.getsockname()
        first_life = GatewaySockets(path)
        first_life.keep("PLAINTEXT", listening)
        await until(lambda: bool(channel.kept))
        listening.close()
        first_life.close()

        waiting = socket.create_connection(address)
        second_life = GatewaySockets(path)
        taken = await loop.run_in_executor(None, second_life.take_back)
        assert list(taken) == ["PLAINTEXT"]
        assert taken["PLAINTEXT"].getsockname() == address
        accepted, _ = taken["PLAINTEXT"].accept()
        waiting.sendall(b"x")
        assert accepted.recv(1) == b"x"
        for sock in (waiting, accepted, taken["PLAINTEXT"]):
            sock.close()
        second_life.close()
        channel.stop()

    run(scenario)


def test_nothing_kept_is_given_back_as_nothing(path: Path) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        channel = SocketsChannel(path, loop, lambda *_: None)
        channel.start()
        sockets = GatewaySockets(path)
        assert await loop.run_in_executor(None, sockets.take_back) == {}
        sockets.close()
        channel.stop()

    run(scenario)


def test_a_gateway_that_is_down_takes_nothing(path: Path) -> None:
    ours, theirs = socket.socketpair()
    sockets = GatewaySockets(path)
    assert not sockets.hand_over(theirs)
    assert sockets.take_back() == {}
    ours.close()
    theirs.close()


def test_a_gateway_that_is_gone_breaks_the_hand_over_for_good(path: Path) -> None:
    async def scenario() -> None:
        channel = SocketsChannel(path, asyncio.get_running_loop(), lambda *_: None)
        channel.start()
        sockets = GatewaySockets(path)
        assert sockets.connect()
        await until(lambda: bool(channel._peers))
        channel.stop()
        ours, theirs = socket.socketpair()
        assert not sockets.hand_over(theirs)
        assert sockets.broken
        ours.close()
        theirs.close()

    run(scenario)


def test_a_restarted_gateway_listens_again_at_the_same_path(path: Path) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        stale = socket.socket(socket.AF_UNIX)
        stale.bind(os.fspath(path))
        stale.close()
        clients: list[Any] = []
        channel = SocketsChannel(path, loop, lambda sock, *_: clients.append(sock))
        channel.start()
        ours, theirs = socket.socketpair()
        sockets = GatewaySockets(path)
        assert sockets.hand_over(theirs)
        await until(lambda: bool(clients))
        for sock in (ours, theirs, *clients):
            sock.close()
        sockets.close()
        channel.stop()

    run(scenario)
