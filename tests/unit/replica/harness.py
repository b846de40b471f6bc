"""One replica manager over real logs, its surroundings faked and its time a variable."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mobula.actors.purgatory.messages import Cause
from mobula.actors.replica.leader import Leadership
from mobula.actors.replica.messages import (
    Append,
    Origin,
    PartitionAppend,
    PartitionAppended,
    Pull,
    PullAnswer,
    PulledPartition,
)
from mobula.actors.replica.partition import Partition
from mobula.actors.replica.pull_loop import PullSettings
from mobula.actors.replica.pull_loops import Leader
from mobula.actors.replica.replica_manager import ReplicaManager, ReplicaSettings
from mobula.actors.rows import Row, RowsReader, RowsWriter
from mobula.storage.config import LogConfig
from mobula.storage.log import Log
from mobula.storage.records import NewRecord, build_batch
from tests.sim.virtual import VirtualLoop
from tests.unit.replica.fakes import TOPIC, FakeLink, FakeReply

NAME = "broker-0/replica-0"
LAG_MS = 30_000


class Replica:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.time = VirtualLoop()
        self.links: dict[str, FakeLink] = {}
        path = directory / "rows"
        self.writer = RowsWriter(path, 1)
        self.rows = RowsReader(path)
        self.manager = ReplicaManager(
            ReplicaSettings(
                name=NAME,
                broker_id=0,
                incarnation=1,
                lag_time_max_ms=LAG_MS,
                partition_max_bytes=1 << 20,
                pull=PullSettings(broker_id=0, max_bytes=10 << 20, max_wait_ms=500),
            ),
            scheduler=self.time,
            clock=self.time,
            link=self.link,
            rows=self.writer,
        )
        self.manager.broker_epoch = 100
        self.manager.live_brokers.update({0: 100, 1: 101, 2: 102})
        self._sessions: dict[str, tuple[int, int]] = {}

    def link(self, name: str) -> FakeLink:
        return self.links.setdefault(name, FakeLink(name))

    @property
    def notices(self) -> list[tuple[int, Cause]]:
        """(partition, causes) that the purgatory was told, since the last look."""
        link = self.link("broker-0/purgatory")
        told = [
            (change.partition, Cause(change.cause))
            for message in link.notices
            for change in message.changes
        ]
        link.notices.clear()
        return told

    def open(
        self, index: int = 0, topic: str = "topic", min_isr: int = 1, **config: Any
    ) -> Partition:
        log = Log.open(
            self.directory / f"{topic}-{index}",
            topic_id=TOPIC,
            config=LogConfig(**config),
            now_ms=self.time.now_ms(),
            clean=True,
            recovery_point=0,
        )
        partition = Partition((TOPIC, index), topic, log, 0)
        partition.min_insync_replicas = min_isr
        self.manager.add(partition)
        return partition

    def lead(
        self,
        index: int = 0,
        *,
        isr: tuple[int, ...] = (0, 1, 2),
        replicas: tuple[int, ...] = (0, 1, 2),
        epoch: int = 5,
        **more: Any,
    ) -> Partition:
        found = self.manager.find((TOPIC, index))
        partition = self.open(index, **more) if found is None else found
        self.manager.lead(partition, Leadership(epoch, epoch, replicas, isr))
        self.time.settle()
        _ = self.notices
        return partition

    def follow(self, index: int = 0, *, epoch: int = 5, data_dir: str = "") -> Partition:
        found = self.manager.find((TOPIC, index))
        partition = self.open(index) if found is None else found
        self.manager.follow(partition, epoch, Leader(1, "broker-1/replica-0", data_dir))
        self.time.settle()
        return partition

    def send(self, *indexes: int, acks: int = -1, origin: Origin = Origin.CLIENT) -> FakeReply:
        """Append a batch of one record to each; not answered before the turn ends."""
        batches = [batch(self.time.now_ms()) for _ in indexes]
        parts = [
            PartitionAppend(TOPIC, index, len(each))
            for index, each in zip(indexes, batches, strict=True)
        ]
        reply = FakeReply("broker-0/gateway-0")
        bulk = memoryview(bytearray(b"".join(batches)))
        self.manager.append(Append(acks, int(origin), parts), bulk, reply)
        return reply

    def append(self, index: int = 0, **more: Any) -> PartitionAppended:
        reply = self.send(index, **more)
        self.time.settle()
        part: PartitionAppended = reply.message.parts[0]
        return part

    def pull(self, *positions: PulledPartition, broker: int = 1) -> FakeReply:
        """The next pull of a follower, which goes on with the session it was given."""
        caller = f"broker-{broker}/replica-0"
        reply = FakeReply(caller)
        session, sequence = self._sessions.get(caller, (0, 0))
        pull = Pull(
            broker, 100 + broker, session, sequence, False, 10 << 20, 500, list(positions), []
        )
        self.manager.pull(pull, memoryview(b""), reply)
        self.time.settle()
        if session == 0:
            session = reply.message.session_id
        self._sessions[caller] = (session, sequence + 1)
        return reply

    def park(self, *positions: PulledPartition, broker: int = 1) -> FakeReply:
        """A follower that stands there and waits for more."""
        self.pull(*positions, broker=broker)
        return self.pull(broker=broker)

    def row(self, index: int = 0) -> Row:
        row = self.rows.find(TOPIC, index)
        assert row is not None
        return row

    def close(self) -> None:
        self.manager.close()
        for partition in self.manager:
            partition.log.close()
        self.writer.close()


@contextmanager
def replica(directory: Path) -> Iterator[Replica]:
    made = Replica(directory)
    try:
        yield made
    finally:
        made.close()


def batch(now_ms: int, count: int = 1, epoch: int = -1, base_offset: int = 0) -> bytearray:
    return build_batch(
        [NewRecord(now_ms, None, b"value") for _ in range(count)],
        leader_epoch=epoch,
        base_offset=base_offset,
    )


def at(partition: Partition, offset: int, epoch: int = 5, last: int = -1) -> PulledPartition:
    """Where a follower stands."""
    return PulledPartition(TOPIC, partition.key[1], epoch, offset, last, 0)


def only(reply: FakeReply) -> PullAnswer:
    (answer,) = reply.message.answers
    assert isinstance(answer, PullAnswer)
    return answer
