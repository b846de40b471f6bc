"""Producing without end and checking afterwards: nothing acknowledged lost, doubled, reordered."""

from __future__ import annotations

import threading
import time
from types import TracebackType

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition
from confluent_kafka import KafkaError as ClientError

_READ_TIMEOUT_S = 60


class EndlessProducer:
    """An idempotent producer with acks=all in a thread; values count up in each partition."""

    def __init__(self, bootstrap: str, topic: str, partitions: int, rate: int = 2000) -> None:
        self.acknowledged: dict[int, list[int]] = {index: [] for index in range(partitions)}
        self.failed: list[ClientError] = []
        self._topic = topic
        self._partitions = partitions
        self._pause_s = 1 / rate
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 2,
                # What piles up while it finds its brokers must fit the tests' small segments.
                "batch.size": 100_000,
                "message.timeout.ms": 120_000,
                "reconnect.backoff.max.ms": 500,
                "retry.backoff.max.ms": 300,
            }
        )
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="producer")

    def total(self) -> int:
        return sum(map(len, self.acknowledged.values()))

    def __enter__(self) -> EndlessProducer:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stopping.set()
        self._thread.join()
        left = self._producer.flush(120)
        if error is None:
            assert left == 0, f"{left} records neither acknowledged nor failed"

    def _run(self) -> None:
        number = 0
        while not self._stopping.is_set():
            for partition in range(self._partitions):
                self._send(partition, number)
            number += 1
            self._producer.poll(0)
            time.sleep(self._pause_s * self._partitions)

    def _send(self, partition: int, number: int) -> None:
        while True:
            try:
                self._producer.produce(
                    self._topic,
                    value=f"{number:08d}".encode() + b"." * 200,
                    partition=partition,
                    on_delivery=self._delivered,
                )
            except BufferError:
                self._producer.poll(0.1)
            else:
                return

    def _delivered(self, error: ClientError | None, message: Message) -> None:
        if error is not None:
            self.failed.append(error)
            return
        value, partition = message.value(), message.partition()
        assert value is not None
        assert partition is not None
        self.acknowledged[partition].append(int(value[:8]))


def read_numbers(bootstrap: str, topic: str, partitions: int) -> dict[int, list[int]]:
    """Everything in the topic up to its end as of now."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False}
    )
    found: dict[int, list[int]] = {index: [] for index in range(partitions)}
    try:
        ends = {}
        for index in range(partitions):
            _, end = consumer.get_watermark_offsets(TopicPartition(topic, index), timeout=30)
            ends[index] = end
        consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
        deadline = time.monotonic() + _READ_TIMEOUT_S
        while any(len(found[index]) < ends[index] for index in ends):
            assert time.monotonic() < deadline, f"read {found=} of {ends}"
            for message in consumer.consume(1000, timeout=0.5):
                error = message.error()
                if error is not None:
                    raise KafkaException(error)
                value, partition = message.value(), message.partition()
                assert value is not None
                assert partition is not None
                found[partition].append(int(value[:8]))
    finally:
        consumer.close()
    return found


def check_history(acknowledged: dict[int, list[int]], found: dict[int, list[int]]) -> None:
    """Every acknowledged record is there once, and each partition's records are in order."""
    for partition, numbers in found.items():
        assert numbers == sorted(set(numbers)), f"partition {partition} is out of order or doubled"
        lost = set(acknowledged[partition]) - set(numbers)
        assert not lost, f"partition {partition} lost {len(lost)} acknowledged: {min(lost)}"
