"""What a follower decides from a leader's answer."""

from __future__ import annotations

from typing import Any

from mobula.actors.replica.follower import (
    AwaitMetadata,
    Copy,
    Ignore,
    PartitionFollower,
    Rest,
    StartAt,
    Truncate,
    follower_high_watermark,
)
from mobula.actors.replica.messages import PullAnswer
from mobula.protocol.errors import ErrorCode

TOPIC = bytes(16)


class FakeLog:
    """A log with epochs 1 at 0, 3 at 50, 5 at 80, ending at 100."""

    log_end_offset = 100

    def __init__(self, *entries: tuple[int, int]) -> None:
        self._entries = entries or ((1, 0), (3, 50), (5, 80))

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        known = [each for each, _ in self._entries if each <= epoch]
        if not known:
            return (-1, -1)
        later = [start for each, start in self._entries if each > epoch]
        return known[-1], min(later, default=self.log_end_offset)


def answer(error: ErrorCode = ErrorCode.none, **changes: Any) -> PullAnswer:
    fields: dict[str, Any] = {
        "topic_id": TOPIC,
        "partition": 0,
        "error_code": int(error),
        "leader_epoch": 7,
        "high_watermark": 90,
        "log_start_offset": 0,
    }
    return PullAnswer(**(fields | changes))


FOLLOWER = PartitionFollower(leader_id=1, leader_epoch=7)


def test_an_answer_without_difference_is_copied() -> None:
    assert FOLLOWER.decide(answer(), FakeLog()) == Copy()


def test_a_difference_in_a_shared_epoch_cuts_to_where_the_leader_ended_it() -> None:
    diverged = answer(diverging_epoch=5, diverging_end_offset=93)
    assert FOLLOWER.decide(diverged, FakeLog()) == Truncate(93)


def test_a_leader_that_went_further_in_a_shared_epoch_cuts_to_the_own_end_of_it() -> None:
    diverged = answer(diverging_epoch=3, diverging_end_offset=95)
    assert FOLLOWER.decide(diverged, FakeLog()) == Truncate(80)


def test_an_epoch_that_the_follower_never_saw_cuts_to_the_end_of_the_one_before() -> None:
    diverged = answer(diverging_epoch=4, diverging_end_offset=95)
    assert FOLLOWER.decide(diverged, FakeLog()) == Truncate(80)


def test_an_epoch_older_than_all_of_the_follower_cuts_to_the_leaders_offset() -> None:
    diverged = answer(diverging_epoch=0, diverging_end_offset=20)
    assert FOLLOWER.decide(diverged, FakeLog()) == Truncate(20)


def test_an_own_epoch_without_records_cuts_nothing_but_the_epoch() -> None:
    log = FakeLog((1, 0), (5, 100))
    diverged = answer(diverging_epoch=1, diverging_end_offset=100)
    assert FOLLOWER.decide(diverged, log) == Truncate(100)


def test_a_follower_ahead_of_its_leader_is_cut_to_the_leaders_end() -> None:
    refused = answer(ErrorCode.offset_out_of_range, next_offset=60)
    assert FOLLOWER.decide(refused, FakeLog()) == Truncate(60)


def test_a_follower_behind_its_leaders_start_begins_there_anew() -> None:
    refused = answer(ErrorCode.offset_out_of_range, next_offset=300, log_start_offset=200)
    assert FOLLOWER.decide(refused, FakeLog()) == StartAt(200)


def test_a_leader_that_does_not_know_its_role_yet_is_asked_again_later() -> None:
    for code in (
        ErrorCode.unknown_leader_epoch,
        ErrorCode.not_leader_or_follower,
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.kafka_storage_error,
    ):
        assert isinstance(FOLLOWER.decide(answer(code, leader_epoch=6), FakeLog()), Rest)


def test_a_fenced_follower_waits_for_metadata() -> None:
    fenced = answer(ErrorCode.fenced_leader_epoch, leader_epoch=8)
    assert FOLLOWER.decide(fenced, FakeLog()) == AwaitMetadata()


def test_an_answer_to_an_earlier_epochs_pull_is_ignored() -> None:
    assert FOLLOWER.decide(answer(leader_epoch=6), FakeLog()) == Ignore()
    late = answer(ErrorCode.fenced_leader_epoch, leader_epoch=7)
    assert FOLLOWER.decide(late, FakeLog()) == Ignore()
    late = answer(ErrorCode.offset_out_of_range, leader_epoch=6, next_offset=3)
    assert FOLLOWER.decide(late, FakeLog()) == Ignore()


def test_the_followers_high_watermark_passes_neither_its_log_end_nor_the_leaders() -> None:
    assert follower_high_watermark(10, 90, 100) == 90
    assert follower_high_watermark(10, 90, 50) == 50
    assert follower_high_watermark(70, 60, 100) == 70
