"""The whole gateway on real sockets and a real loop; only the links are fakes."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket
import struct
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvloop

from mobula.actors.broker.messages import (
    DRAIN,
    METADATA_UPDATE,
    SERVE,
    Drain,
    MetadataUpdate,
    Serve,
)
from mobula.actors.gateway.actor import GatewayActor
from mobula.actors.gateway.kafka_apis import HANDLERS
from mobula.actors.gateway.mute_causes import WRITE_BLOCKED
from mobula.actors.gateway.sockets_channel import GatewaySockets, fds_path
from mobula.actors.metadata.records import encode_record
from mobula.actors.purgatory.messages import ProduceDone
from mobula.actors.replica.messages import Appended, PartitionAppended
from mobula.actors.spec import broker_name, purgatory_name, replica_name
from mobula.protocol.api import ApiKey
from mobula.protocol.messages import build_request, decode_response, encode

from .fakes import BROKER_ID, FakeReply, FakeRuntime, batch, cluster_image
from .wire import frame


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(asyncio.wait_for(scenario(), 30))


async def until(condition: Callable[[], Any]) -> None:
    while not condition():
        await asyncio.sleep(0.001)


class Client:
    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._loop = asyncio.get_running_loop()
        self._received = b""

    async def send(self, data: bytes) -> None:
        await self._loop.sock_sendall(self.sock, data)

    async def reply(self) -> tuple[int, bytes]:
        """(correlation id, body with what the header has after it)."""
        head = await self._exactly(4)
        payload = await self._exactly(struct.unpack(">i", head)[0])
        return struct.unpack_from(">i", payload)[0], payload[4:]

    async def closed(self) -> bool:
        with contextlib.suppress(ConnectionResetError):
            return await self._loop.sock_recv(self.sock, 1) == b""
        return True

    async def _exactly(self, count: int) -> bytes:
        while len(self._received) < count:
            data = await self._loop.sock_recv(self.sock, 1 << 16)
            assert data, "closed"
            self._received += data
        taken, self._received = self._received[:count], self._received[count:]
        return taken


class Gateway:
    def __init__(self, run_dir: str, config: dict[str, str]) -> None:
        self.runtime = FakeRuntime(config=config, run_dir=run_dir, loop=asyncio.get_running_loop())
        self.actor = GatewayActor(self.runtime)
        self.sockets = GatewaySockets(fds_path(run_dir, self.runtime.spec.local_name))
        self._listening = socket.socket()
        self._listening.bind(("127.0.0.1", 0))
        self._listening.listen(64)
        self._clients: list[socket.socket] = []

    def tell(self, method: Any, message: Any) -> FakeReply:
        reply = FakeReply()
        self.runtime.served[method.id](message, memoryview(b""), reply)
        return reply

    def metadata(self) -> None:
        image = cluster_image()
        records = [encode_record(record) for record in image.snapshot()]
        assert self.tell(METADATA_UPDATE, MetadataUpdate(1, True, image.offset, records)).messages

    def serve(self) -> None:
        self.tell(SERVE, Serve(True))

    def client(self) -> Client:
        ours = socket.create_connection(self._listening.getsockname())
        accepted, _ = self._listening.accept()
        assert self.sockets.hand_over(accepted)
        accepted.close()
        ours.setblocking(False)
        self._clients.append(ours)
        return Client(ours)

    def counter(self, name: str) -> int:
        return self.actor.state()[1][name]

    @property
    def replica(self) -> Any:
        return self.runtime.link(replica_name(BROKER_ID, 0))

    @property
    def purgatory(self) -> Any:
        return self.runtime.link(purgatory_name(BROKER_ID))

    @property
    def told_closed(self) -> int:
        notices = self.runtime.link(broker_name(BROKER_ID)).notices
        return sum(sum(notice.counts.values()) for notice in notices)

    def stop(self) -> None:
        for sock in self._clients:
            sock.close()
        self._listening.close()
        self.sockets.close()


@asynccontextmanager
async def gateway(**config: str) -> AsyncIterator[Gateway]:
    settings = {key.replace("_", "."): value for key, value in config.items()}
    with tempfile.TemporaryDirectory(prefix="gw") as run_dir:
        made = Gateway(run_dir, settings)
        await made.actor.start()
        await made.actor.start()
        try:
            yield made
        finally:
            made.stop()
            await made.actor.stop()
            await until(lambda: made.counter("connections") == 0)


def produce_frame(correlation_id: int, records: bytes, acks: int = -1) -> bytes:
    tree = {
        "acks": acks,
        "timeout": 5000,
        "topic_data": [{"name": "orders", "partition_data": [{"index": 0, "records": records}]}],
    }
    body = encode(build_request(ApiKey.PRODUCE, 9, tree))
    return frame(correlation_id, body, key=ApiKey.PRODUCE, version=9)


async def ask_for_ever(client: Client) -> None:
    for n in itertools.count():
        await client.send(frame(n, key=ApiKey.API_VERSIONS, version=0))


async def drop_replies(client: Client) -> None:
    expected = itertools.count()
    while True:
        assert (await client.reply())[0] == next(expected)


API_VERSIONS = frame(1, key=ApiKey.API_VERSIONS, version=0)


def test_no_request_is_read_before_metadata_is_there_and_the_broker_says_so() -> None:
    async def scenario() -> None:
        async with gateway() as gw:
            client = gw.client()
            await client.send(API_VERSIONS)
            await until(lambda: gw.counter("connections") == 1)
            assert gw.actor.state()[0] == "waiting for metadata"
            gw.serve()
            gw.metadata()
            correlation_id, body = await client.reply()
            assert correlation_id == 1
            keys = [a.api_key for a in decode_response(ApiKey.API_VERSIONS, 0, body).api_keys]
            assert keys == sorted(int(handler.API.key) for handler in HANDLERS)
            assert gw.actor.state()[0] == "running"

    run(scenario)


def test_connections_are_not_read_while_the_broker_may_not_serve() -> None:
    async def scenario() -> None:
        async with gateway() as gw:
            gw.metadata()
            gw.serve()
            client = gw.client()
            await client.send(API_VERSIONS)
            await client.reply()
            gw.tell(SERVE, Serve(False))
            await client.send(API_VERSIONS)
            await asyncio.sleep(0.02)
            assert gw.actor.state()[0] == "waiting for the broker"
            gw.serve()
            assert (await client.reply())[0] == 1

    run(scenario)


def test_pipelined_requests_are_answered_in_order_over_a_socket() -> None:
    async def scenario() -> None:
        async with gateway() as gw:
            gw.metadata()
            gw.serve()
            client = gw.client()
            frames = b"".join(frame(n, key=ApiKey.API_VERSIONS, version=0) for n in range(500))
            await client.send(produce_frame(1000, batch()) + frames)
            await until(lambda: gw.replica.calls)
            gw.replica.last.reply(Appended([PartitionAppended(0, 7, -1, 0, 8, 3)]))
            gw.purgatory.last.reply(ProduceDone([0]))
            seen = [(await client.reply())[0] for _ in range(501)]
            assert seen == [1000, *range(500)]
            await until(lambda: gw.counter("request_bytes") == 0)

    run(scenario)


def test_a_produce_goes_through_the_whole_plane() -> None:
    async def scenario() -> None:
        async with gateway() as gw:
            gw.metadata()
            gw.serve()
            client = gw.client()
            records = batch(records=5, size=200_000)
            await client.send(produce_frame(3, records))
            await until(lambda: gw.replica.calls)
            assert gw.replica.last.bulk == [records]
            assert gw.counter("busy_workers") == 1
            gw.replica.last.reply(Appended([PartitionAppended(0, 70, -1, 0, 75, 3)]))
            assert gw.counter("busy_workers") == 0
            assert gw.counter("request_bytes") == 0
            gw.purgatory.last.reply(ProduceDone([0]))
            correlation_id, body = await client.reply()
            answer = decode_response(ApiKey.PRODUCE, 9, body[1:])
            assert correlation_id == 3
            assert answer.responses[0].partition_responses[0].base_offset == 70

    run(scenario)


def test_acks_zero_and_a_close_right_after_still_appends() -> None:
    async def scenario() -> None:
        async with gateway() as gw:
            gw.metadata()
            gw.serve()
            client = gw.client()
            for n in range(3):
                await client.send(produce_frame(n, batch(), acks=0))
            client.sock.shutdown(socket.SHUT_WR)
            await until(lambda: len(gw.replica.calls) == 3)
            assert await client.closed()
            for call in gw.replica.calls:
                call.reply(Appended([PartitionAppended(0, 1)]))
            await until(lambda: gw.counter("connections") == 0)
            assert gw.counter("busy_workers") == 0
            assert gw.told_closed == 1

    run(scenario)


def test_a_lost_client_leaves_nothing_in_the_purgatory() -> None:
    async def scenario() -> None:
        async with gateway() as gw:
            gw.metadata()
            gw.serve()
            client = gw.client()
            await client.send(produce_frame(1, batch()))
            await until(lambda: gw.replica.calls)
            gw.replica.last.reply(Appended([PartitionAppended(0, 7, -1, 0, 8, 3)]))
            client.sock.close()
            await until(lambda: gw.purgatory.last.cancelled)
            await until(lambda: gw.told_closed == 1)

    run(scenario)


def test_connections_that_end_while_the_broker_is_away_are_reported_when_it_is_back() -> None:
    async def scenario() -> None:
        async with gateway() as gw:
            gw.metadata()
            gw.serve()
            link = gw.runtime.link(broker_name(BROKER_ID))
            link.state_changed(False)
            clients = [gw.client() for _ in range(3)]
            await until(lambda: gw.counter("connections") == 3)
            for client in clients:
                client.sock.close()
            await until(lambda: gw.counter("connections") == 0)
            assert gw.told_closed == 0
            link.state_changed(True)
            assert gw.told_closed == 3

    run(scenario)


@pytest.mark.parametrize(
    "hostile",
    [struct.pack(">i", -5), b"GET / HTTP/1.1\r\n", bytes.fromhex("16030100dc0100"), b"\x00" * 64],
)
def test_hostile_bytes_close_their_connection_and_no_other(hostile: bytes) -> None:
    async def scenario() -> None:
        async with gateway() as gw:
            gw.metadata()
            gw.serve()
            good, bad = gw.client(), gw.client()
            await bad.send(hostile)
            assert await bad.closed()
            await good.send(API_VERSIONS)
            assert (await good.reply())[0] == 1

    run(scenario)


def test_an_idle_connection_is_closed_and_a_busy_one_is_not() -> None:
    async def scenario() -> None:
        async with gateway(connections_max_idle_ms="100") as gw:
            gw.metadata()
            gw.serve()
            idle, busy = gw.client(), gw.client()
            await busy.send(produce_frame(1, batch()))
            await until(lambda: gw.replica.calls)
            assert await idle.closed()
            gw.replica.last.reply(Appended([PartitionAppended(0, 7, -1, 0, -1, 3)]))
            assert (await busy.reply())[0] == 1

    run(scenario)


def test_a_client_that_never_reads_costs_bounded_memory() -> None:
    async def scenario() -> None:
        async with gateway(socket_send_buffer_bytes="10000") as gw:
            gw.metadata()
            gw.serve()
            client = gw.client()
            await until(lambda: gw.actor._processor._connections)
            (connection,) = gw.actor._processor._connections
            asking = asyncio.create_task(ask_for_ever(client))
            await until(lambda: connection.muted & WRITE_BLOCKED)
            assert connection.in_flight <= 64
            assert connection._transport.get_write_buffer_size() < 1_000_000
            reading = asyncio.create_task(drop_replies(client))
            await until(lambda: not connection.muted & WRITE_BLOCKED)
            for task in (asking, reading):
                task.cancel()
            await asyncio.wait((asking, reading))

    run(scenario)


def test_a_client_that_never_reads_is_cut_off_when_it_was_idle_for_too_long() -> None:
    async def scenario() -> None:
        async with gateway(socket_send_buffer_bytes="10000", connections_max_idle_ms="300") as gw:
            gw.metadata()
            gw.serve()
            client = gw.client()
            await until(lambda: gw.actor._processor._connections)
            (connection,) = gw.actor._processor._connections
            asking = asyncio.create_task(ask_for_ever(client))
            await until(lambda: connection.muted & WRITE_BLOCKED)
            asking.cancel()
            await asyncio.wait((asking,))
            await until(lambda: gw.counter("connections") == 0)
            assert gw.counter("request_bytes") == 0

    run(scenario)


def test_draining_answers_what_was_read_closes_and_says_when_it_is_done() -> None:
    async def scenario() -> None:
        async with gateway() as gw:
            gw.metadata()
            gw.serve()
            idle, busy = gw.client(), gw.client()
            await busy.send(produce_frame(1, batch()))
            await until(lambda: gw.replica.calls)
            reply = gw.tell(DRAIN, Drain(time.monotonic_ns() // 1_000_000 + 20_000))
            assert await idle.closed()
            assert not reply.messages
            gw.replica.last.reply(Appended([PartitionAppended(0, 7, -1, 0, -1, 3)]))
            assert (await busy.reply())[0] == 1
            assert await busy.closed()
            await until(lambda: reply.messages)
            late = gw.client()
            assert await late.closed()

    run(scenario)


def test_draining_ends_at_its_deadline() -> None:
    async def scenario() -> None:
        async with gateway() as gw:
            gw.metadata()
            gw.serve()
            client = gw.client()
            await client.send(produce_frame(1, batch()))
            await until(lambda: gw.replica.calls)
            reply = gw.tell(DRAIN, Drain(time.monotonic_ns() // 1_000_000 + 50))
            assert await client.closed()
            await until(lambda: reply.messages)

    run(scenario)


def test_draining_with_nothing_open_is_done_at_once() -> None:
    async def scenario() -> None:
        async with gateway() as gw:
            assert gw.tell(DRAIN, Drain(0)).messages

    run(scenario)


def test_later_records_are_replayed_onto_the_image_and_a_snapshot_replaces_it() -> None:
    async def scenario() -> None:
        async with gateway() as gw:
            gw.metadata()
            gw.serve()
            client = gw.client()
            ask = frame(1, struct.pack(">i", -1), version=1)
            await client.send(ask)
            before = decode_response(ApiKey.METADATA, 1, (await client.reply())[1])
            assert [topic.name for topic in before.topics] == ["orders"]
            gw.tell(METADATA_UPDATE, MetadataUpdate(1, True, 100, []))
            assert gw.counter("metadata_offset") == 100
            await client.send(ask)
            after = decode_response(ApiKey.METADATA, 1, (await client.reply())[1])
            assert after.topics == ()

    run(scenario)
