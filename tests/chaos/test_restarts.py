"""Stop and start, kill and start, torn writes: what was acknowledged is there afterwards."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil
import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from mobula.cluster import LocalCluster
from mobula.cluster.state import find_cluster, run_dir
from tests.interop.clients import Confluent
from tests.support.actors import pids, wait_whole
from tests.support.history import EndlessProducer, check_history, read_numbers
from tests.support.java_tools import run_kafka_tool
from tests.support.waiting import wait_for

PARTITIONS = 6
SMALL_SEGMENTS = {"log.segment.bytes": "262144", "min.insync.replicas": "2"}


def topic_configs(bootstrap: str, topic: str) -> dict[str, str]:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    resource = ConfigResource(ResourceType.TOPIC, topic)
    described = admin.describe_configs([resource])[resource].result(30)
    return {key: entry.value for key, entry in described.items() if not entry.is_default}


def load(cluster: LocalCluster, topic: str, records: int = 6000) -> dict[int, list[int]]:
    with EndlessProducer(cluster.bootstrap, topic, PARTITIONS, rate=6000) as producer:
        wait_for(lambda: producer.total() > records, f"{records} records")
    assert not producer.failed, producer.failed[:3]
    return producer.acknowledged


def kill_everything(cluster: LocalCluster, supervisor: int) -> None:
    """SIGKILL of the supervisor, Ray and every actor, as a power switch would."""
    victims = [psutil.Process(pid) for pid in pids(cluster).values()]
    parent = psutil.Process(supervisor)
    victims += [*parent.children(recursive=True), parent]
    for process in victims:
        try:
            os.kill(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    psutil.wait_procs(victims, timeout=30)


def supervisor_pid(cluster: LocalCluster) -> int:
    return find_cluster(cluster.name).pid


def log_bytes(broker_dir: Path, topic: str, partition: int) -> bytes:
    folder = broker_dir / f"{topic}-{partition}"
    return b"".join(path.read_bytes() for path in sorted(folder.glob("*.log")))


def test_a_stopped_cluster_serves_the_same_when_started_again(tmp_path: Path) -> None:
    with LocalCluster(brokers=3, data_dir=tmp_path, config=SMALL_SEGMENTS) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        Confluent().create_topic(cluster.bootstrap, "kept", PARTITIONS)
        entry = ConfigEntry(
            "retention.ms", "123456789", incremental_operation=AlterConfigOpType.SET
        )
        resource = ConfigResource(ResourceType.TOPIC, "kept", incremental_configs=[entry])
        admin.incremental_alter_configs([resource])[resource].result(30)
        acknowledged = load(cluster, "kept")
        configs = topic_configs(cluster.bootstrap, "kept")
        found = read_numbers(cluster.bootstrap, "kept", PARTITIONS)
    assert configs["retention.ms"] == "123456789"
    with LocalCluster(brokers=3, data_dir=tmp_path, config=SMALL_SEGMENTS) as cluster:
        wait_whole(cluster)
        assert topic_configs(cluster.bootstrap, "kept") == configs
        again = read_numbers(cluster.bootstrap, "kept", PARTITIONS)
        assert again == found
        check_history(acknowledged, again)


def test_after_a_load_followers_have_the_leaders_bytes_and_kafkas_own_tool_reads_them(
    tmp_path: Path,
) -> None:
    with LocalCluster(brokers=3, data_dir=tmp_path, config=SMALL_SEGMENTS) as cluster:
        Confluent().create_topic(cluster.bootstrap, "same", PARTITIONS)
        load(cluster, "same", records=12_000)
        wait_whole(cluster)
    folders = [tmp_path / f"broker-{index}" for index in range(3)]
    for partition in range(PARTITIONS):
        copies = {log_bytes(folder, "same", partition) for folder in folders}
        assert len(copies) == 1, f"partition {partition} differs between brokers"
        assert copies.pop()
    files = sorted((folders[0] / "same-0").glob("*"))
    logs = [str(path) for path in files if path.suffix in (".log", ".index", ".timeindex")]
    printed = run_kafka_tool(
        "org.apache.kafka.tools.DumpLogSegments", "--deep-iteration", "--files", ",".join(logs)
    )
    assert "isvalid: true" in printed
    for complaint in ("isvalid: false", "Found timestamp mismatch", "Index mismatch", "corrupt",
                      "out of order", "Non-consecutive", "Mismatches in"):  # fmt: skip
        assert complaint not in printed, printed[-2000:]
    snapshots = [str(path) for path in files if path.suffix == ".snapshot"]
    producers = run_kafka_tool(
        "org.apache.kafka.tools.DumpLogSegments", "--files", ",".join(snapshots)
    )
    assert snapshots
    assert producers.count("producerId: ") == len(snapshots), producers
    indexes = [path for path in logs if not path.endswith(".log")]
    checked = run_kafka_tool(
        "org.apache.kafka.tools.DumpLogSegments", "--index-sanity-check", "--files",
        ",".join(indexes),
    )  # fmt: skip
    assert checked.count("passed sanity check") == len(indexes), checked


@pytest.mark.parametrize("cut_bytes", [0, 100])
def test_after_kill_9_of_everything_all_that_was_acknowledged_is_there(
    tmp_path: Path, cut_bytes: int
) -> None:
    """Also with the end cut off one copy of each partition, the leader's among them."""
    cluster = LocalCluster(brokers=3, data_dir=tmp_path, config=SMALL_SEGMENTS).start()
    try:
        Confluent().create_topic(cluster.bootstrap, "killed", PARTITIONS)
        acknowledged = load(cluster, "killed")
        wait_whole(cluster)
        kill_everything(cluster, supervisor_pid(cluster))
    finally:
        cluster.stop()
    if cut_bytes:
        for partition in range(PARTITIONS):
            segment = max((tmp_path / "broker-0" / f"killed-{partition}").glob("*.log"))
            os.truncate(segment, segment.stat().st_size - cut_bytes)
    with LocalCluster(brokers=3, data_dir=tmp_path, config=SMALL_SEGMENTS) as again:
        wait_whole(again)
        found = read_numbers(again.bootstrap, "killed", PARTITIONS)
        reported = (run_dir(again.name) / "logs" / "broker-0.replica-0.log").read_text()
    assert reported.count("log was cut in recovery") == (PARTITIONS if cut_bytes else 0), reported
    check_history(acknowledged, found)
