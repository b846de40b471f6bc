"""An idempotent producer and what it was promised."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from mobula.actors.link.interface import LinkError
from mobula.actors.replica.messages import (
    APPEND,
    Append,
    Appended,
    Origin,
    PartitionAppend,
    PartitionAppended,
)
from mobula.actors.rows import Role
from mobula.protocol.errors import ErrorCode
from mobula.storage.records import NewRecord, build_batch
from tests.sim.cluster import SimCluster, SimNode
from tests.sim.network import Host

_RETRIABLE = {
    ErrorCode.not_leader_or_follower,
    ErrorCode.unknown_topic_or_partition,
    ErrorCode.not_enough_replicas,
    ErrorCode.kafka_storage_error,
}


class Promise(NamedTuple):
    sequence: int
    base_offset: int
    values: tuple[bytes, ...]


class SimProducer:
    """Writes one batch after the other to one partition with acks=-1; each is sent again
    until it is acknowledged, as the purgatory would: by the leader's published row."""

    def __init__(self, cluster: SimCluster, topic_id: bytes, partition: int, number: int) -> None:
        self.promises: list[Promise] = []
        self.stopped = False
        self._cluster = cluster
        self._key = (topic_id, partition)
        self._id = 1_000 + number
        self._host = Host(cluster.network, f"client-{number}")
        self._sequence = 0
        self._attempt = 0
        self._next()

    def _next(self) -> None:
        if self.stopped:
            return
        random = self._cluster.random
        count = random.randint(1, 5)
        self._values = tuple(
            b"%d-%d-" % (self._id, self._sequence + index)
            + random.randbytes(random.randint(0, 300))
            for index in range(count)
        )
        self._send()

    def _later(self, delay_ms: int, work: Callable[[], None]) -> None:
        attempt = self._attempt
        self._host.call_later(
            delay_ms / 1_000, lambda: work() if self._attempt == attempt else None
        )

    def _again(self) -> None:
        self._attempt += 1
        self._later(self._cluster.random.randint(1, 40), self._send)

    def _send(self) -> None:
        self._attempt += 1
        node = self._cluster.leader(*self._key)
        if node is None:
            self._again()
            return
        now_ms = self._cluster.loop.now_ms()
        batch = build_batch(
            [NewRecord(now_ms, None, value) for value in self._values],
            producer_id=self._id,
            producer_epoch=0,
            base_sequence=self._sequence,
        )
        append = Append(-1, int(Origin.CLIENT), [PartitionAppend(*self._key, len(batch))])
        attempt = self._attempt

        def answered(reply: Appended, _bulk: memoryview) -> None:
            if self._attempt == attempt:
                self._answered(node, reply.parts[0])

        def failed(_error: LinkError) -> None:
            if self._attempt == attempt:
                self._again()

        self._host.link(node.name).call(
            APPEND, append, answered, failed, bulk=[batch], timeout_ms=300
        )

    def _answered(self, node: SimNode, part: PartitionAppended) -> None:
        if part.error_code:
            code = ErrorCode(part.error_code)
            assert code in _RETRIABLE, f"{code.name}: {part.detail}"
            self._again()
            return
        life = node.lives
        deadline_ms = self._cluster.loop.monotonic_ms() + 500

        def check() -> None:
            if not node.alive or node.lives != life:
                self._again()
                return
            row = node.rows.find(*self._key)
            if row is None or row.role != Role.LEADER or row.leader_epoch != part.leader_epoch:
                self._again()
            elif part.required_offset < 0 or (
                row.high_watermark >= part.required_offset
                and row.in_sync_replicas >= row.min_in_sync_replicas
            ):
                self._acknowledged(part.base_offset)
            elif self._cluster.loop.monotonic_ms() > deadline_ms:
                self._again()
            else:
                self._later(1, check)

        check()

    def _acknowledged(self, base_offset: int) -> None:
        self.promises.append(Promise(self._sequence, base_offset, self._values))
        self._sequence += len(self._values)
        self._attempt += 1
        self._later(self._cluster.random.randint(0, 10), self._next)
