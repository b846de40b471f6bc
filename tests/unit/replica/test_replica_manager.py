"""The replica manager over real logs: appends, pulls, roles, and what others are told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mobula.actors.controller.messages import AlteredPartitions, PartitionAltered
from mobula.actors.purgatory.messages import Cause
from mobula.actors.replica.leader import Leadership
from mobula.actors.replica.messages import Origin, PullAnswer, Pulled, Range
from mobula.actors.rows import Role
from mobula.protocol.errors import ErrorCode
from mobula.storage.errors import StorageError
from mobula.storage.log import Log, LogPosition
from tests.unit.replica.fakes import TOPIC, FakeReply
from tests.unit.replica.harness import LAG_MS, Replica, at, batch, only, replica


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Replica]:
    with replica(tmp_path) as made:
        yield made


def test_appends_of_one_turn_are_written_together_and_answered_after(
    broker: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition = broker.lead()
    writes = []
    flush = Log.flush_staged

    def counted(log: Log) -> LogPosition:
        writes.append(log)
        return flush(log)

    monkeypatch.setattr(Log, "flush_staged", counted)
    replies = [broker.send(0) for _ in range(16)]
    assert all(reply.messages == [] for reply in replies)
    broker.time.settle()
    assert [reply.message.parts[0].base_offset for reply in replies] == list(range(16))
    assert partition.log_end_offset == 16
    assert len(writes) == 1


def test_acks_all_says_which_high_watermark_to_wait_for(broker: Replica) -> None:
    broker.lead()
    part = broker.append()
    assert (part.error_code, part.base_offset, part.required_offset) == (0, 0, 1)
    assert part.leader_epoch == 5


def test_acks_one_and_zero_wait_for_nothing(broker: Replica) -> None:
    broker.lead()
    assert broker.append(acks=1).required_offset == -1
    assert broker.append(acks=0).required_offset == -1


def test_acks_all_on_a_leader_alone_waits_for_nothing(broker: Replica) -> None:
    broker.lead(isr=(0,), replicas=(0,))
    assert broker.append().required_offset == -1
    assert broker.row().high_watermark == 1


def test_no_byte_is_written_while_too_few_replicas_are_in_sync(broker: Replica) -> None:
    partition = broker.lead(isr=(0,), min_isr=2)
    part = broker.append()
    assert part.error_code == ErrorCode.not_enough_replicas
    assert partition.log_end_offset == 0
    assert partition.log.size_bytes == 0
    assert broker.append(acks=1).error_code == 0


def test_one_bad_part_does_not_fail_the_others(broker: Replica) -> None:
    broker.lead(0)
    broker.lead(1, isr=(0,), min_isr=2)
    broker.follow(2)
    reply = broker.send(0, 1, 2, 9, 0)
    broker.time.settle()
    assert [part.error_code for part in reply.message.parts] == [
        0,
        ErrorCode.not_enough_replicas,
        ErrorCode.not_leader_or_follower,
        ErrorCode.unknown_topic_or_partition,
        0,
    ]
    assert [part.base_offset for part in reply.message.parts] == [0, -1, -1, -1, 1]


def test_the_records_that_keep_a_batch_out_are_named(broker: Replica) -> None:
    broker.lead(cleanup_policy=frozenset({"compact"}))
    answer = broker.append()
    assert answer.error_code == ErrorCode.invalid_record
    assert answer.record_errors == ((0, answer.detail),)


def test_clients_may_not_write_internal_topics(broker: Replica) -> None:
    broker.lead(topic="__consumer_offsets")
    assert broker.append().error_code == ErrorCode.invalid_topic_exception
    assert broker.append(origin=Origin.COORDINATOR).error_code == 0


def test_the_row_is_published_before_the_append_is_answered(broker: Replica) -> None:
    broker.lead()
    seen = []

    class Looking(FakeReply):
        def __call__(self, message: object, bulk: object = ()) -> None:
            seen.append(broker.row().log_end_offset)

    reply = broker.send(0)
    broker.manager._turn._appends[0] = (Looking(), *broker.manager._turn._appends[0][1:])
    broker.time.settle()
    assert seen == [1]
    assert reply.messages == []


def test_the_high_watermark_moves_with_the_followers_pulls(broker: Replica) -> None:
    partition = broker.lead()
    broker.append()
    broker.pull(at(partition, 1, last=5), broker=1)
    assert broker.row().high_watermark == 0
    broker.pull(at(partition, 1, last=5), broker=2)
    row = broker.row()
    assert row.high_watermark == 1
    assert (row.high_watermark_segment, row.high_watermark_position) == (0, row.log_end_position)


def test_a_gateway_whose_append_waits_hears_of_the_high_watermark_until_it_is_reached(
    broker: Replica,
) -> None:
    partition = broker.lead()
    broker.append()
    broker.append()
    gateway = broker.link("broker-0/gateway-0")
    for offset in (1, 2):
        broker.pull(at(partition, offset), broker=1)
        broker.pull(at(partition, offset), broker=2)
        assert [change.partition for change in gateway.notices[-1].changes] == [0]
    assert len(gateway.notices) == 2
    broker.append(acks=1)
    broker.pull(at(partition, 3), broker=1)
    broker.pull(at(partition, 3), broker=2)
    assert len(gateway.notices) == 2


def test_a_gateway_whose_append_waits_hears_of_a_lost_leadership(broker: Replica) -> None:
    partition = broker.lead()
    broker.append()
    broker.follow(epoch=6)
    gateway = broker.link("broker-0/gateway-0")
    assert len(gateway.notices) == 1
    assert partition.awaiting == {}


def test_the_purgatory_hears_once_a_turn_and_only_of_what_it_can_act_on(broker: Replica) -> None:
    partition = broker.lead()
    broker.append()
    assert broker.notices == []
    broker.pull(at(partition, 1, last=5), broker=1)
    assert broker.notices == []
    broker.pull(at(partition, 1, last=5), broker=2)
    # Also the low watermark: now every replica has said where its log starts.
    assert broker.notices == [(0, Cause.APPEND | Cause.HIGH_WATERMARK | Cause.FOLLOWER)]


def test_a_parked_pull_is_answered_with_the_turns_appends(broker: Replica) -> None:
    partition = broker.lead()
    parked = broker.park(at(partition, 0), broker=1)
    assert parked.messages == []
    broker.send(0)
    broker.send(0)
    broker.time.settle()
    answer = only(parked)
    assert answer.next_offset == 2
    assert answer.ranges == [Range(0, 0, partition.log.size_bytes)]


def test_a_parked_pull_is_answered_empty_when_its_time_is_over(broker: Replica) -> None:
    partition = broker.lead()
    parked = broker.park(at(partition, 0), broker=1)
    broker.time.run_for(499)
    assert parked.messages == []
    broker.time.run_for(1)
    assert parked.message.answers == []


def test_followers_of_another_epoch_are_refused(broker: Replica) -> None:
    partition = broker.lead(epoch=5)
    old = only(broker.pull(at(partition, 0, epoch=4), broker=1))
    new = only(broker.pull(at(partition, 0, epoch=6), broker=2))
    assert old.error_code == ErrorCode.fenced_leader_epoch
    assert new.error_code == ErrorCode.unknown_leader_epoch
    assert old.leader_epoch == 5


def test_a_follower_that_differs_is_told_where_to_cut(broker: Replica) -> None:
    partition = broker.lead(epoch=3)
    broker.append()
    broker.append()
    broker.lead(epoch=5)
    answer = only(broker.pull(at(partition, 4, last=4), broker=1))
    assert (answer.diverging_epoch, answer.diverging_end_offset) == (3, 2)
    leader = partition.leader
    assert leader is not None
    progress = leader.follower(1)
    assert progress is not None
    assert progress.log_end_offset == -1


def test_a_follower_before_the_logs_start_is_told_where_it_starts(broker: Replica) -> None:
    partition = broker.lead(isr=(0,), replicas=(0, 1))
    for _ in range(5):
        broker.append()
    partition.log.advance_log_start(3)
    answer = only(broker.pull(at(partition, 1), broker=1))
    assert answer.error_code == ErrorCode.offset_out_of_range
    assert (answer.log_start_offset, answer.next_offset) == (3, 5)


def test_a_caught_up_follower_joins_the_isr_through_the_controller(broker: Replica) -> None:
    partition = broker.lead(isr=(0, 1))
    broker.append()
    broker.pull(at(partition, 1, last=5), broker=2)
    call = broker.link("controller").take()
    (part,) = call.message.parts
    assert part.new_isr == [0, 1, 2]
    assert part.new_isr_epochs == [-1, -1, 102]
    assert broker.row().in_sync_replicas == 3
    call.on_reply(AlteredPartitions(0, [PartitionAltered(0, [0, 1, 2], 0, 5, 6)]), memoryview(b""))
    assert partition.leader is not None
    assert partition.leader.isr == {0, 1, 2}


def test_a_refused_follower_is_asked_for_again_a_second_later(broker: Replica) -> None:
    partition = broker.lead(isr=(0, 1))
    broker.pull(at(partition, 0), broker=2)
    controller = broker.link("controller")
    refused = PartitionAltered(int(ErrorCode.ineligible_replica), [0, 1], 0, 5, 5)
    controller.answer(AlteredPartitions(0, [refused]))
    broker.time.run_for(999)
    assert controller.calls == {}
    broker.time.run_for(1)
    broker.time.settle()
    assert controller.take().message.parts[0].new_isr == [0, 1, 2]


def test_a_silent_follower_leaves_the_isr_and_lets_the_high_watermark_go(broker: Replica) -> None:
    partition = broker.lead()
    broker.append()
    broker.pull(at(partition, 1, last=5), broker=1)
    broker.time.run_for(LAG_MS + 1)
    broker.manager.isrs.check()
    broker.time.settle()
    call = broker.link("controller").take()
    assert call.message.parts[0].new_isr == [0, 1]
    assert broker.row().high_watermark == 0
    _ = broker.notices
    call.on_reply(AlteredPartitions(0, [PartitionAltered(0, [0, 1], 0, 5, 6)]), memoryview(b""))
    broker.time.settle()
    assert broker.row().high_watermark == 1
    assert broker.notices == [(0, Cause.APPEND | Cause.HIGH_WATERMARK)]


def test_a_lost_leadership_is_told_to_followers_purgatory_and_producers(broker: Replica) -> None:
    partition = broker.lead()
    parked = broker.park(at(partition, 0), broker=1)
    broker.follow(epoch=6)
    assert only(parked).error_code == ErrorCode.not_leader_or_follower
    assert broker.notices == [(0, Cause.LEADERSHIP)]
    assert broker.row().role == Role.FOLLOWER
    assert broker.append().error_code == ErrorCode.not_leader_or_follower


def test_a_new_epoch_of_the_same_leader_fences_followers_of_the_old_one(broker: Replica) -> None:
    partition = broker.lead(epoch=5)
    broker.append()
    parked = broker.park(at(partition, 1, last=5), broker=1)
    broker.lead(epoch=6)
    answer = only(parked)
    assert answer.error_code == ErrorCode.fenced_leader_epoch
    assert answer.leader_epoch == 6
    assert broker.row().epoch_start_offset == 1


def test_a_leader_that_was_elected_again_in_its_epoch_stays_as_it_was(broker: Replica) -> None:
    partition = broker.lead()
    leader = partition.leader
    broker.manager.lead(partition, Leadership(5, 6, (0, 1, 2), (0, 1)))
    assert partition.leader is leader
    assert leader is not None
    assert leader.isr == {0, 1}


def test_what_was_staged_is_written_before_a_role_changes(broker: Replica) -> None:
    partition = broker.lead()
    reply = broker.send(0)
    broker.manager.finish_turn()
    broker.follow(epoch=6)
    assert reply.message.parts[0].error_code == 0
    assert partition.log_end_offset == 1


def test_a_follower_copies_what_the_leader_sends(broker: Replica) -> None:
    partition = broker.follow()
    link = broker.link("broker-1/replica-0")
    data = bytes(batch(broker.time.now_ms(), count=3, epoch=5))
    answer = PullAnswer(TOPIC, 0, 0, 5, 2, 0, ranges=[Range(0, 0, len(data))], next_offset=3)
    link.answer(Pulled(9, [answer]), data)
    broker.time.settle()
    assert partition.log_end_offset == 3
    assert broker.row().high_watermark == 2
    (position,) = link.take().message.changed
    assert (position.fetch_offset, position.last_fetched_epoch) == (3, 5)


def test_a_follower_copies_a_range_from_the_leaders_file(broker: Replica, tmp_path: Path) -> None:
    data = bytes(batch(broker.time.now_ms(), count=3, epoch=5))
    folder = tmp_path / "leader" / "topic-0"
    folder.mkdir(parents=True)
    (folder / f"{0:020}.log").write_bytes(data)
    partition = broker.follow(data_dir=str(tmp_path / "leader"))
    answer = PullAnswer(TOPIC, 0, 0, 5, 3, 0, ranges=[Range(0, 0, len(data))], next_offset=3)
    broker.link("broker-1/replica-0").answer(Pulled(9, [answer]))
    broker.time.settle()
    assert partition.log_end_offset == 3
    assert partition.log.segment_path(0).read_bytes() == data


def test_a_range_that_is_not_what_was_promised_leaves_the_log_as_it_was(
    broker: Replica, tmp_path: Path
) -> None:
    data = batch(broker.time.now_ms(), count=3, epoch=5)
    data[-1] ^= 1
    folder = tmp_path / "leader" / "topic-0"
    folder.mkdir(parents=True)
    (folder / f"{0:020}.log").write_bytes(data)
    partition = broker.follow(data_dir=str(tmp_path / "leader"))
    link = broker.link("broker-1/replica-0")
    answer = PullAnswer(TOPIC, 0, 0, 5, 3, 0, ranges=[Range(0, 0, len(data))], next_offset=3)
    link.answer(Pulled(9, [answer]))
    broker.time.settle()
    assert partition.log_end_offset == 0
    broker.time.run_for(100)
    named = [position for call in link.calls.values() for position in call.message.changed]
    assert [position.fetch_offset for position in named] == [0]


def test_a_leader_whose_files_cannot_be_read_is_asked_for_bytes(
    broker: Replica, tmp_path: Path
) -> None:
    broker.follow(data_dir=str(tmp_path / "leader"))
    link = broker.link("broker-1/replica-0")
    answer = PullAnswer(TOPIC, 0, 0, 5, 3, 0, ranges=[Range(0, 0, 100)], next_offset=3)
    for _ in range(8):
        link.answer(Pulled(9, [answer]))
        broker.time.run_for(2_000)
    assert all(call.message.wants_bytes for call in link.calls.values())


def test_a_follower_cuts_its_log_where_the_leader_says(broker: Replica) -> None:
    broker.lead(epoch=3, isr=(0,), replicas=(0, 1))
    for _ in range(4):
        broker.append()
    partition = broker.follow(epoch=6)
    _ = broker.notices
    link = broker.link("broker-1/replica-0")
    answer = PullAnswer(TOPIC, 0, 0, 6, 2, 0, diverging_epoch=3, diverging_end_offset=2)
    link.answer(Pulled(9, [answer]))
    broker.time.settle()
    assert partition.log_end_offset == 2
    assert broker.row().high_watermark == 2
    assert broker.row().generation > 0
    assert broker.notices == [(0, Cause.TRUNCATED)]
    (position,) = link.take().message.changed
    assert position.fetch_offset == 2


def test_an_own_epoch_without_records_is_cut_away_too(broker: Replica) -> None:
    broker.lead(epoch=3, isr=(0,), replicas=(0, 1))
    broker.append()
    broker.lead(epoch=5, isr=(0,), replicas=(0, 1))
    partition = broker.follow(epoch=6)
    link = broker.link("broker-1/replica-0")
    assert link.calls[1].message.changed[0].last_fetched_epoch == 5
    answer = PullAnswer(TOPIC, 0, 0, 6, 1, 0, diverging_epoch=3, diverging_end_offset=1)
    link.answer(Pulled(9, [answer]))
    broker.time.settle()
    assert partition.log_end_offset == 1
    (position,) = link.take().message.changed
    assert (position.fetch_offset, position.last_fetched_epoch) == (1, 3)


def test_a_follower_far_behind_begins_anew_at_its_leaders_start(broker: Replica) -> None:
    partition = broker.follow()
    link = broker.link("broker-1/replica-0")
    answer = PullAnswer(TOPIC, 0, int(ErrorCode.offset_out_of_range), 5, 300, 200, next_offset=300)
    link.answer(Pulled(9, [answer]))
    broker.time.settle()
    (position,) = link.take().message.changed
    assert (position.fetch_offset, position.log_start_offset) == (200, 200)
    assert partition.log_start_offset == 200
    assert broker.row().high_watermark == 200


def test_the_followers_log_start_follows_the_leaders(broker: Replica) -> None:
    broker.lead(epoch=3, isr=(0,), replicas=(0, 1))
    for _ in range(4):
        broker.append()
    partition = broker.follow(epoch=6)
    link = broker.link("broker-1/replica-0")
    link.answer(Pulled(9, [PullAnswer(TOPIC, 0, 0, 6, 4, 3)]))
    broker.time.settle()
    assert partition.log_start_offset == 3
    (position,) = link.take().message.changed
    assert position.log_start_offset == 3


def test_a_log_that_fails_goes_offline_alone(
    broker: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, good = broker.lead(0), broker.lead(1)
    parked = broker.park(at(bad, 0), at(good, 0), broker=1)
    flush = Log.flush_staged

    def failing(log: Log) -> LogPosition:
        if log is bad.log:
            log.offline = True
            raise StorageError("the disk is gone")
        return flush(log)

    monkeypatch.setattr(Log, "flush_staged", failing)
    replies = [broker.send(0), broker.send(1), broker.send(0)]
    broker.time.settle()
    storage_error = ErrorCode.kafka_storage_error
    assert [reply.message.parts[0].error_code for reply in replies] == [
        storage_error,
        0,
        storage_error,
    ]
    assert broker.row(0).role == Role.OFFLINE
    assert (0, Cause.OFFLINE) in [(index, cause & Cause.OFFLINE) for index, cause in broker.notices]
    codes = {answer.partition: answer.error_code for answer in parked.message.answers}
    assert codes == {0: storage_error, 1: 0}
    assert broker.append(0).error_code == storage_error
    broker.time.run_for(10)
    (state,) = [call.message for call in broker.link("controller").calls.values()]
    assert (state.online, state.partitions) == (False, [(TOPIC, 0)])


def test_a_write_that_failed_and_was_undone_leaves_the_partition_in_service(
    broker: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.lead()
    broker.append()

    def full(log: Log) -> LogPosition:
        log._staged.clear()
        raise StorageError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Log, "flush_staged", full)
        assert broker.append().error_code == ErrorCode.kafka_storage_error
    assert broker.row().role == Role.LEADER


def _unreadable(*_: object) -> LogPosition:
    raise StorageError("too many open files")


def test_a_high_watermark_that_cannot_be_looked_up_fails_no_other_partition(
    broker: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A follower that pulled while too few were in sync: the next append moves it."""
    bad, good = broker.lead(0, isr=(0,), min_isr=2), broker.lead(1, isr=(0,))
    broker.append(0, acks=1)
    broker.pull(at(bad, 1, last=5), broker=1)
    call = broker.link("controller").take()
    answer = AlteredPartitions(0, [PartitionAltered(0, [0, 1], 0, 5, 6)])
    with monkeypatch.context() as patch:
        patch.setattr(bad.log, "position_of", _unreadable)
        replies = [broker.send(0, acks=1), broker.send(1, acks=1)]
        broker.time.settle()
        call.on_reply(answer, memoryview(b""))
        replies += [broker.send(0, acks=1), broker.send(1, acks=1)]
        broker.time.settle()
    assert [reply.message.parts[0].error_code for reply in replies] == [0, 0, 0, 0]
    assert broker.row(1).high_watermark == good.log_end_offset == 2
    broker.pull(at(bad, 2, last=5), broker=1)
    assert broker.row(0).high_watermark == 2


def test_a_stopped_partition_is_gone_from_the_rows(broker: Replica) -> None:
    partition = broker.lead()
    parked = broker.park(at(partition, 0), broker=1)
    broker.manager.stop(partition)
    partition.log.close()
    broker.time.settle()
    assert broker.rows.find(TOPIC, 0) is None
    assert only(parked).error_code == ErrorCode.unknown_topic_or_partition
    assert broker.notices == [(0, Cause.DELETED)]


def test_a_topics_new_min_insync_replicas_counts_at_once(broker: Replica) -> None:
    partition = broker.lead(isr=(0,))
    broker.append(acks=1)
    broker.manager.reconfigure(partition, partition.log.config, 2)
    broker.time.settle()
    assert broker.append().error_code == ErrorCode.not_enough_replicas
    assert broker.row().min_in_sync_replicas == 2


def test_a_partition_without_a_leader_says_so(broker: Replica) -> None:
    partition = broker.lead(epoch=5)
    broker.manager.idle(partition, 6)
    broker.time.settle()
    assert broker.append().error_code == ErrorCode.not_leader_or_follower
    assert broker.row().leader_epoch == 6
