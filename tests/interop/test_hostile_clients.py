"""Bytes that are not the protocol, and too many connections: others must not notice."""

from __future__ import annotations

import contextlib
import os
import socket
import struct

import psutil
import pytest

from mobula.cluster import LocalCluster
from tests.interop.clients import Confluent
from tests.support.actors import pids
from tests.support.records import sample
from tests.support.waiting import wait_for

IDLE_CONNECTIONS = 1000
API_VERSIONS_V0 = struct.pack(">hhih", 18, 0, 7, -1)

HOSTILE = {
    "a negative length": struct.pack(">i", -5),
    "a length over the limit": struct.pack(">i", 2_000_000_000) + b"x" * 100,
    "garbage": os.urandom(4096),
    "a TLS hello": bytes.fromhex("16030100dc010000d80303") + os.urandom(209),
    "an HTTP request": b"GET / HTTP/1.1\r\nHost: here\r\n\r\n",
    "an empty frame": struct.pack(">i", 0),
    "a header cut short": struct.pack(">ihh", 4, 18, 0),
    "an unknown api": struct.pack(">i", 10) + struct.pack(">hhih", 9999, 0, 1, -1),
    "an unsupported version": struct.pack(">i", 10) + struct.pack(">hhih", 3, 99, 1, -1),
    "a body that is not one": struct.pack(">i", 110) + struct.pack(">hhih", 0, 9, 1, -1)
    + os.urandom(100),
    "an array of two billion": struct.pack(">i", 14)
    + struct.pack(">hhihi", 3, 1, 1, -1, 2_000_000_000),
}  # fmt: skip


def broker(cluster: LocalCluster, index: int = 0) -> tuple[str, int]:
    host, _, port = cluster.bootstrap.split(",")[index].rpartition(":")
    return host, int(port)


def read_frame(sock: socket.socket) -> bytes:
    head = sock.recv(4, socket.MSG_WAITALL)
    return sock.recv(struct.unpack(">i", head)[0], socket.MSG_WAITALL) if len(head) == 4 else b""


def actor_memory(cluster: LocalCluster, broker_id: int) -> int:
    return sum(
        psutil.Process(pid).memory_full_info().uss
        for name, pid in pids(cluster).items()
        if name.startswith(f"broker-{broker_id}")
    )


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_bytes_close_the_connection_and_nothing_else(
    cluster: LocalCluster, what: str
) -> None:
    with contextlib.closing(socket.create_connection(broker(cluster), timeout=20)) as good:
        for _ in range(20):
            with contextlib.closing(socket.create_connection(broker(cluster), timeout=20)) as bad:
                bad.sendall(HOSTILE[what])
                bad.shutdown(socket.SHUT_WR)
                with contextlib.suppress(ConnectionResetError):
                    assert bad.recv(1) == b""
        good.sendall(struct.pack(">i", len(API_VERSIONS_V0)) + API_VERSIONS_V0)
        answer = read_frame(good)
    assert struct.unpack_from(">ih", answer) == (7, 0)


def test_half_a_frame_waits_and_the_rest_completes_it(cluster: LocalCluster) -> None:
    frame = struct.pack(">i", len(API_VERSIONS_V0)) + API_VERSIONS_V0
    with contextlib.closing(socket.create_connection(broker(cluster), timeout=20)) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in frame:
            sock.sendall(bytes([byte]))
        assert struct.unpack_from(">ih", read_frame(sock)) == (7, 0)


def test_large_frames_that_never_end_do_not_eat_memory(cluster: LocalCluster) -> None:
    before = actor_memory(cluster, 0)
    with contextlib.ExitStack() as open_sockets:
        for _ in range(50):
            sock = open_sockets.enter_context(
                contextlib.closing(socket.create_connection(broker(cluster), timeout=20))
            )
            sock.sendall(struct.pack(">i", 100_000_000) + b"x" * 1000)
        grown = actor_memory(cluster, 0) - before
    assert grown < 100_000_000


def test_a_thousand_idle_connections_cost_less_than_50_mb(cluster: LocalCluster) -> None:
    before = actor_memory(cluster, 1)
    with contextlib.ExitStack() as open_sockets:
        for _ in range(IDLE_CONNECTIONS):
            sock = open_sockets.enter_context(
                contextlib.closing(socket.create_connection(broker(cluster, 1), timeout=20))
            )
            sock.sendall(struct.pack(">i", len(API_VERSIONS_V0)) + API_VERSIONS_V0)
            assert read_frame(sock)
        grown = actor_memory(cluster, 1) - before
        client = Confluent()
        client.create_topic(cluster.bootstrap, "beside-idle", 3)
        client.produce(cluster.bootstrap, "beside-idle", "none", sample("idle"))
    assert grown < 50_000_000, f"{grown / 1e6:.1f} MB"

    def gone() -> bool:
        brokers = cluster.status()["brokers"]
        counters = [a["counters"] for a in brokers[1]["actors"] if a["kind"] == "gateway"]
        return sum(c.get("connections", 0) for c in counters) < IDLE_CONNECTIONS

    wait_for(gone, "the gateways to let closed connections go")


def test_replies_come_in_request_order_with_many_in_flight(cluster: LocalCluster) -> None:
    with contextlib.closing(socket.create_connection(broker(cluster), timeout=20)) as sock:
        frames = b"".join(
            struct.pack(">i", 10) + struct.pack(">hhih", 18, 0, correlation, -1)
            for correlation in range(500)
        )
        sock.sendall(frames)
        seen = [struct.unpack_from(">i", read_frame(sock))[0] for _ in range(500)]
    assert seen == list(range(500))
