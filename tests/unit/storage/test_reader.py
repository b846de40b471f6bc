"""Reading a partition's files from another process than the one that writes them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mobula.storage.batch import iter_headers, parse_header
from mobula.storage.descriptors import Descriptors
from mobula.storage.log import Log, LogPosition
from mobula.storage.reader import PartitionReader, SegmentGoneError
from tests.unit.storage.support import (
    NOW_MS,
    append,
    batch,
    config,
    contents,
    fill,
    open_log,
    reopen_cleanly,
    values,
)

SMALL = config(segment_bytes=2000, index_interval_bytes=300, retention_ms=0)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    log = open_log(tmp_path, SMALL)
    fill(log, 30)
    return log


@pytest.fixture
def held() -> Descriptors:
    return Descriptors(8)


@pytest.fixture
def reader(log: Log, held: Descriptors) -> PartitionReader:
    return PartitionReader(log.directory, held)


def _read_all(reader: PartitionReader, start: int, upto: LogPosition, max_bytes: int) -> bytes:
    """As a consumer does: whole batches, then on from the next offset."""
    offset, got = start, b""
    while offset < upto.offset:
        at = reader.locate(offset, upto)
        assert at is not None
        data = bytes(reader.read_batches(at, upto, max_bytes))
        whole = list(iter_headers(data))
        assert whole, "at least one whole batch"
        end = whole[-1][0] + whole[-1][1].size_bytes
        got += data[:end]
        offset = whole[-1][1].next_offset
    return got


def test_every_offset_is_found_where_the_writer_says_it_is(
    log: Log, reader: PartitionReader
) -> None:
    upto = log.log_end
    for offset in (*range(60), *reversed(range(60))):
        assert reader.locate(offset, upto) == log.position_of(offset)
    assert reader.locate(60, upto) == upto
    assert reader.locate(61, upto) is None


@pytest.mark.parametrize("max_bytes", [1, 61, 200, 400, 1500, 1 << 20])
@pytest.mark.parametrize("start", [0, 1, 14, 33, 59])
def test_a_consumer_reads_everything_in_order(
    log: Log, reader: PartitionReader, max_bytes: int, start: int
) -> None:
    whole = contents(log)
    got = _read_all(reader, start, log.log_end, max_bytes)
    assert whole.endswith(got)
    assert parse_header(got).base_offset == start // 2 * 2


def test_nothing_past_the_given_end_is_read(log: Log, reader: PartitionReader) -> None:
    for offset in range(2, 60, 2):
        upto = log.position_of(offset)
        got = _read_all(reader, 0, upto, 1 << 20)
        *_, (_, last) = iter_headers(got)
        assert last.next_offset == offset
        assert reader.locate(offset, upto) == upto
        reader.invalidate()


def test_new_batches_and_segments_are_found_as_the_end_moves(
    log: Log, reader: PartitionReader
) -> None:
    _read_all(reader, 0, log.log_end, 1 << 20)
    for _ in range(20):
        start = log.log_end.offset
        assert reader.locate(start, log.log_end) == log.log_end
        fill(log, 3)
        got = _read_all(reader, start, log.log_end, 1 << 20)
        assert contents(log).endswith(got)
        assert parse_header(got).base_offset == start


def test_a_consumer_at_the_end_goes_on_without_touching_a_file(
    log: Log, reader: PartitionReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = log.log_end
    reader.locate(seen.offset, seen)
    append(log)
    monkeypatch.setattr(os, "open", None)
    monkeypatch.setattr(os, "pread", None)
    monkeypatch.setattr(os, "listdir", None)
    assert reader.locate(seen.offset, log.log_end) == seen


def test_finding_an_offset_reads_little_more_than_an_index_interval(
    tmp_path: Path, held: Descriptors, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(tmp_path / "large")
    fill(log, 3000)
    reader = PartitionReader(log.directory, held)
    reader.locate(5999, log.log_end)
    sizes: list[int] = []
    single = 0
    pread = os.pread

    def counting(fd: int, length: int, position: int) -> bytes:
        sizes.append(length)
        return pread(fd, length, position)

    monkeypatch.setattr(os, "pread", counting)
    for offset in range(0, 5900, 37):
        expected = log.position_of(offset)
        sizes.clear()
        assert reader.locate(offset, log.log_end) == expected
        assert sizes in ([8192], [8192, 8192])
        single += len(sizes) == 1
    assert single > 150


def test_a_first_batch_larger_than_the_limit_comes_whole(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, batch(values(b"x" * 50_000)))
    append(log)
    reader = PartitionReader(tmp_path)
    at = reader.locate(0, log.log_end)
    assert at is not None
    data = reader.read_batches(at, log.log_end, 100)
    assert len(data) == parse_header(data).size_bytes
    assert len(reader.read_batches(at, log.log_end, 100, at_least_one=False)) == 100
    reader.invalidate()


def test_a_large_batch_that_would_be_cut_is_left_for_the_next_read(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for _ in range(4):
        append(log, batch(values(b"x" * 50_000)))
    reader = PartitionReader(tmp_path)
    at = reader.locate(0, log.log_end)
    assert at is not None
    data = reader.read_batches(at, log.log_end, 120_000)
    (_, _), (second_at, second) = iter_headers(data)
    assert len(data) == second_at + second.size_bytes
    assert reader.locate(2, log.log_end) == LogPosition(2, 0, len(data)) == log.position_of(2)
    assert _read_all(reader, 0, log.log_end, 120_000) == contents(log)
    reader.invalidate()


def test_deleted_segments_are_noticed_and_the_rest_is_read(
    log: Log, reader: PartitionReader
) -> None:
    bases = log.segment_bases
    assert reader.locate(bases[1], log.log_end) is not None
    kept = reader.locate(bases[0], log.log_end)
    assert kept is not None
    reader.invalidate()
    log.apply_retention(NOW_MS + 10**6, bases[2])
    assert reader.locate(0, log.log_end) is None
    assert reader.locate(bases[2], log.log_end) == log.position_of(bases[2])
    with pytest.raises(SegmentGoneError):
        reader.read(kept.segment, 0, 10)
    with pytest.raises(SegmentGoneError):
        reader.read_batches(kept, log.log_end, 10)


def test_a_deleted_segment_is_read_to_its_end_by_who_has_it_open(
    log: Log, reader: PartitionReader
) -> None:
    at = reader.locate(0, log.log_end)
    assert at is not None
    sound = bytes(reader.read_batches(at, log.log_end, 1 << 20))
    log.apply_retention(NOW_MS + 10**6, log.segment_bases[1])
    assert bytes(reader.read_batches(at, log.log_end, 1 << 20)) == sound


def test_a_segment_deleted_behind_a_stale_list_is_looked_up_again(
    log: Log, reader: PartitionReader, held: Descriptors
) -> None:
    bases = log.segment_bases
    reader.locate(bases[-1], log.log_end)
    log.apply_retention(NOW_MS + 10**6, bases[2])
    assert reader.locate(bases[1] + 3, log.log_end) is None
    assert reader.locate(bases[2] + 3, log.log_end) is not None


def test_missing_and_wrong_indexes_only_make_it_slower(log: Log, held: Descriptors) -> None:
    log.close()
    for number, path in enumerate(sorted(log.directory.glob("*.index"))):
        if number % 2:
            path.unlink()
        else:
            path.write_bytes(bytes((7 * at + 3) % 256 for at in range(path.stat().st_size + 5)))
    reader = PartitionReader(log.directory, held)
    expected = PartitionReader(log.directory, held)
    for offset in range(60):
        found = reader.locate(offset, log.log_end)
        assert found is not None
        header = parse_header(reader.read(found.segment, found.position, 61))
        assert header.base_offset == offset // 2 * 2
    expected.invalidate()


def test_few_descriptors_are_kept_and_all_are_given_back(log: Log) -> None:
    held = Descriptors(2)
    readers = [PartitionReader(log.directory, held) for _ in range(3)]
    for reader in readers:
        assert _read_all(reader, 0, log.log_end, 500) == contents(log)
    assert held.holders == 2
    for reader in readers:
        reader.invalidate()
    assert held.holders == 0


def test_a_truncated_log_is_read_anew_after_invalidate(log: Log, reader: PartitionReader) -> None:
    _read_all(reader, 0, log.log_end, 1 << 20)
    log.truncate_to(31)
    fill(log, 9, size=40, epoch=5)
    reader.invalidate()
    assert _read_all(reader, 0, log.log_end, 1 << 20) == contents(log)


def test_a_reopened_log_is_read_by_the_same_reader(log: Log, reader: PartitionReader) -> None:
    _read_all(reader, 0, log.log_end, 700)
    log = reopen_cleanly(log)
    fill(log, 9)
    assert contents(log).endswith(_read_all(reader, 60, log.log_end, 700))


def test_what_is_available_ends_with_the_segment_or_the_given_end(
    log: Log, reader: PartitionReader
) -> None:
    upto = log.log_end
    first = LogPosition(0, 0, 0)
    assert reader.available(first, upto) == log.segment_path(0).stat().st_size
    assert reader.available(LogPosition(upto.offset, upto.segment, 0), upto) == upto.position
