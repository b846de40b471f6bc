"""Keys of tuning guides, as a gateway on real sockets obeys them."""

from __future__ import annotations

import socket
import struct

from .test_gateway_actor import API_VERSIONS, gateway, run
from .wire import frame


def buffer_bytes(sock: socket.socket, option: int) -> int:
    """As it was asked for: Linux keeps, and tells, twice of it."""
    told = sock.getsockopt(socket.SOL_SOCKET, option)
    return told // 2 if hasattr(socket, "SO_PEERCRED") else told


def metadata_request(correlation_id: int, size: int) -> bytes:
    """What follows the body is ignored, and makes it as large as is wished."""
    bare = frame(correlation_id, struct.pack(">i", 0), version=1)
    length = struct.pack(">i", size)
    return length + bare[4:].ljust(size, b"\0")


def test_client_sockets_have_the_configured_buffers() -> None:
    async def scenario() -> None:
        async with gateway(
            socket_send_buffer_bytes="20000", socket_receive_buffer_bytes="30000"
        ) as gw:
            gw.metadata()
            gw.serve()
            client = gw.client()
            await client.send(API_VERSIONS)
            await client.reply()
            (connection,) = gw.actor._processor._connections
            sock = connection._transport.get_extra_info("socket")
            assert buffer_bytes(sock, socket.SO_SNDBUF) == 20_000
            assert buffer_bytes(sock, socket.SO_RCVBUF) == 30_000

    run(scenario)


def test_a_request_over_socket_request_max_bytes_closes_its_connection() -> None:
    async def scenario() -> None:
        async with gateway(socket_request_max_bytes="1000") as gw:
            gw.metadata()
            gw.serve()
            client = gw.client()
            await client.send(metadata_request(1, 1000))
            assert (await client.reply())[0] == 1
            await client.send(metadata_request(2, 1001))
            assert await client.closed()

    run(scenario)


def test_limits_of_a_broker_are_shared_out_over_its_gateways() -> None:
    async def scenario() -> None:
        async with gateway(
            num_network_threads="4",
            num_io_threads="8",
            queued_max_requests="12",
            queued_max_request_bytes="4000",
        ) as gw:
            assert gw.actor._handlers.size == 2
            assert gw.actor._channel.capacity == 3
            assert gw.actor._memory.capacity_bytes == 1000

    run(scenario)


def test_a_share_of_a_limit_is_never_nothing() -> None:
    async def scenario() -> None:
        async with gateway(
            num_network_threads="4", num_io_threads="1", queued_max_requests="1"
        ) as gw:
            assert gw.actor._handlers.size == 1
            assert gw.actor._channel.capacity == 1

    run(scenario)
