"""Clients written by others create a topic, produce with every codec, and read it all back."""

from __future__ import annotations

import dataclasses
import shutil
import uuid

import pytest

from mobula.cluster import LocalCluster
from tests.interop.clients import PYTHON_CLIENTS, Client, Confluent, Kcat
from tests.support.java_tools import run_kafka_tool
from tests.support.records import Sent, by_partition, sample

PARTITIONS = 3


def fresh(name: str) -> str:
    return f"{name}-{uuid.uuid4().hex[:8]}"


@pytest.mark.parametrize("client", PYTHON_CLIENTS, ids=lambda client: client.name)
def test_a_client_reads_back_what_it_wrote_with_every_codec(
    any_cluster: LocalCluster, client: Client
) -> None:
    topic = fresh(client.name)
    client.create_topic(any_cluster.bootstrap, topic, PARTITIONS)
    sent: list[Sent] = []
    for codec in client.codecs:
        records = sample(codec, partitions=PARTITIONS)
        client.produce(any_cluster.bootstrap, topic, codec, records)
        sent += records
    found = client.read_all(any_cluster.bootstrap, topic, len(sent))
    assert by_partition(found) == by_partition(sent)


@pytest.mark.parametrize("reader", PYTHON_CLIENTS, ids=lambda client: client.name)
def test_what_one_client_wrote_another_reads(cluster: LocalCluster, reader: Client) -> None:
    topic = fresh("mixed")
    writer = Confluent()
    writer.create_topic(cluster.bootstrap, topic, PARTITIONS)
    records = sample("zstd", partitions=PARTITIONS)
    writer.produce(cluster.bootstrap, topic, "zstd", records)
    assert by_partition(reader.read_all(cluster.bootstrap, topic, len(records))) == by_partition(
        records
    )


@pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed")
def test_kcat_reads_back_what_it_wrote_with_every_codec(any_cluster: LocalCluster) -> None:
    client = Kcat()
    topic = fresh("kcat")
    client.create_topic(any_cluster.bootstrap, topic, 1)
    sent: list[Sent] = []
    for codec in client.codecs:
        records = [
            Sent(0, f"key-{index}".encode(), f"{codec}-{index}".encode(), (("codec", b"yes"),))
            for index in range(100)
        ]
        client.produce(any_cluster.bootstrap, topic, codec, records)
        sent += records
    found = client.read_all(any_cluster.bootstrap, topic, len(sent))
    assert all(record.timestamp_ms is not None and record.timestamp_ms > 0 for record in found)
    assert [dataclasses.replace(record, timestamp_ms=None) for record in found] == sent


def test_javas_tools_create_a_topic_produce_and_consume(any_cluster: LocalCluster) -> None:
    topic = fresh("java")
    bootstrap = any_cluster.bootstrap
    run_kafka_tool(
        "org.apache.kafka.tools.TopicCommand", "--bootstrap-server", bootstrap,
        "--create", "--topic", topic, "--partitions", "1", "--replication-factor", "3",
    )  # fmt: skip
    lines = "".join(f"key-{index}\tvalue-{index}\n" for index in range(500))
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        run_kafka_tool(
            "org.apache.kafka.tools.ConsoleProducer", "--bootstrap-server", bootstrap,
            "--topic", topic, "--compression-codec", codec, "--reader-property", "parse.key=true",
            stdin=lines,
        )  # fmt: skip
    read = run_kafka_tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer", "--bootstrap-server", bootstrap,
        "--topic", topic, "--partition", "0", "--offset", "earliest", "--max-messages", "2500",
        "--timeout-ms", "60000", "--formatter-property", "print.key=true",
    )  # fmt: skip
    assert read == lines * 5
