"""Requests near `socket.request.max.bytes` pass every hop, on both transports of the link."""

from __future__ import annotations

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from mobula.cluster import LocalCluster

SIZE = 70_000_000
"""More than what may wait unopened on a link."""
MAX_MESSAGE = "95000000"


def test_a_record_of_70_mb_is_replicated_and_read_back(any_cluster: LocalCluster) -> None:
    servers = {"bootstrap.servers": any_cluster.bootstrap}
    topic = NewTopic("large", 1, 3, config={"max.message.bytes": MAX_MESSAGE})
    admin = AdminClient(servers)
    admin.create_topics([topic])["large"].result(30)
    failures: list[object] = []
    producer = Producer(
        {**servers, "acks": "all", "message.max.bytes": MAX_MESSAGE, "message.timeout.ms": 60_000}
    )
    producer.produce(
        "large", bytes(SIZE), on_delivery=lambda error, _: failures.append(error) if error else None
    )
    assert producer.flush(90) == 0
    assert failures == []
    consumer = Consumer(
        {**servers, "group.id": "none", "enable.auto.commit": False,
         "fetch.message.max.bytes": MAX_MESSAGE, "fetch.max.bytes": MAX_MESSAGE,
         "receive.message.max.bytes": "100000000"}
    )  # fmt: skip
    try:
        consumer.assign([TopicPartition("large", 0, 0)])
        message = consumer.poll(60)
        assert message is not None
        assert message.error() is None
        assert len(message.value() or b"") == SIZE
    finally:
        consumer.close()
