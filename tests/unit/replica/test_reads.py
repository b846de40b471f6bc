"""Offsets by time, ends of epochs, deleted records: asked of a replica actor."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from mobula.actors.replica.messages import (
    DeleteRecords,
    EpochEndOffsets,
    OffsetsForTimes,
    PartitionDelete,
    PartitionDeleted,
    PartitionEpoch,
    PartitionEpochEnd,
    PartitionOffset,
    PartitionTime,
)
from mobula.actors.replica.reads import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    LogReads,
)
from mobula.protocol.errors import ErrorCode
from tests.unit.replica.fakes import TOPIC
from tests.unit.replica.harness import Replica, at, only, replica


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Replica]:
    with replica(tmp_path) as made:
        yield made


@pytest.fixture
def led(broker: Replica) -> Replica:
    """Alone in its ISR: five records, a second apart, all committed."""
    broker.lead(isr=(0,), replicas=(0, 1))
    for _ in range(5):
        broker.append()
        broker.time.run_for(1_000)
    return broker


def offset(broker: Replica, timestamp: int, version: int = 11, epoch: int = -1) -> PartitionOffset:
    request = OffsetsForTimes([PartitionTime(TOPIC, 0, epoch, timestamp, 0, version)])
    (found,) = LogReads(broker.manager).offsets_for_times(request).parts
    return found


def delete(broker: Replica, before: int) -> PartitionDeleted:
    request = DeleteRecords([PartitionDelete(TOPIC, 0, before)])
    (deleted,) = LogReads(broker.manager).delete_records(request).parts
    broker.time.settle()
    return deleted


def test_latest_is_the_high_watermark(led: Replica) -> None:
    assert offset(led, LATEST) == PartitionOffset(0, -1, 5, 5)


def test_earliest_is_the_log_start_with_its_epoch(led: Replica) -> None:
    delete(led, 2)
    assert offset(led, EARLIEST) == PartitionOffset(0, -1, 2, 5)
    assert offset(led, EARLIEST_LOCAL) == PartitionOffset(0, -1, 2, 5)


def test_a_time_finds_the_first_record_not_before_it(led: Replica) -> None:
    start = led.time.now_ms() - 5_000
    assert offset(led, start + 1_500) == PartitionOffset(0, start + 2_000, 2, 5)
    assert offset(led, start + 60_000) == PartitionOffset(0, -1, -1, -1)


def test_the_largest_timestamp_is_found(led: Replica) -> None:
    start = led.time.now_ms() - 5_000
    assert offset(led, MAX_TIMESTAMP) == PartitionOffset(0, start + 4_000, 4, 5)


def test_tiered_timestamps_answer_as_without_tiering(led: Replica) -> None:
    assert offset(led, LATEST_TIERED) == PartitionOffset(0, -1, -1, -1)
    assert offset(led, EARLIEST_PENDING_UPLOAD) == PartitionOffset(0, -1, -1, -1)


def test_a_special_timestamp_needs_a_version_that_has_it(led: Replica) -> None:
    for timestamp, version in (
        (MAX_TIMESTAMP, 6),
        (EARLIEST_LOCAL, 7),
        (LATEST_TIERED, 8),
        (-9, 11),
    ):
        assert offset(led, timestamp, version).error_code == ErrorCode.unsupported_version


def test_a_new_leader_does_not_know_the_latest_offset_before_its_followers_confirm(
    broker: Replica,
) -> None:
    partition = broker.lead(epoch=5, isr=(0, 1), replicas=(0, 1))
    broker.append()
    broker.lead(epoch=6, isr=(0, 1), replicas=(0, 1))
    assert offset(broker, LATEST).error_code == ErrorCode.offset_not_available
    assert offset(broker, LATEST, version=4).error_code == ErrorCode.leader_not_available
    assert offset(broker, 0).error_code == ErrorCode.offset_not_available
    assert offset(broker, EARLIEST).error_code == 0
    broker.pull(at(partition, 1, epoch=6, last=5), broker=1)
    assert offset(broker, LATEST).offset == 1


def test_only_the_leader_of_the_right_epoch_answers(led: Replica) -> None:
    assert offset(led, LATEST, epoch=4).error_code == ErrorCode.fenced_leader_epoch
    assert offset(led, LATEST, epoch=6).error_code == ErrorCode.unknown_leader_epoch
    led.follow(epoch=6)
    assert offset(led, LATEST, epoch=6).error_code == ErrorCode.not_leader_or_follower


def test_the_end_of_an_epoch_is_where_the_next_began(led: Replica) -> None:
    led.lead(epoch=8, isr=(0,), replicas=(0, 1))
    led.append()

    def end(epoch: int) -> PartitionEpochEnd:
        request = EpochEndOffsets([PartitionEpoch(TOPIC, 0, 8, epoch)])
        (found,) = LogReads(led.manager).epoch_end_offsets(request).parts
        return found

    assert end(5) == PartitionEpochEnd(0, 5, 5)
    assert end(6) == PartitionEpochEnd(0, 5, 5)
    assert end(8) == PartitionEpochEnd(0, 8, 6)
    assert end(9) == PartitionEpochEnd(0, -1, -1)


def test_records_before_an_offset_can_be_deleted(led: Replica) -> None:
    deleted = delete(led, 3)
    assert (deleted.error_code, deleted.required_low_watermark) == (0, 3)
    assert led.row().log_start_offset == 3


def test_records_can_be_deleted_up_to_the_high_watermark_only(led: Replica) -> None:
    assert delete(led, 6).error_code == ErrorCode.offset_out_of_range
    assert delete(led, -2).error_code == ErrorCode.offset_out_of_range
    assert delete(led, -1).required_low_watermark == 5
    assert led.row().log_start_offset == 5


def test_followers_hear_of_deleted_records_at_once_and_move_the_low_watermark(
    led: Replica,
) -> None:
    partition = led.manager.get(TOPIC, 0)
    parked = led.park(at(partition, 5, last=5), broker=1)
    _ = led.notices
    assert delete(led, 3).low_watermark == 0
    assert only(parked).log_start_offset == 3
    moved = msgspec.structs.replace(at(partition, 5, last=5), log_start_offset=3)
    led.pull(moved, broker=1)
    assert led.row().low_watermark == 3


def test_a_compacted_topic_keeps_its_records(broker: Replica) -> None:
    broker.lead(isr=(0,), replicas=(0,), cleanup_policy=frozenset({"compact"}))
    assert delete(broker, 0).error_code == ErrorCode.policy_violation


def test_all_logs_can_be_described(led: Replica) -> None:
    (description,) = LogReads(led.manager).describe_logs().logs
    assert description.size_bytes == led.manager.get(TOPIC, 0).log.size_bytes
    assert description.offset_lag == 0
