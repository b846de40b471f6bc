"""A controller's core with brokers around it, and stand-ins for what surrounds the actor."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

from mobula.actors.config import Config
from mobula.actors.controller.core import ControllerCore
from mobula.actors.controller.messages import (
    AlteredPartitions,
    AlterPartition,
    BrokerAccepted,
    Heartbeat,
    HeartbeatAnswer,
    PartitionIsr,
    RegisterBroker,
    ReplicaActorAccepted,
    ReplicaActorState,
)
from mobula.actors.controller.outcome import Outcome
from mobula.actors.controller.topics import NewTopic
from mobula.actors.link.interface import Buffer, Handler
from mobula.actors.link.method import Message, Method
from mobula.actors.metadata.image import MetadataImage
from mobula.actors.metadata.records import ClusterCreated, Endpoint, PartitionChanged, Record
from mobula.actors.spec import CONTROLLER, CONTROLLER_NAME, ActorSpec

CLUSTER_ID = "7rVn9MvCT-6UZWpo03nFvA"
SESSION_MS = 9000


def registration(broker_id: int, **changes: Any) -> RegisterBroker:
    fields: dict[str, Any] = {
        "broker_id": broker_id,
        "cluster_id": "",
        "incarnation": f"life-1-of-{broker_id}",
        "endpoints": [Endpoint("PLAINTEXT", "localhost", 9092 + broker_id)],
        "rack": None,
        "ray_node_id": "node",
        "data_dir": f"/data/broker-{broker_id}",
        "directory_id": bytes([broker_id + 1]) * 16,
        "num_replica_actors": 1,
        "replicas_restarted": True,
    }
    return RegisterBroker(**{**fields, **changes})


def check(partition: PartitionChanged) -> None:
    """What holds for every partition at any time."""
    assert partition.isr, partition
    assert len(set(partition.isr)) == len(partition.isr), partition
    assert set(partition.isr) <= set(partition.replicas), partition
    assert partition.leader == -1 or partition.leader in partition.isr, partition


class World:
    """The core as the actor runs it: what it decides is replayed at once."""

    def __init__(self, *, settings: dict[str, str] | None = None, seed: int = 1) -> None:
        self.now_ms = 1_000_000
        self.image = MetadataImage()
        self.image.replay(ClusterCreated(CLUSTER_ID))
        self.settings = settings or {}
        self.random = Random(seed)
        self.core = self._new_core()
        self.log: list[Record] = [ClusterCreated(CLUSTER_ID)]

    def _new_core(self) -> ControllerCore:
        return ControllerCore(self.image, Config(self.settings), self.random, self.now_ms)

    def restart_controller(self) -> None:
        """All that is not in the log is forgotten."""
        image = MetadataImage()
        image.replay_all(self.log)
        assert image == self.image
        self.image = image
        self.core = self._new_core()

    def commit(self, records: Sequence[Record]) -> None:
        for record in records:
            if isinstance(record, PartitionChanged):
                self._check_change(record)
            self.core.replay(record)
            self.log.append(record)

    def _check_change(self, after: PartitionChanged) -> None:
        check(after)
        before = self.image.partition(after.topic_id, after.partition)
        if before is None:
            return
        assert after.partition_epoch == before.partition_epoch + 1
        if after.leader != before.leader:
            assert after.leader_epoch == before.leader_epoch + 1
            # Never an election outside of who was in sync.
            assert after.leader == -1 or after.leader in before.isr
        else:
            assert after.leader_epoch in (before.leader_epoch, before.leader_epoch + 1)

    def run(self, outcome: Outcome[Any]) -> Any:
        self.commit(outcome.records)
        return outcome.response

    def register(self, broker_id: int, **changes: Any) -> BrokerAccepted:
        request = registration(broker_id, **changes)
        answer: BrokerAccepted = self.run(self.core.register_broker(request, self.now_ms))
        return answer

    def beat(self, broker_id: int, /, **changes: Any) -> HeartbeatAnswer:
        fields: dict[str, Any] = {
            "broker_id": broker_id,
            "broker_epoch": self.image.brokers[broker_id].broker_epoch,
            "metadata_offset": self.image.offset,
            "want_fence": False,
            "want_shutdown": False,
        }
        beat = Heartbeat(**{**fields, **changes})
        answer: HeartbeatAnswer = self.run(self.core.heartbeat(beat, self.now_ms))
        return answer

    def start(self, *broker_ids: int, **changes: Any) -> None:
        """These brokers are registered and live."""
        for broker_id in broker_ids:
            assert self.register(broker_id, **changes).error_code == 0
            assert not self.beat(broker_id).fenced

    def pass_ms(self, duration_ms: int, *, alive: Sequence[int] = ()) -> None:
        """Time goes by in ticks of 500 ms, in which those alive send their heartbeats."""
        end_ms = self.now_ms + duration_ms
        while self.now_ms < end_ms:
            self.now_ms += 500
            for broker_id in alive:
                self.beat(broker_id)
            self.tick()

    def tick(self) -> None:
        self.core.tick(self.now_ms, 500)
        self.commit(self.core.fence_stale(self.now_ms))

    def fence(self, broker_id: int) -> None:
        others = [b.broker_id for b in self.image.live_brokers() if b.broker_id != broker_id]
        self.pass_ms(SESSION_MS + 1000, alive=others)
        assert self.image.brokers[broker_id].fenced

    def create(self, name: str = "topic", *replicas: Sequence[int], **changes: Any) -> bytes:
        """A topic with these replicas for its partitions; its id."""
        assignments = list(enumerate(replicas))
        topic = NewTopic(name=name, assignments=assignments, **changes)
        created = self.core.topics.create(topic, {})
        self.commit(created.records)
        return created.topic_id

    def partition(self, topic_id: bytes, index: int = 0) -> PartitionChanged:
        partition = self.image.partition(topic_id, index)
        assert partition is not None
        return partition

    def alter(self, topic_id: bytes, new_isr: list[int], /, **changes: Any) -> int:
        """The leader of partition 0 asks for this ISR; the partition's error code."""
        partition = self.partition(topic_id)
        fields: dict[str, Any] = {
            "topic_id": topic_id,
            "partition": 0,
            "leader_epoch": partition.leader_epoch,
            "partition_epoch": partition.partition_epoch,
            "new_isr": new_isr,
        }
        broker_id = changes.pop("broker_id", partition.leader)
        epoch = self.image.brokers[broker_id].broker_epoch
        part = PartitionIsr(**{**fields, **changes})
        answer: AlteredPartitions = self.run(
            self.core.alter_partition(AlterPartition(broker_id, epoch, [part]))
        )
        assert answer.error_code == 0
        return answer.parts[0].error_code

    def replica_actor(
        self, broker_id: int, topic_id: bytes, *, online: bool
    ) -> ReplicaActorAccepted:
        names = [(topic_id, index) for index in self.image.topics[topic_id].partitions]
        epoch = self.image.brokers[broker_id].broker_epoch
        state = ReplicaActorState(broker_id, epoch, online, names)
        answer: ReplicaActorAccepted = self.run(self.core.replica_actor_state(state))
        return answer


class FakeReply:
    def __init__(self, caller: str = "broker-0") -> None:
        self.caller = caller
        self.on_cancel: Callable[[], None] | None = None
        self.messages: list[Any] = []
        self.bulks: list[bytes] = []
        self.failures: list[str] = []

    def __call__(self, message: Message, bulk: Sequence[Buffer] = ()) -> None:
        self.messages.append(message)
        self.bulks.append(b"".join(bulk))

    def fail(self, reason: str) -> None:
        self.failures.append(reason)

    def cancel(self) -> None:
        assert self.on_cancel is not None
        self.on_cancel()

    @property
    def message(self) -> Any:
        assert len(self.messages) == 1
        return self.messages[0]


class FakeHandle:
    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class FakeLoop:
    """`run` is one turn: what was scheduled with call_soon. Time moves by `pass_ms` only."""

    def __init__(self) -> None:
        self.now_ms = 5_000_000
        self._soon: list[Callable[[], None]] = []
        self._timers: list[tuple[int, int, FakeHandle]] = []
        self._count = 0

    def call_soon(self, callback: Callable[[], None]) -> None:
        self._soon.append(callback)

    def call_later(self, delay: float, callback: Callable[[], None]) -> FakeHandle:
        handle = FakeHandle(callback)
        self._count += 1
        heapq.heappush(self._timers, (self.now_ms + round(delay * 1000), self._count, handle))
        return handle

    def run(self) -> None:
        while self._soon:
            ready, self._soon = self._soon, []
            for callback in ready:
                callback()

    def pass_ms(self, duration_ms: int) -> None:
        end_ms = self.now_ms + duration_ms
        self.run()
        while self._timers and self._timers[0][0] <= end_ms:
            self.now_ms, _, handle = heapq.heappop(self._timers)
            if handle.callback is not None:
                handle.callback()
            self.run()
        self.now_ms = end_ms


class FakeClock:
    def __init__(self, loop: FakeLoop) -> None:
        self._loop = loop

    def now_ms(self) -> int:
        return self._loop.now_ms

    def monotonic_ms(self) -> int:
        return self._loop.now_ms


class FakeRuntime:
    """Methods are called with `call`; the loop and the clock stand still until told."""

    def __init__(self, data_dir: Path, settings: dict[str, str] | None = None) -> None:
        self.spec = ActorSpec(
            cluster="test",
            kind=CONTROLLER,
            local_name=CONTROLLER_NAME,
            config=settings or {},
            run_dir=str(data_dir),
            data_dir=str(data_dir),
        )
        self.fake_loop = FakeLoop()
        self.loop: Any = self.fake_loop
        self.clock = FakeClock(self.fake_loop)
        self.incarnation = 1
        self.restarts = 0
        self.ray_node_id = "node"
        self.deaths: list[str] = []
        self._handlers: dict[int, tuple[Method[Any, Any], Handler]] = {}

    def serve(self, method: Method[Any, Any], handler: Handler) -> None:
        self._handlers[method.id] = (method, handler)

    def call(
        self, method: Method[Any, Any], message: Message, bulk: bytes = b"", caller: str = "x"
    ) -> FakeReply:
        reply = FakeReply(caller)
        self._handlers[method.id][1](message, memoryview(bytearray(bulk)), reply)
        return reply

    def die(self, reason: str) -> None:
        self.deaths.append(reason)

    def link(self, local_name: str) -> Any:
        raise AssertionError(f"the controller called {local_name}")

    def link_statuses(self) -> list[Any]:
        return []

    async def spawn(self, spec: ActorSpec) -> None:
        raise AssertionError("the controller made an actor")

    async def kill(self, local_name: str) -> None:
        raise AssertionError("the controller ended an actor")


def run(coroutine: Any) -> Any:
    return asyncio.run(coroutine)
