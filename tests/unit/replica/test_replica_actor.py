"""Replica actors on real links in one process: start, replicate, drain, come back."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mobula.actors.broker.messages import (
    DRAIN,
    METADATA_UPDATE,
    STATUS,
    AskStatus,
    Drain,
    MetadataUpdate,
)
from mobula.actors.controller.messages import (
    REPLICA_ACTOR_STATE,
    ReplicaActorAccepted,
    ReplicaActorState,
)
from mobula.actors.link.ask import ask
from mobula.actors.link.interface import LinkError, Reply
from mobula.actors.local_runtime import LocalNode
from mobula.actors.metadata.records import (
    BrokerRegistered,
    ClusterCreated,
    PartitionChanged,
    Record,
    TopicCreated,
    encode_record,
)
from mobula.actors.replica.messages import (
    APPEND,
    OFFSETS_FOR_TIMES,
    Append,
    Appended,
    OffsetsForTimes,
    PartitionAppend,
    PartitionTime,
)
from mobula.actors.rows import Row, RowsReader
from mobula.actors.spec import CONTROLLER_NAME, REPLICA, ActorSpec, replica_name, rows_path
from tests.unit.replica.harness import batch

TOPIC = bytes(range(16))
NOW_MS = 1_700_000_000_000


class Brokers:
    """Two replica actors, and a gateway to ask them."""

    def __init__(self, node: LocalNode, directory: Path, config: dict[str, str]) -> None:
        self.node = node
        self.directory = directory
        self._config = config

    def spec(self, broker_id: int) -> ActorSpec:
        return ActorSpec(
            cluster="test",
            kind=REPLICA,
            local_name=replica_name(broker_id, 0),
            broker_id=broker_id,
            config=self._config,
            run_dir=str(self.directory / "run"),
            data_dir=str(self.directory / f"broker-{broker_id}"),
        )

    async def open(self) -> None:
        (self.directory / "run").mkdir(mode=0o700)
        gateway = ActorSpec(
            cluster="test",
            kind="gateway",
            local_name="broker-0/gateway-0",
            broker_id=0,
            config=self._config,
            run_dir=str(self.directory / "run"),
            data_dir=str(self.directory),
        )
        self.gateway = await self.node.runtime(gateway)
        for broker_id in (0, 1):
            await self.node.start(self.spec(broker_id))

    def records(self, leader_epoch: int = 0) -> list[Record]:
        brokers = [
            BrokerRegistered(
                broker_id, 1, "1", [], None, self.node.ray_node_id,
                str(self.directory / f"broker-{broker_id}"), bytes(16), 1, False, False,
            )
            for broker_id in (0, 1)
        ]  # fmt: skip
        partition = PartitionChanged(TOPIC, 0, [0, 1], [0, 1], 0, leader_epoch, leader_epoch)
        return [ClusterCreated("test"), *brokers, TopicCreated(TOPIC, "topic"), partition]

    async def update(self, *broker_ids: int, leader_epoch: int = 0) -> None:
        records = [encode_record(record) for record in self.records(leader_epoch)]
        for broker_id in broker_ids:
            link = self.gateway.link(replica_name(broker_id, 0))
            while True:
                try:
                    await ask(link, METADATA_UPDATE, MetadataUpdate(1, True, 10, records))
                    break
                except LinkError:
                    # It was not heard of yet that the actor died; the link finds the new one.
                    continue

    async def append(self, acks: int = -1) -> Appended:
        data = batch(NOW_MS)
        done: asyncio.Future[Appended] = asyncio.get_running_loop().create_future()
        self.gateway.link(replica_name(0, 0)).call(
            APPEND,
            Append(acks, 0, [PartitionAppend(TOPIC, 0, len(data))]),
            lambda reply, _: done.set_result(reply),
            done.set_exception,
            bulk=[data],
        )
        return await done

    def row(self, broker_id: int) -> Row | None:
        path = rows_path(str(self.directory / "run"), replica_name(broker_id, 0))
        return RowsReader(path).find(TOPIC, 0)

    async def wait_for_high_watermark(self, broker_id: int, offset: int) -> Row:
        async with asyncio.timeout(10):
            while True:
                row = self.row(broker_id)
                if row is not None and row.high_watermark >= offset:
                    return row
                await asyncio.sleep(0.005)

    def segment(self, broker_id: int) -> bytes:
        return (self.directory / f"broker-{broker_id}" / "topic-0" / f"{0:020}.log").read_bytes()


@asynccontextmanager
async def brokers(directory: Path, **config: str) -> AsyncIterator[Brokers]:
    node = LocalNode()
    made = Brokers(node, directory, {key.replace("_", "."): v for key, v in config.items()})
    try:
        await made.open()
        yield made
    finally:
        await node.close()


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(test())


@pytest.mark.parametrize("ranges", ["auto", "never"])
@pytest.mark.parametrize("transport", ["auto", "ray"])
def test_what_a_leader_takes_reaches_its_follower(
    tmp_path: Path, ranges: str, transport: str
) -> None:
    async def test() -> None:
        config = {"replica_pull_ranges": ranges, "link_transport": transport}
        async with brokers(tmp_path, **config) as cluster:
            await cluster.update(0, 1)
            for offset in range(20):
                (part,) = (await cluster.append()).parts
                assert (part.error_code, part.base_offset) == (0, offset)
            await cluster.wait_for_high_watermark(0, 20)
            await cluster.wait_for_high_watermark(1, 20)
            assert cluster.segment(0) == cluster.segment(1)

    run(test)


def test_nothing_is_served_before_the_first_metadata(tmp_path: Path) -> None:
    async def test() -> None:
        async with brokers(tmp_path) as cluster:
            with pytest.raises(LinkError):
                await cluster.append()
            status = await ask(cluster.gateway.link(replica_name(0, 0)), STATUS, AskStatus())
            assert status.counters["metadata_offset"] == -1
            await cluster.update(0, 1)
            assert (await cluster.append()).parts[0].error_code == 0
            status = await ask(cluster.gateway.link(replica_name(0, 0)), STATUS, AskStatus())
            assert status.counters["metadata_offset"] == 10
            assert status.counters["leaders"] == 1

    run(test)


def test_a_drained_actor_left_its_logs_closed_and_marked(tmp_path: Path) -> None:
    async def test() -> None:
        async with brokers(tmp_path) as cluster:
            await cluster.update(0, 1)
            await cluster.append()
            link = cluster.gateway.link(replica_name(0, 0))
            await ask(link, DRAIN, Drain(0))
            data_dir = tmp_path / "broker-0"
            assert (data_dir / ".kafka_cleanshutdown.replica-0").exists()
            checkpoint = (data_dir / "recovery-point-offset-checkpoint").read_text()
            assert checkpoint == "0\n1\ntopic 0 1\n"
            with pytest.raises(LinkError):
                await cluster.append()
            await ask(link, DRAIN, Drain(0))

    run(test)


def test_an_actor_that_died_comes_back_with_what_it_had(tmp_path: Path) -> None:
    async def test() -> None:
        async with brokers(tmp_path) as cluster:
            await cluster.update(0, 1)
            for _ in range(5):
                await cluster.append()
            await cluster.wait_for_high_watermark(1, 5)
            cluster.node.died(replica_name(0, 0), "killed by the test")
            # The next life knows nothing until it is told.
            await cluster.update(0, 1, leader_epoch=1)
            for offset in range(5, 10):
                (part,) = (await cluster.append()).parts
                assert part.base_offset == offset
            await cluster.wait_for_high_watermark(0, 10)
            row = await cluster.wait_for_high_watermark(1, 10)
            assert row.leader_epoch == 1
            assert cluster.segment(0) == cluster.segment(1)

    run(test)


def test_an_actor_with_a_torn_log_is_not_ready_before_the_controller_knows(tmp_path: Path) -> None:
    """Else others could leave the ISR because this one serves, and it could not leave any more."""

    async def test() -> None:
        async with brokers(tmp_path) as cluster:
            await cluster.update(0, 1)
            for _ in range(3):
                await cluster.append()
            await cluster.wait_for_high_watermark(1, 3)
            cluster.node.died(replica_name(0, 0), "killed by the test")
            segment = tmp_path / "broker-0" / "topic-0" / f"{0:020}.log"
            os.truncate(segment, segment.stat().st_size - 10)

            updated = asyncio.create_task(cluster.update(0, leader_epoch=1))
            reports: asyncio.Queue[tuple[ReplicaActorState, Reply]] = asyncio.Queue()
            controller = await cluster.node.runtime(
                msgspec.structs.replace(
                    cluster.spec(0), kind="controller", local_name=CONTROLLER_NAME
                )
            )
            controller.serve(
                REPLICA_ACTOR_STATE,
                lambda message, _bulk, reply: reports.put_nowait((message, reply)),
            )
            state, noted = await asyncio.wait_for(reports.get(), 10)
            assert (state.online, state.partitions) == (False, [(TOPIC, 0)])
            status = await ask(cluster.gateway.link(replica_name(0, 0)), STATUS, AskStatus())
            assert status.counters["metadata_offset"] == 10
            assert not updated.done()
            noted(ReplicaActorAccepted(0, 11))
            await asyncio.wait_for(updated, 10)

    run(test)


def test_offsets_are_found_by_time_over_the_link(tmp_path: Path) -> None:
    async def test() -> None:
        async with brokers(tmp_path) as cluster:
            await cluster.update(0, 1)
            await cluster.append()
            await cluster.wait_for_high_watermark(0, 1)
            link = cluster.gateway.link(replica_name(0, 0))
            request = OffsetsForTimes([PartitionTime(TOPIC, 0, -1, NOW_MS - 5, 0, 11)])
            (found,) = (await ask(link, OFFSETS_FOR_TIMES, request)).parts
            assert (found.error_code, found.offset, found.timestamp) == (0, 0, NOW_MS)

    run(test)
