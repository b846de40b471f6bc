"""How logs shrink: truncation, leader epochs, deleted records, retention."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mobula.protocol.errors import ErrorCode, KafkaError
from mobula.storage.epochs import LeaderEpochs
from mobula.storage.log import Log, LogPosition
from mobula.storage.records import NewRecord
from tests.unit.storage.support import (
    NOW_MS,
    append,
    batch,
    config,
    contents,
    fill,
    indexes,
    open_log,
    records,
    reopen_cleanly,
    values,
)

SMALL = config(segment_bytes=2000, index_interval_bytes=300)


def _names(log: Log, suffix: str) -> list[str]:
    return sorted(name for name in os.listdir(log.directory) if name.endswith(suffix))


# Truncation.


@pytest.mark.parametrize("offset", [1, 2, 13, 14, 15, 30, 57, 58, 59])
def test_a_truncated_log_is_as_if_the_rest_had_never_come(tmp_path: Path, offset: int) -> None:
    log, shorter = open_log(tmp_path / "log", SMALL), open_log(tmp_path / "shorter", SMALL)
    fill(log, 30)
    kept = offset // 2
    fill(shorter, kept)
    assert log.truncate_to(offset)
    assert (log.log_end.offset, log.generation) == (2 * kept, 1)
    assert contents(log) == contents(shorter)
    assert log.position_of(log.log_end.offset) == log.log_end
    for each in (log, shorter):
        fill(each, 12, epoch=3, at_ms=NOW_MS + kept)
        each.close()
    assert contents(log) == contents(shorter)
    assert indexes(log) == indexes(shorter) or log.segment_bases != shorter.segment_bases
    again = open_log(tmp_path / "log", SMALL, clean=True, recovery_point=2 * kept + 24)
    assert again.log_end == log.log_end
    assert [record.offset for record in records(again)] == list(range(2 * kept + 24))


def test_truncating_at_or_after_the_end_does_nothing(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    fill(log, 3)
    assert not log.truncate_to(6)
    assert not log.truncate_to(99)
    assert (log.log_end.offset, log.generation) == (6, 0)


def test_truncating_drops_an_epoch_that_began_at_the_end(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    fill(log, 3, epoch=1)
    log.assign_epoch(2, 6)
    assert not log.truncate_to(6)
    assert log.latest_epoch == 1


def test_truncating_to_the_begin_or_before_it_empties_the_log(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL)
    fill(log, 30, epoch=1)
    assert log.truncate_to(0)
    assert (log.log_end, log.log_start_offset) == (LogPosition(0, 0, 0), 0)
    assert (log.latest_epoch, log.size_bytes, log.generation) == (-1, 0, 1)
    assert append(log, epoch=1).base_offset == 0


def test_a_log_starts_over_at_any_offset(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL)
    fill(log, 30, epoch=1)
    log.truncate_fully_and_start_at(1000)
    assert (log.log_end, log.log_start_offset) == (LogPosition(1000, 1000, 0), 1000)
    assert log.segment_bases == [1000]
    assert append(log, epoch=2).base_offset == 1000
    again = reopen_cleanly(log)
    assert (again.log_end.offset, again.log_start_offset, again.latest_epoch) == (1001, 1000, 2)


def test_a_truncated_log_lowers_its_recovery_point(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL)
    fill(log, 30)
    log.flush()
    assert log.recovery_point == 60
    log.truncate_to(31)
    assert log.recovery_point == 30


def test_positions_after_the_cut_are_forgotten(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    fill(log, 3)
    cut = log.log_end
    fill(log, 3, size=50)
    log.truncate_to(6)
    with pytest.raises(KafkaError):
        log.position_of(8)
    fill(log, 3, size=77)
    assert log.position_of(6) == cut
    assert log.position_of(8).position > cut.position
    assert [record.offset for record in records(log)] == list(range(12))


def test_who_reads_a_segment_that_truncation_removes_can_read_on(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL)
    fill(log, 30)
    last = log.segment_path(log.segment_bases[-1])
    with last.open("rb") as file:
        log.truncate_to(5)
        assert not last.exists()
        assert file.read()
    log.apply_retention(NOW_MS, 0)
    log.apply_retention(NOW_MS + 60_000, 0)
    assert _names(log, ".deleted") == []


# Epochs.


def test_an_epochs_end_is_where_the_next_one_begins(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    assert log.end_offset_for_epoch(0) == (-1, -1)
    fill(log, 5, epoch=2)
    fill(log, 5, epoch=4)
    log.assign_epoch(7, 20)
    assert log.end_offset_for_epoch(-1) == (-1, -1)
    assert log.end_offset_for_epoch(-2) == (-2, 0)
    assert log.end_offset_for_epoch(0) == (0, 0)
    assert log.end_offset_for_epoch(2) == (2, 10)
    assert log.end_offset_for_epoch(3) == (2, 10)
    assert log.end_offset_for_epoch(4) == (4, 20)
    assert log.end_offset_for_epoch(6) == (4, 20)
    assert log.end_offset_for_epoch(7) == (7, 20)
    assert log.end_offset_for_epoch(8) == (-1, -1)


def test_epochs_survive_and_are_cut_with_the_log(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for epoch in (1, 3, 5):
        fill(log, 2, epoch=epoch)
    log = reopen_cleanly(log)
    assert log.end_offset_for_epoch(3) == (3, 8)
    log.truncate_to(8)
    assert log.latest_epoch == 3
    log.truncate_to(6)
    assert log.end_offset_for_epoch(3) == (3, 6)
    assert (log.directory / "leader-epoch-checkpoint").read_text() == "0\n2\n1 0\n3 4\n"


def test_the_epoch_that_covers_the_log_start_starts_there(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for epoch in (1, 3, 5):
        fill(log, 2, epoch=epoch)
    log.advance_log_start(6)
    assert (log.directory / "leader-epoch-checkpoint").read_text() == "0\n2\n3 6\n5 8\n"
    assert log.end_offset_for_epoch(1) == (1, 6)


def test_an_epoch_assigned_twice_is_written_once(tmp_path: Path) -> None:
    epochs = LeaderEpochs(tmp_path)
    assert epochs.assign(3, 10)
    assert not epochs.assign(3, 10)
    assert not epochs.assign(3, 11)
    assert epochs.assign(5, 10)
    assert epochs.entries == [(5, 10)]
    assert epochs.assign(6, 4)
    assert epochs.entries == [(6, 4)]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 30)), max_size=12))
def test_epochs_and_their_starts_always_grow(
    tmp_path_factory: pytest.TempPathFactory, assigned: list[tuple[int, int]]
) -> None:
    directory = tmp_path_factory.mktemp("epochs")
    epochs = LeaderEpochs(directory)
    for epoch, start in assigned:
        epochs.assign(epoch, start)
        entries = epochs.entries
        assert entries == sorted(set(entries))
        assert len({start for _, start in entries}) == len(entries)
        assert epochs.latest == entries[-1][0]
        assert LeaderEpochs.load(directory).entries == entries


# The log's start.


def test_the_log_start_moves_forward_only_and_not_past_the_end(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    fill(log, 3)
    assert log.advance_log_start(3)
    assert not log.advance_log_start(3)
    assert not log.advance_log_start(1)
    assert log.log_start_offset == 3
    with pytest.raises(KafkaError) as refused:
        log.advance_log_start(7)
    assert refused.value.code == ErrorCode.offset_out_of_range
    assert log.advance_log_start(6)


# Retention.


def test_segments_wholly_before_the_log_start_go(tmp_path: Path) -> None:
    log = open_log(tmp_path, config(segment_bytes=2000, retention_ms=-1))
    fill(log, 30)
    bases = log.segment_bases
    log.advance_log_start(bases[2] + 1)
    assert log.apply_retention(NOW_MS, 60) == 2
    assert log.segment_bases == bases[2:]
    assert log.log_start_offset == bases[2] + 1
    assert log.apply_retention(NOW_MS, 60) == 0


def test_old_segments_go_by_their_largest_timestamp(tmp_path: Path) -> None:
    log = open_log(tmp_path, config(segment_bytes=2000, retention_ms=1000))
    fill(log, 30)
    bases = log.segment_bases
    newest_of_first = NOW_MS + (bases[1] // 2 - 1) + 1
    assert log.apply_retention(newest_of_first + 1000, 60) == 0
    assert log.apply_retention(newest_of_first + 1001, 60) == 1
    assert (log.segment_bases, log.log_start_offset) == (bases[1:], bases[1])


def test_age_is_known_after_a_restart_without_reading_the_log(tmp_path: Path) -> None:
    log = open_log(tmp_path, config(segment_bytes=2000, retention_ms=1000))
    fill(log, 30)
    log = reopen_cleanly(log)
    assert log.apply_retention(NOW_MS + 1100, 60) == 5
    assert (log.segment_bases, log.log_start_offset, log.log_end) == (
        [60],
        60,
        LogPosition(60, 60, 0),
    )
    assert append(log).base_offset == 60


def test_records_without_time_are_as_old_as_their_file(tmp_path: Path) -> None:
    log = open_log(tmp_path, config(segment_bytes=200, retention_ms=1000))
    for _ in range(4):
        append(log, batch([NewRecord(-1, b"k", b"v" * 100)]))
    for base in log.segment_bases[:2]:
        os.utime(log.segment_path(base), (1, NOW_MS / 1000))
    for base in log.segment_bases[2:]:
        os.utime(log.segment_path(base), (1, NOW_MS / 1000 + 500))
    assert log.apply_retention(NOW_MS + 1002, 4) == 2


def test_the_largest_logs_shrink_to_their_limit_by_whole_segments(tmp_path: Path) -> None:
    log = open_log(tmp_path, config(segment_bytes=2000, retention_ms=-1, retention_bytes=4500))
    fill(log, 30)
    sizes = [log.segment_path(base).stat().st_size for base in log.segment_bases]
    deleted = log.apply_retention(NOW_MS, 60)
    assert deleted > 0
    assert log.size_bytes == sum(sizes[deleted:]) >= 4500
    assert log.size_bytes - sizes[deleted] < 4500


def test_nothing_above_the_high_watermark_goes(tmp_path: Path) -> None:
    log = open_log(tmp_path, config(segment_bytes=2000, retention_ms=0))
    fill(log, 30)
    bases = log.segment_bases
    assert log.apply_retention(NOW_MS + 10**6, bases[2] - 1) == 1
    assert log.segment_bases == bases[1:]
    assert log.apply_retention(NOW_MS + 10**6, 59) == 3
    assert log.segment_bases == bases[4:]
    assert log.apply_retention(NOW_MS + 10**6, 60) == 1
    assert log.segment_bases == [60]
    assert log.apply_retention(NOW_MS + 10**6, 60) == 0


def test_a_compacted_topic_keeps_its_segments(tmp_path: Path) -> None:
    log = open_log(
        tmp_path,
        config(segment_bytes=2000, retention_ms=0, cleanup_policy=frozenset({"compact"})),
    )
    fill(log, 30)
    assert log.apply_retention(NOW_MS + 10**9, 60) == 0


def test_deleted_files_stay_for_the_delay_and_then_go(tmp_path: Path) -> None:
    log = open_log(tmp_path, config(segment_bytes=2000, retention_ms=0))
    fill(log, 30)
    first = log.segment_path(0)
    with first.open("rb") as file:
        log.apply_retention(NOW_MS + 1000, 20)
        assert not first.exists()
        gone = _names(log, ".deleted")
        assert "00000000000000000000.log.deleted" in gone
        log.apply_retention(NOW_MS + 1001, 20)
        log.apply_retention(NOW_MS + 61_000, 20)
        assert _names(log, ".deleted") == gone
        assert file.read()
    log.apply_retention(NOW_MS + 61_001, 20)
    assert _names(log, ".deleted") == []


def test_without_a_delay_deleted_files_go_at_the_next_look(tmp_path: Path) -> None:
    log = open_log(tmp_path, config(segment_bytes=2000, retention_ms=0, file_delete_delay_ms=0))
    fill(log, 30)
    log.apply_retention(NOW_MS + 1000, 20)
    log.apply_retention(NOW_MS + 1000, 20)
    assert _names(log, ".deleted") == []


def test_retention_leaves_the_log_usable_after_a_crash(tmp_path: Path) -> None:
    log = open_log(tmp_path, config(segment_bytes=2000, retention_ms=50))
    fill(log, 30, epoch=1)
    log.apply_retention(NOW_MS + 71, 60)
    start, left = log.log_start_offset, contents(log)
    assert start > 0
    log.release_files()
    again = open_log(tmp_path, log.config)
    assert (again.log_start_offset, again.log_end.offset) == (start, 60)
    assert contents(again) == left
    assert again.offset_for_timestamp(0, 60) is not None
    append(again, batch(values(b"more")), epoch=1)
