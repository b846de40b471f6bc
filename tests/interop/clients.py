"""Kafka clients written by others, behind one small face: create, produce, read all."""

from __future__ import annotations

import asyncio
import json
import subprocess
import time
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from tests.support.records import Sent

T = TypeVar("T")
DEADLINE_S = 60


class Client(Protocol):
    name: str
    codecs: tuple[str, ...]

    def create_topic(self, bootstrap: str, topic: str, partitions: int) -> None: ...
    def produce(self, bootstrap: str, topic: str, codec: str, records: list[Sent]) -> None: ...
    def read_all(self, bootstrap: str, topic: str, expected: int) -> list[Sent]: ...


ALL_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


class Confluent:
    name = "confluent-kafka"
    codecs = ALL_CODECS

    def create_topic(self, bootstrap: str, topic: str, partitions: int, replicas: int = 3) -> None:
        from confluent_kafka.admin import AdminClient, NewTopic

        admin = AdminClient({"bootstrap.servers": bootstrap})
        new = NewTopic(topic, num_partitions=partitions, replication_factor=replicas)
        admin.create_topics([new], operation_timeout=30)[topic].result(DEADLINE_S)

    def produce(self, bootstrap: str, topic: str, codec: str, records: list[Sent]) -> None:
        from confluent_kafka import Producer

        producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "compression.type": codec,
                "linger.ms": 5,
            }
        )
        errors: list[object] = []
        for record in records:
            producer.produce(
                topic,
                value=record.value,
                key=record.key,
                partition=record.partition,
                headers=list(record.headers),
                timestamp=record.timestamp_ms or 0,
                on_delivery=lambda error, _message: error and errors.append(error),
            )
        left = producer.flush(DEADLINE_S)
        assert left == 0, f"{left} records not delivered"
        assert not errors, errors

    def read_all(self, bootstrap: str, topic: str, expected: int) -> list[Sent]:
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "unused",
                "enable.auto.commit": False,
                "check.crcs": True,
            }
        )
        try:
            known = consumer.list_topics(topic, timeout=30).topics[topic].partitions
            consumer.assign([TopicPartition(topic, index, 0) for index in known])
            found: list[Sent] = []
            deadline = time.monotonic() + DEADLINE_S
            while len(found) < expected and time.monotonic() < deadline:
                for message in consumer.consume(500, timeout=0.5):
                    assert message.error() is None, message.error()
                    found.append(
                        Sent(
                            message.partition(),
                            message.key(),
                            message.value(),
                            tuple(message.headers() or ()),
                            message.timestamp()[1],
                        )
                    )
            return found
        finally:
            consumer.close()


class KafkaPython:
    name = "kafka-python"
    codecs = ALL_CODECS

    def create_topic(self, bootstrap: str, topic: str, partitions: int) -> None:
        from kafka.admin import KafkaAdminClient, NewTopic

        admin = KafkaAdminClient(bootstrap_servers=bootstrap.split(","))
        try:
            admin.create_topics([NewTopic(topic, num_partitions=partitions, replication_factor=3)])
        finally:
            admin.close()

    def produce(self, bootstrap: str, topic: str, codec: str, records: list[Sent]) -> None:
        from kafka import KafkaProducer

        producer = KafkaProducer(
            bootstrap_servers=bootstrap.split(","),
            acks="all",
            enable_idempotence=True,
            compression_type=None if codec == "none" else codec,
            linger_ms=5,
        )
        try:
            sends = [
                producer.send(
                    topic,
                    value=record.value,
                    key=record.key,
                    partition=record.partition,
                    headers=list(record.headers),
                    timestamp_ms=record.timestamp_ms,
                )
                for record in records
            ]
            for send in sends:
                send.get(timeout=DEADLINE_S)
        finally:
            producer.close(timeout=10)

    def read_all(self, bootstrap: str, topic: str, expected: int) -> list[Sent]:
        from kafka import KafkaConsumer, TopicPartition

        consumer = KafkaConsumer(
            bootstrap_servers=bootstrap.split(","), group_id=None, enable_auto_commit=False
        )
        try:
            known = _until(lambda: consumer.partitions_for_topic(topic))
            assigned = [TopicPartition(topic, index) for index in sorted(known)]
            consumer.assign(assigned)
            consumer.seek_to_beginning(*assigned)
            found: list[Sent] = []
            deadline = time.monotonic() + DEADLINE_S
            while len(found) < expected and time.monotonic() < deadline:
                for batch in consumer.poll(timeout_ms=500).values():
                    found += [
                        Sent(r.partition, r.key, r.value, tuple(r.headers), r.timestamp)
                        for r in batch
                    ]
            return found
        finally:
            consumer.close()


class AioKafka:
    name = "aiokafka"
    codecs = ALL_CODECS

    def create_topic(self, bootstrap: str, topic: str, partitions: int) -> None:
        async def create() -> None:
            from aiokafka.admin import AIOKafkaAdminClient, NewTopic

            admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
            await admin.start()
            try:
                await admin.create_topics(
                    [NewTopic(name=topic, num_partitions=partitions, replication_factor=3)]
                )
            finally:
                await admin.close()

        _run(create)

    def produce(self, bootstrap: str, topic: str, codec: str, records: list[Sent]) -> None:
        async def produce() -> None:
            from aiokafka import AIOKafkaProducer

            producer = AIOKafkaProducer(
                bootstrap_servers=bootstrap,
                enable_idempotence=True,
                compression_type=None if codec == "none" else codec,
                linger_ms=5,
            )
            await producer.start()
            try:
                sends = [
                    await producer.send(
                        topic,
                        value=record.value,
                        key=record.key,
                        partition=record.partition,
                        headers=list(record.headers),
                        timestamp_ms=record.timestamp_ms,
                    )
                    for record in records
                ]
                await asyncio.wait_for(asyncio.gather(*sends), DEADLINE_S)
            finally:
                await producer.stop()

        _run(produce)

    def read_all(self, bootstrap: str, topic: str, expected: int) -> list[Sent]:
        async def read() -> list[Sent]:
            from aiokafka import AIOKafkaConsumer

            consumer = AIOKafkaConsumer(
                topic, bootstrap_servers=bootstrap, group_id=None, auto_offset_reset="earliest"
            )
            await consumer.start()
            try:
                found: list[Sent] = []
                deadline = time.monotonic() + DEADLINE_S
                while len(found) < expected and time.monotonic() < deadline:
                    for batch in (await consumer.getmany(timeout_ms=500)).values():
                        found += [
                            Sent(r.partition, r.key, r.value, tuple(r.headers), r.timestamp)
                            for r in batch
                        ]
                return found
            finally:
                await consumer.stop()

        return _run(read)


class Kcat:
    """No admin of its own: it lets the cluster create the topic. Headers are per run."""

    name = "kcat"
    codecs = ALL_CODECS

    def create_topic(self, bootstrap: str, topic: str, partitions: int) -> None:
        _kcat(bootstrap, "-L", "-t", topic, "-X", "allow.auto.create.topics=true")

        def there() -> bool:
            listing = json.loads(_kcat(bootstrap, "-L", "-J", "-t", topic))
            return bool(listing["topics"][0]["partitions"])

        _until(there)

    def produce(self, bootstrap: str, topic: str, codec: str, records: list[Sent]) -> None:
        for record in records:
            assert record.headers == records[0].headers
        headers = [f"-H{key}={value.decode()}" for key, value in records[0].headers]
        for index in sorted({record.partition for record in records}):
            lines = b"".join(
                (record.key or b"") + b"\t" + (record.value or b"") + b"\n"
                for record in records
                if record.partition == index
            )
            _kcat(
                bootstrap, "-P", "-t", topic, "-p", str(index), "-K", "\\t", "-z", codec,
                "-X", "enable.idempotence=true", *headers, stdin=lines,
            )  # fmt: skip

    def read_all(self, bootstrap: str, topic: str, expected: int) -> list[Sent]:
        lines = _kcat(
            bootstrap, "-C", "-t", topic, "-o", "beginning", "-e", "-J", "-X", "check.crcs=true"
        )
        found = []
        for line in lines.splitlines():
            record = json.loads(line)
            flat = record.get("headers", [])
            headers = tuple((flat[at], flat[at + 1].encode()) for at in range(0, len(flat), 2))
            key = record["key"]
            found.append(
                Sent(
                    record["partition"],
                    None if key is None else key.encode(),
                    None if record["payload"] is None else record["payload"].encode(),
                    headers,
                    record["ts"],
                )
            )
        return found


def _kcat(bootstrap: str, *arguments: str, stdin: bytes | None = None) -> str:
    done = subprocess.run(
        ["kcat", "-b", bootstrap, *arguments],
        input=stdin,
        capture_output=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def _run(work: Callable[[], Awaitable[T]]) -> T:
    async def bounded() -> T:
        return await asyncio.wait_for(work(), DEADLINE_S * 2)

    return asyncio.run(bounded())


def _until(condition: Callable[[], T | None]) -> T:
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError("the condition did not come true in time")


PYTHON_CLIENTS: tuple[Client, ...] = (Confluent(), KafkaPython(), AioKafka())
