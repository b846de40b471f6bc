"""The purgatory actor over real local links, with the real clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from mobula.actors.broker.messages import METADATA_UPDATE, MetadataUpdate
from mobula.actors.link.ask import ask
from mobula.actors.local_runtime import LocalNode, LocalRuntime
from mobula.actors.metadata.records import encode_record
from mobula.actors.purgatory.actor import PurgatoryActor
from mobula.actors.purgatory.messages import (
    PARTITIONS_CHANGED,
    WATCH_FETCH,
    WATCH_PRODUCE,
    Cause,
    Change,
    FetchPart,
    PartitionsChanged,
    ProduceDone,
    ProducePart,
    WatchFetch,
    WatchProduce,
)
from mobula.actors.rows import Row, RowsWriter
from mobula.actors.spec import (
    GATEWAY,
    PURGATORY,
    REPLICA,
    ActorSpec,
    gateway_name,
    purgatory_name,
    replica_name,
    rows_path,
)
from mobula.protocol.errors import ErrorCode
from tests.unit.purgatory.fakes import TOPIC, leader
from tests.unit.purgatory.test_purgatory_actor import cluster_records

PURGATORY_NAME = purgatory_name(0)
REPLICA_NAME = replica_name(0, 0)
GATEWAY_NAME = gateway_name(0, 0)


class Actors:
    """A purgatory; a replica actor and a gateway as far as it knows them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.rows = RowsWriter(rows_path(str(folder), REPLICA_NAME), 1)
        self._slot = self.rows.allocate(leader())
        self.node: LocalNode
        self.purgatory: PurgatoryActor
        self.replica: LocalRuntime
        self.gateway: LocalRuntime

    async def start(self) -> None:
        self.node = LocalNode()
        purgatory = await self.node.start(self._spec(PURGATORY, PURGATORY_NAME))
        assert isinstance(purgatory, PurgatoryActor)
        self.purgatory = purgatory
        self.replica = await self.node.runtime(self._spec(REPLICA, REPLICA_NAME))
        self.gateway = await self.node.runtime(self._spec(GATEWAY, GATEWAY_NAME))
        records = [encode_record(record) for record in cluster_records()]
        update = MetadataUpdate(1, True, 10, records)
        await ask(self.gateway.link(PURGATORY_NAME), METADATA_UPDATE, update)
        await until(lambda: self.replica.link(PURGATORY_NAME).transport_name() != "down")

    async def close(self) -> None:
        await self.node.close()
        self.rows.close()

    def _spec(self, kind: str, name: str) -> ActorSpec:
        folder = str(self._folder)
        return ActorSpec(
            cluster="test", kind=kind, local_name=name, broker_id=0, run_dir=folder, data_dir=folder
        )

    def publish(self, row: Row, cause: Cause) -> None:
        self.rows.publish(self._slot, row)
        changed = PartitionsChanged(REPLICA_NAME, [Change(TOPIC, 0, cause)])
        self.replica.link(PURGATORY_NAME).notify(PARTITIONS_CHANGED, changed)

    def produce(self, required: int, timeout_ms: int = 30_000) -> asyncio.Task[ProduceDone]:
        watch = WatchProduce(timeout_ms, [ProducePart(TOPIC, 0, 3, required)])
        return asyncio.create_task(ask(self.gateway.link(PURGATORY_NAME), WATCH_PRODUCE, watch))

    def waiting(self, kind: str) -> int:
        return self.purgatory.state()[1][f"{kind}_waiting"]


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.001)


def run(folder: Path, scene: Callable[[Actors], Coroutine[Any, Any, None]]) -> None:
    async def play() -> None:
        actors = Actors(folder)
        await actors.start()
        try:
            await scene(actors)
        finally:
            await actors.close()

    asyncio.run(play())


def test_a_produce_is_answered_when_its_replica_actor_tells_of_the_high_watermark(
    tmp_path: Path,
) -> None:
    async def scene(actors: Actors) -> None:
        produce = actors.produce(11)
        await until(lambda: actors.waiting("produce") == 1)
        actors.publish(leader(high_watermark=11), Cause.HIGH_WATERMARK)
        assert (await produce).error_codes == [0]

    run(tmp_path, scene)


def test_a_produce_times_out_by_the_one_timer(tmp_path: Path) -> None:
    async def scene(actors: Actors) -> None:
        late, early = actors.produce(11, timeout_ms=90), actors.produce(11, timeout_ms=30)
        for produce in (early, late):
            assert (await produce).error_codes == [ErrorCode.request_timed_out]
        assert actors.waiting("produce") == 0

    run(tmp_path, scene)


def test_a_cancelled_call_and_a_gateway_that_died_leave_nothing_behind(tmp_path: Path) -> None:
    async def scene(actors: Actors) -> None:
        link = actors.gateway.link(PURGATORY_NAME)
        part = FetchPart(TOPIC, 0, 3, 10, 0, 1000, 1, 1 << 20)
        watch = WatchFetch(20_000, 1, False, [part])
        handles = [link.call(WATCH_FETCH, watch, lambda *_: None, lambda _: None) for _ in range(3)]
        await until(lambda: actors.waiting("fetch") == 3)
        link.cancel(handles[0])
        await until(lambda: actors.waiting("fetch") == 2)
        await actors.node.kill(GATEWAY_NAME)
        await until(lambda: actors.waiting("fetch") == 0)

    run(tmp_path, scene)


def test_a_replica_actor_that_died_answers_its_produces_at_once(tmp_path: Path) -> None:
    async def scene(actors: Actors) -> None:
        produce = actors.produce(11)
        await until(lambda: actors.waiting("produce") == 1)
        purgatory = actors.node.runtimes[PURGATORY_NAME]
        await until(lambda: purgatory.link(REPLICA_NAME).transport_name() != "down")
        await actors.node.kill(REPLICA_NAME)
        assert (await produce).error_codes == [ErrorCode.not_leader_or_follower]

    run(tmp_path, scene)
