"""Two brokers with all their actors and their controller, on real links in one process."""

from __future__ import annotations

import asyncio
import struct
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mobula.actors.local_runtime import LOCAL_NODE_ID, LocalNode
from mobula.actors.spec import broker_name, purgatory_name
from mobula.cluster.local import free_ports
from mobula.cluster.options import UpOptions
from mobula.cluster.topology import LOOPBACK, Node, Plan, plan
from mobula.protocol.api import ApiKey
from mobula.protocol.errors import ErrorCode
from mobula.protocol.messages import build_request, decode_response, encode
from tests.unit.gateway.fakes import batch
from tests.unit.gateway.wire import frame

TOPIC = "orders"
LEAVES, STAYS = 1, 0
# Of versions that are not flexible: their response headers are a correlation id alone.
CREATE_TOPICS, PRODUCE, FETCH, METADATA = 4, 7, 11, 8


class Client:
    """One connection; asks, or sends now and reads the answer later."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    def send(self, key: ApiKey, version: int, tree: dict[str, Any]) -> None:
        body = encode(build_request(key, version, tree))
        self._writer.write(frame(1, body, key=key, version=version))

    async def answer(self, key: ApiKey, version: int) -> Any:
        (size,) = struct.unpack(">i", await self._reader.readexactly(4))
        payload = await self._reader.readexactly(size)
        return decode_response(key, version, payload[4:])

    async def ask(self, key: ApiKey, version: int, tree: dict[str, Any]) -> Any:
        self.send(key, version, tree)
        return await self.answer(key, version)

    async def closed(self) -> bool:
        return await self._reader.read(1) == b""

    def close(self) -> None:
        self._writer.close()


class Brokers:
    def __init__(self, node: LocalNode, planned: Plan) -> None:
        self.node = node
        self._planned = planned
        self._clients: list[Client] = []

    async def start(self) -> None:
        await asyncio.gather(*(self.node.start(spec) for spec in self._planned.all_actors()))

    async def client(self, broker_id: int) -> Client:
        endpoint = self._planned.brokers[broker_id].endpoint
        client = Client(*await asyncio.open_connection(endpoint.host, endpoint.port))
        self._clients.append(client)
        return client

    def clean_marks(self, broker_id: int) -> list[Path]:
        return list(self._planned.brokers[broker_id].data_dir.glob(".kafka_cleanshutdown*"))

    async def close(self) -> None:
        for client in self._clients:
            client.close()
        await self.node.close()


@asynccontextmanager
async def two_brokers(data_dir: Path) -> AsyncIterator[Brokers]:
    with tempfile.TemporaryDirectory(prefix="mb") as run_dir:
        options = UpOptions(brokers=2, port=free_ports(2), data_dir=data_dir, name="whole")
        here = Node(node_id=LOCAL_NODE_ID, address=LOOPBACK)
        made = Brokers(LocalNode(), plan(options, [here], Path(run_dir)))
        try:
            await made.start()
            yield made
        finally:
            await made.close()


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, 60))


async def until(condition: Callable[[], Any]) -> None:
    while not condition():
        await asyncio.sleep(0.005)


async def describe(client: Client) -> Any:
    tree = {"topics": [{"name": TOPIC}], "allow_auto_topic_creation": False}
    (topic,) = (await client.ask(ApiKey.METADATA, METADATA, tree)).topics
    return topic.partitions[0] if topic.partitions else None


async def create_topic(client: Client, replicas: list[int]) -> None:
    new = {
        "name": TOPIC,
        "num_partitions": -1,
        "replication_factor": -1,
        "assignments": [{"partition_index": 0, "broker_ids": replicas}],
        "configs": [],
    }
    tree = {"topics": [new], "timeout": 10_000, "validate_only": False}
    (created,) = (await client.ask(ApiKey.CREATE_TOPICS, CREATE_TOPICS, tree)).topics
    assert created.error_code == ErrorCode.none
    while (partition := await describe(client)) is None or set(partition.isr_nodes) != {0, 1}:
        await asyncio.sleep(0.01)


async def produce(client: Client) -> Any:
    data = {"name": TOPIC, "partition_data": [{"index": 0, "records": batch()}]}
    tree = {"acks": -1, "timeout": 10_000, "topic_data": [data]}
    (topic,) = (await client.ask(ApiKey.PRODUCE, PRODUCE, tree)).responses
    return topic.partition_responses[0]


def fetch_tree(offset: int) -> dict[str, Any]:
    partition = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
    return {
        "replica_id": -1,
        "max_wait": 30_000,
        "min_bytes": 1,
        "max_bytes": 1 << 20,
        "session_epoch": -1,
        "topics": [{"topic": TOPIC, "partitions": [partition]}],
    }


def test_a_broker_that_stops_leaves_leadership_answers_and_closes_its_logs(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with two_brokers(tmp_path) as brokers:
            leaving, staying = await brokers.client(LEAVES), await brokers.client(STAYS)
            await create_topic(leaving, [LEAVES, STAYS])
            assert (await produce(leaving)).error_code == ErrorCode.none
            parked = await brokers.client(LEAVES)
            parked.send(ApiKey.FETCH, FETCH, fetch_tree(offset=1))
            purgatory = brokers.node.actors[purgatory_name(LEAVES)]
            await until(lambda: purgatory.state()[1]["fetch_waiting"])

            stopping = asyncio.create_task(brokers.node.actors[broker_name(LEAVES)].stop())
            # Answered because another leads now, before connections and logs are closed.
            answer = await parked.answer(ApiKey.FETCH, FETCH)
            code = answer.responses[0].partitions[0].error_code
            assert code == ErrorCode.not_leader_or_follower
            assert await parked.closed()
            assert await leaving.closed()
            await stopping

            assert brokers.clean_marks(LEAVES)
            assert not brokers.clean_marks(STAYS)
            partition = await describe(staying)
            assert (partition.leader_id, partition.isr_nodes) == (STAYS, (STAYS,))
            assert (await produce(staying)).base_offset == 1

    run(scenario())
