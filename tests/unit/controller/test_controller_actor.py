"""The actor around the core: commits, replies, pulls, restarts."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from mobula.actors.controller import actor as actor_module
from mobula.actors.controller.actor import ControllerActor
from mobula.actors.controller.messages import (
    ALLOCATE_PRODUCER_IDS,
    ALTER_PARTITION,
    ENVELOPE,
    HEARTBEAT,
    PULL_METADATA,
    REGISTER_BROKER,
    REPLICA_ACTOR_STATE,
    AllocateProducerIds,
    AlterPartition,
    Envelope,
    Heartbeat,
    PartitionIsr,
    PullMetadata,
    ReplicaActorState,
)
from mobula.actors.controller.metadata_log import FOLDER, MetadataLog
from mobula.actors.link.method import encode as encode_message
from mobula.actors.metadata.image import MetadataImage
from mobula.actors.metadata.records import ClusterCreated, TopicCreated, decode_record
from mobula.protocol.errors import ErrorCode
from mobula.protocol.messages import build_request, decode_response, encode
from mobula.storage.errors import FolderError
from tests.unit.controller.fakes import FakeReply, FakeRuntime, registration, run


class Life:
    """One life of the controller's process over a data folder."""

    def __init__(self, data_dir: Path, settings: dict[str, str] | None = None) -> None:
        self.runtime = FakeRuntime(data_dir, settings)
        self.loop = self.runtime.fake_loop
        self.actor = ControllerActor(self.runtime, Random(3))
        run(self.actor.start())

    def stop(self) -> None:
        run(self.actor.stop())

    def pull(self, offset: int, broker_id: int = 0, **changes: Any) -> FakeReply:
        fields = {"cluster_id": "", "max_wait_ms": 10_000, **changes}
        return self.runtime.call(PULL_METADATA, PullMetadata(broker_id, offset, **fields))

    def image(self) -> MetadataImage:
        """As a broker sees it that pulls everything."""
        pulled = self.pull(-1, broker_id=99).message
        assert pulled.snapshot
        image = MetadataImage()
        image.replay_all(decode_record(record) for record in pulled.records)
        image.offset = pulled.offset
        return image

    def start_broker(self, broker_id: int) -> int:
        accepted = self.runtime.call(REGISTER_BROKER, registration(broker_id))
        self.loop.run()
        epoch: int = accepted.message.broker_epoch
        assert not self.beat(broker_id, epoch).message.fenced
        return epoch

    def beat(self, broker_id: int, epoch: int) -> FakeReply:
        reply = self.runtime.call(HEARTBEAT, Heartbeat(broker_id, epoch, 2**40, False, False))
        self.loop.run()
        return reply

    def create_topic(self, name: str, partitions: int = 1, replicas: int = 1) -> FakeReply:
        topic = {
            "name": name,
            "num_partitions": partitions,
            "replication_factor": replicas,
            "assignments": [],
            "configs": [],
        }
        tree = {"topics": [topic], "timeout": 1000, "validate_only": False}
        frame = struct.pack(">hhihx", 19, 7, 1, -1) + encode(build_request(19, 7, tree))
        envelope = Envelope("User:ANONYMOUS", "127.0.0.1", "PLAINTEXT", 1000)
        return self.runtime.call(ENVELOPE, envelope, frame)


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    life = Life(tmp_path)
    yield life
    life.stop()


def test_the_first_start_makes_a_cluster_id_that_stays(tmp_path: Path) -> None:
    first = Life(tmp_path)
    cluster_id = first.image().cluster_id
    assert len(cluster_id) == 22
    first.stop()
    again = Life(tmp_path)
    assert again.image().cluster_id == cluster_id
    assert again.image().offset == 0
    again.stop()


def test_starting_twice_is_starting_once(life: Life) -> None:
    run(life.actor.start())
    assert life.actor.state()[0] == "running"


def test_a_data_folder_that_is_in_use_is_refused(life: Life, tmp_path: Path) -> None:
    with pytest.raises(FolderError, match="in use"):
        Life(tmp_path)


def test_answers_leave_only_after_their_records_are_on_disk(
    life: Life, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    life.start_broker(0)
    reply = life.create_topic("t")
    parked = life.pull(life.actor.state()[1]["metadata_offset"])
    assert reply.messages == parked.messages == []
    seen: list[int] = []
    commit = MetadataLog.commit

    def spied(log: MetadataLog, records: list[bytes]) -> None:
        seen.append(len(reply.messages))
        commit(log, records)

    monkeypatch.setattr(MetadataLog, "commit", spied)
    life.loop.run()
    assert seen == [0]
    assert reply.message.error_code == ErrorCode.none
    (topic,) = decode_response(19, 7, reply.bulks[0]).topics
    assert topic.error_code is ErrorCode.none


def test_all_that_is_decided_in_a_turn_is_one_commit(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    life.start_broker(0)
    commits: list[int] = []
    commit = MetadataLog.commit

    def counted(log: MetadataLog, records: list[bytes]) -> None:
        commits.append(len(records))
        commit(log, records)

    monkeypatch.setattr(MetadataLog, "commit", counted)
    replies = [life.create_topic(f"t{n}") for n in range(10)]
    block = life.runtime.call(ALLOCATE_PRODUCER_IDS, AllocateProducerIds(0))
    life.loop.run()
    assert commits == [21]
    assert all(reply.message.error_code == ErrorCode.none for reply in replies)
    assert (block.message.first, block.message.count) == (0, 1000)


def test_what_a_request_decides_is_known_to_the_next_one_in_the_same_turn(life: Life) -> None:
    life.start_broker(0)
    first, second = life.create_topic("t"), life.create_topic("t")
    life.loop.run()
    (made,) = decode_response(19, 7, first.bulks[0]).topics
    (refused,) = decode_response(19, 7, second.bulks[0]).topics
    assert made.error_code is ErrorCode.none
    assert refused.error_code is ErrorCode.topic_already_exists


def test_an_answer_that_changes_nothing_leaves_at_once(life: Life) -> None:
    epoch = life.start_broker(0)
    beat = Heartbeat(0, epoch, 2**40, False, False)
    assert life.runtime.call(HEARTBEAT, beat).message.error_code == ErrorCode.none


def test_an_answer_built_on_what_is_not_yet_on_disk_waits_for_it(life: Life) -> None:
    epoch = life.start_broker(0)
    life.create_topic("t")
    reply = life.runtime.call(HEARTBEAT, Heartbeat(0, epoch, 2**40, False, False))
    assert reply.messages == []
    life.loop.run()
    assert reply.message.error_code == ErrorCode.none


def test_a_caller_that_is_gone_gets_no_answer_and_its_records_stay(life: Life) -> None:
    life.start_broker(0)
    reply = life.create_topic("t")
    reply.cancel()
    life.loop.run()
    assert reply.messages == []
    assert life.image().topic("t") is not None


def test_everything_is_there_after_a_kill(tmp_path: Path) -> None:
    life = Life(tmp_path)
    for broker_id in (0, 1, 2):
        life.start_broker(broker_id)
    life.create_topic("t", 6, 3)
    life.runtime.call(ALLOCATE_PRODUCER_IDS, AllocateProducerIds(0))
    life.loop.run()
    before = life.image()
    # A kill leaves no time for stop: only the lock and the descriptors go.
    assert life.actor._lock is not None
    life.actor._lock.release()
    again = Life(tmp_path)
    assert again.image() == before
    block = again.runtime.call(ALLOCATE_PRODUCER_IDS, AllocateProducerIds(1))
    again.loop.run()
    assert block.message.first == 1000
    again.stop()
    life.actor._log.close()


def test_a_log_that_cannot_be_written_ends_the_process_without_an_answer(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    life.start_broker(0)
    reply = life.create_topic("t")
    parked = life.pull(life.actor.state()[1]["metadata_offset"])

    def full(_log: MetadataLog, _records: list[bytes]) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(MetadataLog, "commit", full)
    life.loop.run()
    assert reply.messages == parked.messages == []
    (reason,) = life.runtime.deaths
    assert "No space left" in reason
    assert life.actor.state()[0] == "failed"


class TestPulls:
    def test_a_broker_that_knows_nothing_gets_a_snapshot(self, life: Life) -> None:
        pulled = life.pull(-1).message
        assert pulled.snapshot
        assert pulled.offset == 0
        assert any(isinstance(decode_record(r), ClusterCreated) for r in pulled.records)

    def test_a_pull_is_parked_until_there_are_records_and_gets_all_of_the_turn(
        self, life: Life
    ) -> None:
        life.start_broker(0)
        offset = life.image().offset
        reply = life.pull(offset)
        assert reply.messages == []
        life.create_topic("a")
        life.create_topic("b")
        life.loop.run()
        pulled = reply.message
        assert not pulled.snapshot
        assert pulled.offset == offset + 4
        records = [decode_record(record) for record in pulled.records]
        assert len(records) == 4
        assert [r.name for r in records if isinstance(r, TopicCreated)] == ["a", "b"]

    def test_a_pull_that_is_behind_gets_what_it_lacks_at_once(self, life: Life) -> None:
        life.start_broker(0)
        life.create_topic("a")
        life.loop.run()
        pulled = life.pull(1).message
        assert not pulled.snapshot
        assert len(pulled.records) == pulled.offset - 1

    def test_a_pull_ends_at_its_time_with_nothing(self, life: Life) -> None:
        offset = life.image().offset
        reply = life.pull(offset, max_wait_ms=1000)
        life.loop.pass_ms(999)
        assert reply.messages == []
        life.loop.pass_ms(1)
        assert reply.message.records == []
        assert (reply.message.snapshot, reply.message.offset) == (False, offset)

    def test_a_newer_pull_of_the_same_broker_ends_the_older_one(self, life: Life) -> None:
        life.start_broker(0)
        offset = life.image().offset
        old, new, other = life.pull(offset), life.pull(offset), life.pull(offset, broker_id=1)
        assert old.message.records == []
        life.create_topic("a")
        life.loop.run()
        assert len(new.message.records) == len(other.message.records) == 2
        assert len(old.messages) == 1

    def test_a_pull_whose_caller_is_gone_is_forgotten(self, life: Life) -> None:
        life.start_broker(0)
        reply = life.pull(life.image().offset)
        reply.cancel()
        life.create_topic("a")
        life.loop.pass_ms(20_000)
        assert reply.messages == []

    @pytest.mark.parametrize(("offset", "cluster_id"), [(10_000, ""), (1, "of another cluster")])
    def test_a_pull_from_another_history_gets_a_snapshot(
        self, life: Life, offset: int, cluster_id: str
    ) -> None:
        life.start_broker(0)
        assert life.pull(offset, cluster_id=cluster_id).message.snapshot

    def test_a_pull_from_before_what_is_kept_gets_a_snapshot(self, tmp_path: Path) -> None:
        life = Life(tmp_path)
        life.start_broker(0)
        life.create_topic("a")
        life.loop.run()
        life.actor._snapshot()
        life.stop()
        again = Life(tmp_path)
        offset = again.image().offset
        assert again.pull(offset - 1).message.snapshot
        assert again.pull(offset).messages == []
        again.stop()

    def test_parked_pulls_are_answered_when_the_controller_stops(self, tmp_path: Path) -> None:
        life = Life(tmp_path)
        reply = life.pull(life.image().offset)
        life.stop()
        assert reply.message.records == []


def test_a_long_log_becomes_a_snapshot_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actor_module, "SNAPSHOT_RECORDS", 50)
    life = Life(tmp_path)
    life.start_broker(0)
    for number in range(60):
        life.create_topic(f"t{number}")
        life.loop.run()
    folder = tmp_path / FOLDER
    assert len(list(folder.glob("*.snapshot"))) == 1
    before = life.image()
    life.stop()
    again = Life(tmp_path)
    assert again.image() == before
    assert len(before.topics) == 60
    again.stop()


def test_a_silent_broker_is_fenced_by_the_clock_and_others_are_not(life: Life) -> None:
    life.start_broker(0)
    epoch = life.start_broker(1)
    for _ in range(10):
        life.loop.pass_ms(1000)
        life.beat(1, epoch)
    image = life.image()
    assert image.brokers[0].fenced
    assert not image.brokers[1].fenced


def test_preferred_leaders_come_back_by_themselves(tmp_path: Path) -> None:
    life = Life(tmp_path, {"leader.imbalance.check.interval.seconds": "5"})
    epochs = {broker_id: life.start_broker(broker_id) for broker_id in (0, 1)}
    life.create_topic("t", 1, 2)
    life.loop.run()
    (partition,) = life.image().partitions()
    first, second = partition.replicas
    names = [(partition.topic_id, 0)]
    for online in (False, True):
        state = ReplicaActorState(first, epochs[first], online, names)
        life.runtime.call(REPLICA_ACTOR_STATE, state)
    life.loop.run()
    (partition,) = life.image().partitions()
    assert partition.leader == second
    part = PartitionIsr(partition.topic_id, 0, partition.leader_epoch, 1, [first, second])
    reply = life.runtime.call(ALTER_PARTITION, AlterPartition(second, epochs[second], [part]))
    life.loop.run()
    assert reply.message.parts[0].error_code == ErrorCode.none
    life.loop.pass_ms(5000)
    (partition,) = life.image().partitions()
    assert partition.leader == first
    life.stop()


def test_leaders_stay_where_they_are_when_balancing_is_off(tmp_path: Path) -> None:
    life = Life(tmp_path, {"auto.leader.rebalance.enable": "false"})
    assert "balance" not in life.actor._timers
    life.stop()


def test_every_answer_can_be_sent(life: Life) -> None:
    life.start_broker(0)
    for method, message in [
        (REGISTER_BROKER, registration(0)),
        (HEARTBEAT, Heartbeat(0, -5, 0, False, False)),
        (ALTER_PARTITION, AlterPartition(0, -5, [])),
        (REPLICA_ACTOR_STATE, ReplicaActorState(0, -5, True, [])),
        (ALLOCATE_PRODUCER_IDS, AllocateProducerIds(77)),
        (PULL_METADATA, PullMetadata(0, -1, "", 10)),
    ]:
        sent = method.decode_request.decode(encode_message(message))
        reply = life.runtime.call(method, sent)
        life.loop.run()
        answer = reply.message
        assert method.decode_reply.decode(encode_message(answer)) == answer
