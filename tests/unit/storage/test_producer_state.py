"""Idempotent producers: what is a duplicate, what a gap, what survives a restart."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mobula.protocol.errors import ErrorCode, KafkaError
from mobula.storage.batch import parse_header
from mobula.storage.log import ORIGIN_COORDINATOR, Log
from mobula.storage.producer_state import (
    ProducedBatch,
    ProducerEntry,
    decode_snapshot,
    encode_snapshot,
)
from tests.unit.storage.support import (
    NOW_MS,
    append,
    batch,
    config,
    fill,
    open_log,
    reopen_cleanly,
    values,
)

LARGEST = 2**31 - 1


def _send(
    log: Log, sequence: int, *, count: int = 1, epoch: int = 0, producer: int = 7
) -> tuple[int, int, bool]:
    data = batch(values(*[b"v"] * count), producer=(producer, epoch, sequence))
    staged = append(log, data)
    return staged.base_offset, staged.last_offset, staged.duplicate


def _refusal(log: Log, sequence: int, *, count: int = 1, epoch: int = 0) -> ErrorCode:
    with pytest.raises(KafkaError) as refused:
        _send(log, sequence, count=count, epoch=epoch)
    return refused.value.code


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return open_log(tmp_path)


def test_a_batch_sent_again_is_answered_with_the_offsets_it_has(log: Log) -> None:
    assert _send(log, 0, count=3) == (0, 2, False)
    assert _send(log, 3, count=2) == (3, 4, False)
    assert _send(log, 0, count=3) == (0, 2, True)
    assert _send(log, 3, count=2) == (3, 4, True)
    assert log.log_end.offset == 5


def test_a_duplicate_of_a_batch_that_is_only_staged_is_one_too(log: Log) -> None:
    data = batch(producer=(7, 0, 0))
    header = parse_header(data)
    first = log.stage(data, header, leader_epoch=0, now_ms=NOW_MS)
    again = log.stage(batch(producer=(7, 0, 0)), header, leader_epoch=0, now_ms=NOW_MS)
    assert (first.duplicate, again.duplicate) == (False, True)
    assert first[:2] == again[:2]
    assert log.flush_staged().offset == 1


def test_the_last_five_batches_are_remembered_and_no_more(log: Log) -> None:
    for sequence in range(6):
        _send(log, sequence)
    for sequence in range(1, 6):
        assert _send(log, sequence) == (sequence, sequence, True)
    assert _refusal(log, 0) == ErrorCode.out_of_order_sequence_number
    assert log.log_end.offset == 6


@pytest.mark.parametrize(("sequence", "count"), [(2, 1), (5, 1), (0, 3), (1, 2), (3, 5)])
def test_a_gap_or_an_overlap_is_out_of_order(log: Log, sequence: int, count: int) -> None:
    _send(log, 0, count=2)
    _send(log, 2, count=1)
    if (sequence, count) == (3, 5):
        assert _send(log, sequence, count=count)[2] is False
    elif (sequence, count) == (2, 1):
        assert _send(log, sequence, count=count)[2] is True
    else:
        assert _refusal(log, sequence, count=count) == ErrorCode.out_of_order_sequence_number


def test_a_refused_batch_changes_nothing(log: Log) -> None:
    _send(log, 0)
    assert _refusal(log, 9) == ErrorCode.out_of_order_sequence_number
    assert _send(log, 1) == (1, 1, False)


def test_an_older_epoch_is_refused_and_a_newer_one_begins_at_zero(log: Log) -> None:
    _send(log, 0, epoch=1)
    assert _refusal(log, 1, epoch=0) == ErrorCode.invalid_producer_epoch
    assert _refusal(log, 1, epoch=2) == ErrorCode.out_of_order_sequence_number
    assert _send(log, 0, epoch=2) == (1, 1, False)
    assert _refusal(log, 1, epoch=1) == ErrorCode.invalid_producer_epoch
    assert _send(log, 0, epoch=2) == (1, 1, True)


def test_a_producer_nobody_knows_may_go_on_where_it_was(log: Log) -> None:
    assert _send(log, 1234) == (0, 0, False)
    assert _send(log, 1235) == (1, 1, False)


def test_sequences_wrap(log: Log) -> None:
    _send(log, LARGEST - 1, count=2)
    assert _send(log, 0) == (2, 2, False)
    wrapped = open_log(log.directory.parent / "wrapped")
    assert _send(wrapped, LARGEST, count=3) == (0, 2, False)
    assert _send(wrapped, LARGEST, count=3) == (0, 2, True)
    assert _send(wrapped, 2) == (3, 3, False)


def test_producers_do_not_disturb_each_other(log: Log) -> None:
    for sequence in range(3):
        for producer in (1, 2, 3):
            assert _send(log, sequence, producer=producer)[2] is False
    assert log.log_end.offset == 9


def test_a_coordinator_is_not_asked_for_sequences(log: Log) -> None:
    _send(log, 0)
    data = batch(producer=(7, 0, 50))
    staged = log.stage(
        data, parse_header(data), leader_epoch=0, now_ms=NOW_MS, origin=ORIGIN_COORDINATOR
    )
    assert staged.base_offset == 1


def test_duplicates_tell_the_append_time_they_got(tmp_path: Path) -> None:
    log = open_log(tmp_path, config(message_timestamp_type="LogAppendTime"))
    first = append(log, batch(producer=(1, 0, 0)), now_ms=NOW_MS + 1)
    again = append(log, batch(producer=(1, 0, 0)), now_ms=NOW_MS + 50)
    assert first.log_append_time_ms == again.log_append_time_ms == NOW_MS + 1


@pytest.mark.parametrize("clean", [True, False])
def test_the_last_batch_of_each_producer_is_known_after_a_restart(
    tmp_path: Path, clean: bool
) -> None:
    log = open_log(tmp_path, config(segment_bytes=400))
    for sequence in range(20):
        _send(log, sequence)
    if clean:
        log = reopen_cleanly(log)
    else:
        log.release_files()
        log = open_log(tmp_path, log.config)
    assert _send(log, 19) == (19, 19, True)
    assert _refusal(log, 25) == ErrorCode.out_of_order_sequence_number
    assert _send(log, 20) == (20, 20, False)


def test_snapshots_are_taken_at_rolls_and_at_the_end_and_the_last_three_kept(
    tmp_path: Path,
) -> None:
    log = open_log(tmp_path, config(segment_bytes=500))
    for sequence in range(20):
        _send(log, sequence)
    bases = log.segment_bases
    log.close()
    taken = sorted(name for name in os.listdir(tmp_path) if name.endswith(".snapshot"))
    assert taken == [f"{offset:020d}.snapshot" for offset in (*bases[-2:], 20)]
    entries = decode_snapshot((tmp_path / taken[-1]).read_bytes())
    assert entries[7].batches == (ProducedBatch(19, 19, 19, 19, NOW_MS),)


def test_a_damaged_snapshot_is_replaced_by_reading_the_log(tmp_path: Path) -> None:
    log = open_log(tmp_path, config(segment_bytes=500))
    for sequence in range(20):
        _send(log, sequence)
    log.close()
    for path in tmp_path.glob("*.snapshot"):
        path.write_bytes(path.read_bytes()[:-1] + b"?")
    again = open_log(tmp_path, log.config, clean=True, recovery_point=20)
    assert _send(again, 19) == (19, 19, True)


def test_a_truncated_log_forgets_the_batches_that_went(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for sequence in range(10):
        _send(log, sequence)
    log.truncate_to(6)
    assert _refusal(log, 8) == ErrorCode.out_of_order_sequence_number
    assert _send(log, 5) == (5, 5, True)
    assert _send(log, 6) == (6, 6, False)


def test_silent_producers_expire_and_may_come_back_with_any_sequence(tmp_path: Path) -> None:
    log = open_log(tmp_path, config(producer_id_expiration_ms=1000))
    _send(log, 0)
    log.apply_retention(NOW_MS + 999, 0)
    assert _refusal(log, 5) == ErrorCode.out_of_order_sequence_number
    log.apply_retention(NOW_MS + 1000, 0)
    assert _send(log, 5) == (1, 1, False)


def test_followers_know_producers_from_the_batches_they_copy(tmp_path: Path) -> None:
    leader, follower = open_log(tmp_path / "leader"), open_log(tmp_path / "follower")
    for sequence in range(3):
        _send(leader, sequence)
    follower.append_as_follower(memoryview(leader.segment_path(0).read_bytes()))
    assert _send(follower, 1) == (1, 1, True)
    assert _send(follower, 3) == (3, 3, False)


def test_logs_without_producers_have_empty_snapshots(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    fill(log, 1)
    log.close()
    (path,) = tmp_path.glob("*.snapshot")
    assert decode_snapshot(path.read_bytes()) == {}


@given(
    st.dictionaries(
        st.integers(0, 2**62),
        st.builds(
            lambda epoch, last, delta, offset, time, coordinator, txn: ProducerEntry(
                epoch,
                time,
                (ProducedBatch((last - delta) & LARGEST, last, offset, offset + delta, time),),
                coordinator,
                txn,
            ),
            st.integers(0, 2**15 - 1),
            st.integers(0, LARGEST),
            st.integers(0, 10**6),
            st.integers(0, 2**60),
            st.integers(-1, 2**60),
            st.integers(-1, LARGEST),
            st.integers(-1, 2**60),
        ),
        max_size=20,
    )
)
def test_snapshots_come_back_as_they_were_taken(entries: dict[int, ProducerEntry]) -> None:
    assert decode_snapshot(encode_snapshot(entries)) == entries


def test_every_damaged_byte_of_a_snapshot_is_noticed() -> None:
    entry = ProducerEntry(1, 5, (ProducedBatch(3, 4, 10, 11, 5),))
    data = encode_snapshot({9: entry})
    assert len(data) == 2 + 4 + 4 + 46
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 0x40
        with pytest.raises(ValueError, match="snapshot"):
            decode_snapshot(bytes(damaged))
    for length in range(len(data)):
        with pytest.raises(ValueError, match="snapshot"):
            decode_snapshot(data[:length])
