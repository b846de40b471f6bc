"""Members of consumer groups by clients that others wrote: each a thread that reads on."""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections import Counter
from contextlib import suppress

Place = tuple[int, int]
"""Partition and offset of a record."""

_POLL_S = 0.2


class Seen:
    """What the members of a group have read between them."""

    def __init__(self) -> None:
        self._times: Counter[Place] = Counter()
        self._lock = threading.Lock()

    def add(self, places: list[Place]) -> None:
        with self._lock:
            self._times.update(places)

    def count(self) -> int:
        """Records, each once."""
        with self._lock:
            return len(self._times)

    def more_than_once(self) -> int:
        with self._lock:
            return sum(times > 1 for times in self._times.values())


class Member(ABC, threading.Thread):
    """Commits what it has read, and leaves when told to."""

    def __init__(self, bootstrap: str, topic: str, group: str, seen: Seen) -> None:
        super().__init__(name=f"{type(self).__name__} of {group}", daemon=True)
        self.bootstrap = bootstrap
        self.topic = topic
        self.group = group
        self.seen = seen
        self.failure: Exception | None = None
        self.assigned: set[int] = set()
        self._leaves = threading.Event()

    def run(self) -> None:
        try:
            self.read()
        except Exception as error:  # noqa: BLE001
            self.failure = error

    @abstractmethod
    def read(self) -> None:
        """Until `leaving`."""

    @property
    def leaving(self) -> bool:
        return self._leaves.is_set()

    def leave(self) -> None:
        self._leaves.set()
        self.join(60)
        assert not self.is_alive(), f"{self.name} did not end"
        if self.failure is not None:
            raise self.failure


class ConfluentMember(Member):
    def read(self) -> None:
        from confluent_kafka import Consumer

        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": self.group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "partition.assignment.strategy": "range",
                "session.timeout.ms": 6000,
                "heartbeat.interval.ms": 500,
            }
        )
        consumer.subscribe([self.topic])
        try:
            while not self.leaving:
                messages = [m for m in consumer.consume(100, _POLL_S) if m.error() is None]
                self.assigned = {each.partition for each in consumer.assignment()}
                if messages:
                    self.seen.add([(m.partition() or 0, m.offset() or 0) for m in messages])
                    consumer.commit(asynchronous=True)
        finally:
            consumer.close()


class KafkaPythonMember(Member):
    def read(self) -> None:
        from kafka import KafkaConsumer
        from kafka.coordinator.assignors.range import RangePartitionAssignor
        from kafka.errors import CommitFailedError, RebalanceInProgressError

        consumer = KafkaConsumer(
            self.topic,
            bootstrap_servers=self.bootstrap.split(","),
            group_id=self.group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            partition_assignment_strategy=[RangePartitionAssignor],
            session_timeout_ms=6000,
            heartbeat_interval_ms=500,
        )
        try:
            while not self.leaving:
                found = consumer.poll(timeout_ms=int(_POLL_S * 1000), max_records=100)
                self.assigned = {place.partition for place in consumer.assignment()}
                for place, records in found.items():
                    self.seen.add([(place.partition, record.offset) for record in records])
                if found:
                    # A rebalance came first: whoever has the partition now reads them again.
                    with suppress(CommitFailedError, RebalanceInProgressError):
                        consumer.commit()
        finally:
            consumer.close()


class AioKafkaMember(Member):
    def read(self) -> None:
        asyncio.run(self._read())

    async def _read(self) -> None:
        from aiokafka import AIOKafkaConsumer
        from aiokafka.coordinator.assignors.range import RangePartitionAssignor

        consumer = AIOKafkaConsumer(
            self.topic,
            bootstrap_servers=self.bootstrap,
            group_id=self.group,
            auto_offset_reset="earliest",
            enable_auto_commit=True,
            auto_commit_interval_ms=200,
            partition_assignment_strategy=[RangePartitionAssignor],
            session_timeout_ms=6000,
            heartbeat_interval_ms=500,
        )
        await consumer.start()
        try:
            while not self.leaving:
                found = await consumer.getmany(timeout_ms=int(_POLL_S * 1000), max_records=100)
                self.assigned = {place.partition for place in consumer.assignment()}
                for place, records in found.items():
                    self.seen.add([(place.partition, record.offset) for record in records])
        finally:
            await consumer.stop()


MEMBERS: tuple[type[Member], ...] = (ConfluentMember, KafkaPythonMember, AioKafkaMember)
