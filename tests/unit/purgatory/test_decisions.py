"""Each case in which a delayed operation may complete, as the reference lists them."""

from __future__ import annotations

from typing import Any

import pytest

from mobula.actors.purgatory.delayed_delete_records import DelayedDeleteRecords, delete_code
from mobula.actors.purgatory.delayed_fetch import COMPLETE, DelayedFetch, fetch_bytes
from mobula.actors.purgatory.delayed_produce import produce_code
from mobula.actors.purgatory.messages import DeletePart, FetchPart, ProducePart, WatchFetch
from mobula.actors.rows import Role
from mobula.protocol.errors import ErrorCode
from tests.unit.purgatory.fakes import TOPIC, FakeReply, leader

PRODUCE = ProducePart(TOPIC, 0, 3, 10)


def fetch_part(**changes: Any) -> FetchPart:
    values: dict[str, Any] = {
        "topic_id": TOPIC,
        "partition": 0,
        "leader_epoch": 3,
        "fetch_offset": 8,
        "segment": 0,
        "position": 800,
        "generation": 1,
        "max_bytes": 1 << 20,
    }
    return FetchPart(**(values | changes))


@pytest.mark.parametrize("absent", [ErrorCode.unknown_topic_or_partition, 6])
def test_produce_case_a_a_replica_that_is_gone_answers_why(absent: int) -> None:
    assert produce_code(PRODUCE, None, absent) == absent


def test_produce_case_b_a_replica_that_lost_leadership_says_so_at_once() -> None:
    row = leader(role=Role.FOLLOWER)
    assert produce_code(PRODUCE, row, 0) == ErrorCode.not_leader_or_follower


def test_produce_case_b_leading_again_in_a_new_epoch_is_not_the_same_leadership() -> None:
    row = leader(leader_epoch=4, high_watermark=50)
    assert produce_code(PRODUCE, row, 0) == ErrorCode.not_leader_or_follower


def test_produce_case_c1_an_offline_log_is_a_storage_error() -> None:
    assert produce_code(PRODUCE, leader(role=Role.OFFLINE), 0) == ErrorCode.kafka_storage_error


def test_produce_case_c2_the_high_watermark_has_reached_the_offset() -> None:
    assert produce_code(PRODUCE, leader(high_watermark=10), 0) == ErrorCode.none
    assert produce_code(PRODUCE, leader(high_watermark=9), 0) is None


def test_produce_reached_with_too_small_an_isr_is_not_enough_replicas_after_append() -> None:
    row = leader(high_watermark=10, in_sync_replicas=1, min_in_sync_replicas=2)
    assert produce_code(PRODUCE, row, 0) == ErrorCode.not_enough_replicas_after_append
    waiting = row._replace(high_watermark=9)
    assert produce_code(PRODUCE, waiting, 0) is None


@pytest.mark.parametrize(
    ("case", "row"),
    [
        ("A, B: leadership lost", leader(role=Role.FOLLOWER)),
        ("C: unknown partition", None),
        ("D: offline log", leader(role=Role.OFFLINE)),
        ("E: fenced epoch", leader(leader_epoch=4)),
        (
            "F: an older segment than the end",
            leader(high_watermark_segment=9, high_watermark_position=10),
        ),
        ("F: past a truncated log", leader(high_watermark=5, log_end_offset=7)),
        ("H: truncated, epochs may diverge", leader(generation=2)),
        ("records deleted under it", leader(log_start_offset=9)),
    ],
)
def test_a_fetch_does_not_wait_in_case(case: str, row: Any) -> None:
    assert fetch_bytes(fetch_part(), row, False) == COMPLETE


def test_fetch_case_g_bytes_are_counted_by_position_within_the_segment() -> None:
    assert fetch_bytes(fetch_part(), leader(), False) == 200
    assert fetch_bytes(fetch_part(max_bytes=50), leader(), False) == 50
    assert fetch_bytes(fetch_part(fetch_offset=10, position=1000), leader(), False) == 0


def test_under_read_committed_only_bytes_below_the_last_stable_offset_count() -> None:
    row = leader(last_stable_offset=9, last_stable_position=900)
    assert fetch_bytes(fetch_part(), row, True) == 100
    assert fetch_bytes(fetch_part(), row, False) == 200


def test_an_offset_at_the_end_waits_although_the_log_rolled() -> None:
    row = leader(high_watermark_segment=0, log_end_segment=10, log_end_position=0)
    part = fetch_part(fetch_offset=10, segment=10, position=0)
    assert fetch_bytes(part, row, False) == 0


def test_an_offset_between_high_watermark_and_log_end_waits() -> None:
    part = fetch_part(fetch_offset=15, segment=-1, position=-1)
    assert fetch_bytes(part, leader(), False) == 0
    assert fetch_bytes(part, leader(high_watermark=16), False) == COMPLETE


def test_a_fetch_completes_when_its_partitions_together_have_enough() -> None:
    parts = [fetch_part(partition=0), fetch_part(partition=1)]
    fetch = DelayedFetch(WatchFetch(500, 250, False, parts), 500, FakeReply())
    assert not fetch.check(0, leader(), 0)
    assert not fetch.check(0, leader(), 0), "the same bytes do not count twice"
    assert fetch.check(1, leader(partition=1), 0)
    assert fetch.outcome().expired is False


def test_delete_records_waits_for_the_low_watermark() -> None:
    part = DeletePart(TOPIC, 0, 5)
    assert delete_code(part, leader(low_watermark=4), 0) is None
    assert delete_code(part, leader(low_watermark=5), 0) == ErrorCode.none
    assert delete_code(part, leader(role=Role.FOLLOWER), 0) == ErrorCode.not_leader_or_follower
    assert delete_code(part, leader(role=Role.OFFLINE), 0) == ErrorCode.kafka_storage_error
    assert delete_code(part, None, 3) == ErrorCode.unknown_topic_or_partition


def test_delete_records_says_the_low_watermark_it_saw() -> None:
    parts = [DeletePart(TOPIC, 0, 5), DeletePart(TOPIC, 1, 5)]
    operation = DelayedDeleteRecords(parts, 100, FakeReply())
    assert not operation.check(0, leader(low_watermark=7), 0)
    operation.expired = True
    done = operation.outcome()
    assert done.error_codes == [ErrorCode.none, ErrorCode.request_timed_out]
    assert done.low_watermarks == [7, -1]
