"""What metadata makes of a broker's partitions: on a small cluster where nothing fails."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from mobula.actors.broker.messages import MetadataUpdate
from mobula.actors.config import Config
from mobula.actors.metadata.image import TOPIC_RESOURCE
from mobula.actors.metadata.records import (
    BrokerRegistered,
    ConfigChanged,
    PartitionChanged,
    Record,
    TopicCreated,
    TopicRemoved,
    encode_record,
)
from mobula.actors.replica.assignments import Assignments
from mobula.actors.replica.log_directory import LogDirectory
from mobula.actors.rows import Role
from tests.sim.cluster import SimCluster
from tests.sim.producer import SimProducer
from tests.unit.replica.harness import Replica, replica

TOPIC = bytes(range(16))
SECOND = bytes(range(1, 17))


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[SimCluster]:
    made = SimCluster(tmp_path, seed=1)
    try:
        yield made
    finally:
        made.close()


def produce(cluster: SimCluster, topic_id: bytes = TOPIC, *, for_ms: int = 300) -> int:
    """Records acknowledged by partition 0."""
    producer = SimProducer(cluster, topic_id, 0, 0)
    cluster.loop.run_for(for_ms)
    producer.stopped = True
    cluster.loop.run_for(1_000)
    return sum(len(promise.values) for promise in producer.promises)


def test_a_new_topic_is_led_and_followed_as_assigned(cluster: SimCluster) -> None:
    cluster.controller.create_topic(TOPIC, "topic", 3)
    cluster.loop.run_for(200)
    for index in range(3):
        roles = {}
        for broker_id, node in cluster.nodes.items():
            row = node.rows.find(TOPIC, index)
            assert row is not None
            roles[broker_id] = row.role
        assert roles.pop(index) == Role.LEADER
        assert set(roles.values()) == {Role.FOLLOWER}


def test_what_is_produced_reaches_every_replica(cluster: SimCluster) -> None:
    cluster.controller.create_topic(TOPIC, "topic", 1)
    cluster.loop.run_for(200)
    count = produce(cluster)
    assert count > 10
    for node in cluster.nodes.values():
        row = node.rows.find(TOPIC, 0)
        assert row is not None
        assert row.high_watermark == row.log_end_offset == count


def test_a_deleted_topic_leaves_no_folder(cluster: SimCluster) -> None:
    cluster.controller.create_topic(TOPIC, "topic", 1)
    cluster.loop.run_for(200)
    produce(cluster)
    cluster.controller.delete_topic(TOPIC)
    cluster.loop.run_for(200)
    for node in cluster.nodes.values():
        assert node.rows.find(TOPIC, 0) is None
        assert [path for path in node.data_dir.iterdir() if path.is_dir()] == []


def test_a_topic_created_again_begins_empty(cluster: SimCluster) -> None:
    cluster.controller.create_topic(TOPIC, "topic", 1)
    cluster.loop.run_for(200)
    produce(cluster)
    cluster.controller.delete_topic(TOPIC)
    cluster.controller.create_topic(SECOND, "topic", 1)
    cluster.loop.run_for(200)
    for node in cluster.nodes.values():
        row = node.rows.find(SECOND, 0)
        assert row is not None
        assert row.log_end_offset == 0


def test_a_topic_deleted_while_a_broker_was_away_is_a_stray_there(cluster: SimCluster) -> None:
    cluster.controller.create_topic(TOPIC, "topic", 1)
    cluster.loop.run_for(200)
    produce(cluster)
    node = cluster.nodes[2]
    node.close()
    cluster.controller.delete_topic(TOPIC)
    folder = node.data_dir / "topic-0"
    # The simulated clock is not the file system's.
    os.utime(folder, (0, 0))
    node.start()
    cluster.loop.run_for(200)
    assert not folder.exists()
    assert len(list(node.data_dir.glob("topic-0.*-stray"))) == 1


def test_a_broker_that_ended_cleanly_recovers_nothing(cluster: SimCluster) -> None:
    cluster.controller.create_topic(TOPIC, "topic", 1)
    cluster.loop.run_for(200)
    count = produce(cluster)
    node = cluster.nodes[2]
    node.close()
    node.start()
    cluster.loop.run_for(200)
    partition = node.partition(TOPIC, 0)
    assert partition is not None
    assert partition.log.recovery is None
    assert partition.high_watermark_offset == count


def test_a_changed_topic_config_reaches_open_logs(cluster: SimCluster) -> None:
    cluster.controller.create_topic(TOPIC, "topic", 1)
    cluster.loop.run_for(200)
    cluster.controller.commit(
        [
            ConfigChanged(TOPIC_RESOURCE, "topic", "segment.bytes", "12345"),
            ConfigChanged(TOPIC_RESOURCE, "topic", "min.insync.replicas", "3"),
        ]
    )
    cluster.loop.run_for(200)
    for node in cluster.nodes.values():
        partition = node.partition(TOPIC, 0)
        assert partition is not None
        assert partition.log.config.segment_bytes == 12345
    row = cluster.nodes[0].rows.find(TOPIC, 0)
    assert row is not None
    assert row.min_in_sync_replicas == 3


def test_retention_drops_old_segments_on_every_replica(cluster: SimCluster) -> None:
    cluster.controller.create_topic(
        TOPIC, "topic", 1, segment_bytes="2000", retention_bytes="4000", file_delete_delay_ms="0"
    )
    cluster.loop.run_for(200)
    produce(cluster, for_ms=1_000)
    cluster.loop.run_for(40_000)
    for node in cluster.nodes.values():
        partition = node.partition(TOPIC, 0)
        row = node.rows.find(TOPIC, 0)
        assert partition is not None
        assert row is not None
        assert row.log_start_offset > 0
        assert partition.log.size_bytes <= 4000 + 2000


def test_a_partition_that_moves_away_is_removed_here(cluster: SimCluster) -> None:
    cluster.controller.create_topic(TOPIC, "topic", 1)
    cluster.loop.run_for(200)
    produce(cluster)
    record = cluster.controller.image.partition(TOPIC, 0)
    assert record is not None
    moved = type(record)(
        TOPIC, 0, [0, 1], [0, 1], 0, record.leader_epoch, record.partition_epoch + 1
    )
    cluster.controller.commit([moved])
    cluster.loop.run_for(200)
    node = cluster.nodes[2]
    assert node.rows.find(TOPIC, 0) is None
    assert not (node.data_dir / "topic-0").exists()


def test_offsets_are_written_down_every_few_seconds(cluster: SimCluster) -> None:
    cluster.controller.create_topic(TOPIC, "topic", 1)
    cluster.loop.run_for(200)
    count = produce(cluster)
    cluster.loop.run_for(6_000)
    written = (cluster.nodes[1].data_dir / "replication-offset-checkpoint").read_text()
    assert written == f"0\n1\ntopic 0 {count}\n"


def test_a_log_that_cannot_be_opened_fails_alone(cluster: SimCluster) -> None:
    broken = cluster.nodes[0].data_dir / "topic-1"
    broken.write_text("not a folder")
    cluster.controller.create_topic(TOPIC, "topic", 3)
    cluster.loop.run_for(500)
    node = cluster.nodes[0]
    assert node.rows.find(TOPIC, 0) is not None
    assert node.rows.find(TOPIC, 1) is None
    record = cluster.controller.image.partition(TOPIC, 1)
    assert record is not None
    assert 0 not in record.isr


class Shard:
    """One of the replica actors of a broker, without peers."""

    def __init__(self, directory: Path, broker: Replica, actor: str) -> None:
        self.swept: list[tuple[str, bytes, int]] = []
        self.logs = LogDirectory(directory, actor)
        self.logs.load()
        self.assignments = Assignments(
            name=f"broker-0/{actor}",
            broker_id=0,
            ray_node_id="node",
            config=Config({}),
            replicas=broker.manager,
            directory=self.logs,
            wall_ms=broker.time.now_ms,
            remove_later=lambda _: None,
            sweep_later=lambda *what: self.swept.append(what),
        )

    def apply(self, *records: Record, snapshot: bool = False) -> None:
        update = MetadataUpdate(1, snapshot, 9, [encode_record(record) for record in records])
        for _ in self.assignments.apply(update):
            pass


def registered(actors: int) -> BrokerRegistered:
    return BrokerRegistered(
        0, 1, "1", [], None, "node", "/nowhere", bytes(16), actors, False, False
    )


def partition(index: int) -> PartitionChanged:
    return PartitionChanged(TOPIC, index, [0], [0], 0, 0, 0)


def test_an_actor_holds_its_share_of_the_partitions_only(tmp_path: Path) -> None:
    with replica(tmp_path) as broker:
        shard = Shard(tmp_path / "data", broker, "replica-1")
        records: list[Record] = [registered(2), TopicCreated(TOPIC, "topic")]
        records += map(partition, range(6))
        shard.apply(*records, snapshot=True)
        assert len(broker.manager) == 3
        assert len(list((tmp_path / "data").glob("topic-*"))) == 3


def test_a_dedicated_partition_has_an_actor_of_its_own(tmp_path: Path) -> None:
    dedicated = ConfigChanged(TOPIC_RESOURCE, "topic", "replica.actor", "dedicated")
    records: list[Record] = [registered(1), TopicCreated(TOPIC, "topic"), dedicated]
    records += map(partition, range(3))
    with replica(tmp_path) as broker:
        own = Shard(tmp_path / "data", broker, f"replica-{TOPIC.hex()}-2")
        own.apply(*records, snapshot=True)
        assert [partition.key for partition in broker.manager] == [(TOPIC, 2)]


def test_what_a_dedicated_actor_left_of_a_deleted_topic_is_swept(tmp_path: Path) -> None:
    dedicated = ConfigChanged(TOPIC_RESOURCE, "topic", "replica.actor", "dedicated")
    with replica(tmp_path) as broker:
        first = Shard(tmp_path / "data", broker, "replica-0")
        first.apply(
            registered(1), TopicCreated(TOPIC, "topic"), partition(0), dedicated, snapshot=True
        )
        assert len(broker.manager) == 0
        first.apply(TopicRemoved(TOPIC))
        assert first.swept == [("topic", TOPIC, 0)]
