"""From offsets to files: positions, ranges for pulls, and offsets by time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mobula.protocol.errors import ErrorCode, KafkaError
from mobula.storage.batch import iter_headers, parse_header
from mobula.storage.log import Log, LogPosition, LogRange
from mobula.storage.records import NewRecord
from tests.unit.storage.support import (
    NOW_MS,
    append,
    batch,
    config,
    fill,
    open_log,
    records,
    reopen_cleanly,
    values,
)

SMALL = config(segment_bytes=2000, index_interval_bytes=300)


@pytest.fixture(params=["as written", "reopened"])
def log(tmp_path: Path, request: pytest.FixtureRequest) -> Log:
    """Sixty records, two a batch, seven batches a segment."""
    log = open_log(tmp_path, SMALL)
    fill(log, 30)
    return log if request.param == "as written" else reopen_cleanly(log)


def _boundaries(log: Log) -> dict[int, LogPosition]:
    """Every offset's batch, found by reading all."""
    found = {}
    for base in log.segment_bases:
        for at, header in iter_headers(log.segment_path(base).read_bytes()):
            for offset in range(header.base_offset, header.next_offset):
                found[offset] = LogPosition(offset, base, at)
    return found


def test_every_offset_is_found_in_its_batch(log: Log) -> None:
    expected = _boundaries(log)
    assert len(expected) == 60
    for offset in (*range(60), *reversed(range(60))):
        assert log.position_of(offset) == expected[offset]
    assert log.position_of(60) == log.log_end


def test_offsets_outside_of_the_log_are_out_of_range(log: Log) -> None:
    for offset in (-1, 61, 10**9):
        with pytest.raises(KafkaError) as refused:
            log.position_of(offset)
        assert refused.value.code == ErrorCode.offset_out_of_range
        with pytest.raises(KafkaError):
            log.ranges_from(offset, 100)
    log.advance_log_start(10)
    with pytest.raises(KafkaError):
        log.ranges_from(9, 100)
    assert log.ranges_from(10, 1)[1] == 12


@pytest.mark.parametrize("max_bytes", [0, 1, 285, 286, 600, 1999, 2000, 5000, 1 << 20])
def test_ranges_are_whole_batches_up_to_the_limit_and_at_least_one(
    log: Log, max_bytes: int
) -> None:
    for start in range(60):
        ranges, next_offset = log.ranges_from(start, max_bytes)
        offsets = []
        for found in ranges:
            headers = list(iter_headers(log.read(found)))
            assert sum(header.size_bytes for _, header in headers) == found.length
            assert found.segment_base <= headers[0][1].base_offset
            offsets += [header.base_offset for _, header in headers]
        assert offsets[0] == start // 2 * 2
        assert offsets == list(range(offsets[0], next_offset, 2))
        length = sum(found.length for found in ranges)
        assert length <= max_bytes or len(offsets) == 1
        if next_offset < 60:
            # Within an index interval of what would have fitted.
            assert length + 285 + 285 + 300 > max_bytes
    assert log.ranges_from(60, max_bytes) == ([], 60)


def test_the_usual_pull_of_a_follower_reads_no_file(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(log)
    seen = log.log_end
    append(log)
    append(log)
    monkeypatch.setattr(os, "pread", None)
    monkeypatch.setattr(os, "open", None)
    ranges, next_offset = log.ranges_from(seen.offset, 1 << 20)
    assert next_offset == log.log_end.offset
    assert ranges == [LogRange(seen.segment, seen.position, log.log_end.position - seen.position)]
    assert log.position_of(seen.offset) == seen


def test_ranges_end_at_the_log_end_while_more_is_staged(log: Log) -> None:
    data = batch(values(b"x" * 400))
    log.stage(data, parse_header(data), leader_epoch=0, now_ms=NOW_MS)
    for start in range(60):
        assert log.ranges_from(start, 1 << 20)[1] == 60
    assert log.flush_staged().offset == 61


def test_many_boundaries_are_not_all_remembered(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for _ in range(5000):
        append(log)
    assert log.position_of(3).offset == 3
    assert len(log._positions._known) <= 2048


@pytest.mark.parametrize("codec", range(5))
def test_the_first_record_not_older_is_found_inside_its_batch(tmp_path: Path, codec: int) -> None:
    log = open_log(tmp_path, config(segment_bytes=1500, index_interval_bytes=200))
    for at in range(40):
        append(
            log,
            batch(values(*[b"x" * 20] * 5, at_ms=NOW_MS + at * 100, step_ms=10), codec=codec),
            epoch=at // 10,
        )
    assert len(log.segment_bases) > 2
    for at in (0, 1, 7, 19, 39):
        for index in range(5):
            for early in (0, 3):
                found = log.offset_for_timestamp(NOW_MS + at * 100 + index * 10 - early, 200)
                assert found == (NOW_MS + at * 100 + index * 10, at * 5 + index, at // 10)
    assert log.offset_for_timestamp(NOW_MS - 10**9, 200) == (NOW_MS, 0, 0)
    assert log.offset_for_timestamp(NOW_MS + 39 * 100 + 41, 200) is None


def test_time_lookup_keeps_to_the_bounds(log: Log) -> None:
    assert log.offset_for_timestamp(NOW_MS + 10, 60) == (NOW_MS + 10, 19, 0)
    assert log.offset_for_timestamp(NOW_MS + 10, 19) is None
    assert log.offset_for_timestamp(NOW_MS + 10, 20) is not None
    log.advance_log_start(21)
    assert log.offset_for_timestamp(NOW_MS + 10, 60) == (NOW_MS + 11, 21, 0)
    assert log.offset_for_timestamp(0, 60) == (NOW_MS + 11, 21, 0)
    assert log.offset_for_timestamp(0, 21) is None


def test_the_largest_timestamp_is_the_first_of_its_kind(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL)
    assert log.max_timestamp(0) is None
    for at_ms in (5, 90, 30, 90, 40, 7, 2):
        append(log, batch(values(b"x" * 300, b"y", at_ms=NOW_MS + at_ms, step_ms=0)))
    assert log.max_timestamp(14) == (NOW_MS + 90, 2, 0)
    assert log.max_timestamp(2) == (NOW_MS + 5, 0, 0)
    assert log.max_timestamp(3) == (NOW_MS + 90, 2, 0)
    log.advance_log_start(8)
    assert log.max_timestamp(14) == (NOW_MS + 40, 8, 0)


def test_the_largest_timestamp_may_stand_anywhere_in_its_batch(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for at_ms in (1, 50, 3):
        append(log, batch([NewRecord(NOW_MS, b"", b""), NewRecord(NOW_MS + at_ms, b"", b"")]))
    assert log.max_timestamp(6) == (NOW_MS + 50, 3, 0)


def test_records_without_time_are_not_found_by_time(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, batch([NewRecord(-1, b"k", b"v")]))
    assert log.offset_for_timestamp(0, 1) is None
    log.close()
    assert log.directory.joinpath("00000000000000000000.timeindex").stat().st_size == 0


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    batches=st.lists(st.lists(st.integers(0, 50), min_size=1, max_size=4), min_size=1, max_size=25),
    wanted=st.integers(0, 51),
    bounds=st.tuples(st.integers(0, 30), st.integers(0, 100)),
    clean=st.booleans(),
)
def test_time_lookup_agrees_with_reading_everything(
    tmp_path_factory: pytest.TempPathFactory,
    batches: list[list[int]],
    wanted: int,
    bounds: tuple[int, int],
    clean: bool,
) -> None:
    log = open_log(
        tmp_path_factory.mktemp("log"), config(segment_bytes=600, index_interval_bytes=100)
    )
    for times in batches:
        append(log, batch([NewRecord(NOW_MS + at, b"k", b"value") for at in times]))
    if clean:
        log = reopen_cleanly(log)
    start, upto = (min(offset, log.log_end.offset) for offset in bounds)
    log.advance_log_start(start)
    inside = [record for record in records(log) if start <= record.offset < upto]
    later = [record for record in inside if record.timestamp >= NOW_MS + wanted]
    found = log.offset_for_timestamp(NOW_MS + wanted, upto)
    assert (found and found[:2]) == ((later[0].timestamp, later[0].offset) if later else None)
    largest = max(inside, key=lambda record: (record.timestamp, -record.offset), default=None)
    top = log.max_timestamp(upto)
    assert (top and top[:2]) == (largest and (largest.timestamp, largest.offset))
