"""What a leader appends: offsets, time, rolls, and what a topic's settings refuse."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mobula.protocol.errors import ErrorCode, KafkaError
from mobula.storage.batch import parse_header
from mobula.storage.compression import CODEC_NAMES
from mobula.storage.config import LOG_APPEND_TIME
from mobula.storage.errors import RefusedRecordsError
from mobula.storage.log import Log, LogPosition
from mobula.storage.records import NewRecord, iter_records
from tests.unit.storage.support import (
    NOW_MS,
    append,
    batch,
    config,
    contents,
    fill,
    open_log,
    records,
    values,
)


def _code(log: Log, data: memoryview, now_ms: int = NOW_MS) -> ErrorCode:
    before, end = contents(log), log.log_end
    with pytest.raises(KafkaError) as refused:
        append(log, data, now_ms=now_ms)
    log.flush_staged()
    assert (contents(log), log.log_end) == (before, end)
    return refused.value.code


def test_a_new_log_is_an_empty_segment(tmp_path: Path) -> None:
    log = open_log(tmp_path / "topic-0")
    assert log.log_end == LogPosition(0, 0, 0)
    assert (log.log_start_offset, log.recovery, log.latest_epoch) == (0, None, -1)
    assert sorted(os.listdir(log.directory)) == [
        "00000000000000000000.log",
        "partition.metadata",
    ]
    assert (log.directory / "partition.metadata").read_text() == (
        "version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    )


def test_offsets_are_assigned_in_order_and_only_the_header_is_rewritten(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    first, second = batch(values(b"a", b"b", b"c")), batch(values(b"d"))
    before = bytes(second)
    assert append(log, first, epoch=4)[:2] == (0, 2)
    assert append(log, second, epoch=4)[:2] == (3, 3)
    assert [(r.offset, r.value) for r in records(log)] == [
        (0, b"a"),
        (1, b"b"),
        (2, b"c"),
        (3, b"d"),
    ]
    written = contents(log)[len(first) :]
    assert written[16:] == before[16:]
    assert parse_header(written).partition_leader_epoch == 4
    assert log.log_end == LogPosition(4, 0, len(first) + len(second))


def test_staged_batches_are_not_in_the_log_before_the_flush(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    staged = []
    for _ in range(3):
        data = batch(values(b"a", b"b"))
        staged.append(log.stage(data, parse_header(data), leader_epoch=0, now_ms=NOW_MS))
    assert log.log_end.offset == 0
    assert contents(log) == b""
    assert log.flush_staged().offset == 6
    assert [append[:2] for append in staged] == [(0, 1), (2, 3), (4, 5)]
    assert [record.offset for record in records(log)] == list(range(6))


def test_more_buffers_than_one_call_takes_are_all_written(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for _ in range(2500):
        data = batch()
        log.stage(data, parse_header(data), leader_epoch=0, now_ms=NOW_MS)
    log.flush_staged()
    assert [record.offset for record in records(log)] == list(range(2500))


def test_a_segment_rolls_when_the_next_batch_does_not_fit(tmp_path: Path) -> None:
    size = len(batch(values(b"x" * 100, b"x" * 100)))
    log = open_log(tmp_path, config(segment_bytes=3 * size))
    fill(log, 7)
    assert log.segment_bases == [0, 6, 12]
    assert [log.segment_path(base).stat().st_size for base in log.segment_bases] == [
        3 * size,
        3 * size,
        size,
    ]
    assert log.log_end == LogPosition(14, 12, size)
    assert len(records(log)) == 14


def test_what_is_staged_is_written_before_a_roll(tmp_path: Path) -> None:
    size = len(batch())
    log = open_log(tmp_path, config(segment_bytes=2 * size))
    for _ in range(5):
        data = batch()
        log.stage(data, parse_header(data), leader_epoch=0, now_ms=NOW_MS)
    assert log.log_end.offset == 4
    log.flush_staged()
    assert log.segment_bases == [0, 2, 4]
    assert [record.offset for record in records(log)] == list(range(5))


def test_a_segment_rolls_by_the_age_of_its_first_batch(tmp_path: Path) -> None:
    log = open_log(tmp_path, config(segment_ms=1000))
    for at_ms in (0, 500, 1000, 1001, 1500, 2001, 2002):
        append(log, batch(values(b"a", at_ms=NOW_MS + at_ms)))
    assert log.segment_bases == [0, 3, 6]


def test_age_is_judged_by_the_first_batch_after_a_restart_too(tmp_path: Path) -> None:
    log = open_log(tmp_path, config(segment_ms=1000))
    append(log, batch(values(b"a", at_ms=NOW_MS)))
    log.close()
    log = open_log(tmp_path, log.config, clean=True, recovery_point=1, now_ms=NOW_MS + 5000)
    append(log, batch(values(b"a", at_ms=NOW_MS + 1000)))
    assert log.segment_bases == [0]
    append(log, batch(values(b"a", at_ms=NOW_MS + 1001)))
    assert log.segment_bases == [0, 2]


def test_records_without_time_roll_by_the_age_of_the_segment(tmp_path: Path) -> None:
    log = open_log(tmp_path, config(segment_ms=1000))
    for now_ms in (NOW_MS, NOW_MS + 1000, NOW_MS + 1001):
        append(log, batch([NewRecord(-1, b"k", b"v")]), now_ms=now_ms)
    assert log.segment_bases == [0, 2]


def test_jitter_makes_a_segment_roll_earlier_and_always_alike(tmp_path: Path) -> None:
    settings = config(segment_ms=1_000_000, segment_jitter_ms=900_000)

    def first_roll(name: str) -> int:
        log = open_log(tmp_path / name, settings)
        for at_ms in range(0, 1_100_000, 10_000):
            append(log, batch(values(b"a", at_ms=NOW_MS + at_ms)), now_ms=NOW_MS + at_ms)
        return log.segment_bases[1]

    rolls = {first_roll(f"topic-{partition}") for partition in range(4)}
    assert len(rolls) > 1
    assert max(rolls) <= 101
    assert first_roll("other/topic-0") in rolls


def test_a_full_index_rolls_the_segment(tmp_path: Path) -> None:
    log = open_log(tmp_path, config(index_interval_bytes=0, segment_index_bytes=48))
    for at in range(9):
        append(log, batch(values(b"a", at_ms=NOW_MS + at)))
    assert log.segment_bases == [0, 4, 8]


def test_offsets_too_far_from_the_base_roll_the_segment(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log)
    far = batch()
    header = parse_header(far)._replace(last_offset_delta=2**31 - 1)
    log.stage(far, header, leader_epoch=0, now_ms=NOW_MS)
    assert log.segment_bases == [0, 1]


def test_index_entries_follow_kafkas_interval(tmp_path: Path) -> None:
    log = open_log(tmp_path, config(index_interval_bytes=1000))
    size = len(batch(values(b"a" * 100, b"b" * 100)))
    fill(log, 40)
    log.close()
    index = log.directory.joinpath("00000000000000000000.index").read_bytes()
    per_entry = 1000 // size + 1
    entries = [
        (int.from_bytes(index[at : at + 4]), int.from_bytes(index[at + 4 : at + 8]))
        for at in range(0, len(index), 8)
    ]
    assert entries == [
        (2 * batches + 1, batches * size) for batches in range(per_entry, 40, per_entry)
    ]


def test_log_append_time_replaces_what_the_producer_said(tmp_path: Path) -> None:
    log = open_log(tmp_path, config(message_timestamp_type=LOG_APPEND_TIME))
    staged = append(log, batch(values(b"a", at_ms=5)), now_ms=NOW_MS + 7)
    assert staged.log_append_time_ms == NOW_MS + 7
    assert [record.timestamp for record in records(log)] == [NOW_MS + 7]
    assert append(open_log(tmp_path / "other")).log_append_time_ms == -1


def test_a_batch_over_the_limit_is_too_large(tmp_path: Path) -> None:
    size = len(batch())
    log = open_log(tmp_path, config(max_message_bytes=size))
    append(log)
    assert _code(log, batch(values(b"value!"))) == ErrorCode.message_too_large


def test_a_batch_over_a_segment_is_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path, config(segment_bytes=200))
    assert _code(log, batch(values(b"x" * 200))) == ErrorCode.record_list_too_large


def test_timestamps_too_far_ahead_are_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path, config(message_timestamp_after_max_ms=1000))
    append(log, batch(values(b"a", at_ms=NOW_MS + 1000)))
    late = batch(values(b"a", b"b", at_ms=NOW_MS + 1000))
    assert _code(log, late) == ErrorCode.invalid_timestamp


@pytest.mark.parametrize("codec", range(5))
def test_timestamps_too_old_are_refused_wherever_they_stand(tmp_path: Path, codec: int) -> None:
    log = open_log(tmp_path, config(message_timestamp_before_max_ms=1000))
    young, old = NewRecord(NOW_MS - 1000, b"k", b"v"), NewRecord(NOW_MS - 1001, b"k", b"v")
    append(log, batch([young, NewRecord(-1, b"k", b"without time")], codec=codec))
    with pytest.raises(RefusedRecordsError) as refused:
        append(log, batch([young, old, young, old], codec=codec))
    assert refused.value.code == ErrorCode.invalid_timestamp
    assert [index for index, _ in refused.value.record_errors] == [1, 3]


@pytest.mark.parametrize("codec", range(5))
def test_a_compacted_topic_takes_no_record_without_key(tmp_path: Path, codec: int) -> None:
    log = open_log(tmp_path, config(cleanup_policy=frozenset({"compact"})))
    append(log, batch([NewRecord(NOW_MS, b"", b"v")], codec=codec))
    nameless = batch([NewRecord(NOW_MS, b"k", b"v"), NewRecord(NOW_MS, None, b"v")], codec=codec)
    with pytest.raises(RefusedRecordsError) as refused:
        append(log, nameless)
    assert refused.value.code == ErrorCode.invalid_record
    assert refused.value.record_errors == ((1, "a compacted topic takes no record without key"),)


def test_a_batch_of_many_refused_records_names_the_first_ones(tmp_path: Path) -> None:
    log = open_log(tmp_path, config(cleanup_policy=frozenset({"compact"})))
    nameless = batch([NewRecord(NOW_MS, None, b"v")] * 10_000, codec=4)
    with pytest.raises(RefusedRecordsError) as refused:
        append(log, nameless)
    assert [index for index, _ in refused.value.record_errors] == list(range(100))


@pytest.mark.parametrize("wanted", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_batches_are_kept_in_the_codec_of_the_topic(tmp_path: Path, wanted: str) -> None:
    log = open_log(tmp_path, config(compression_type=wanted))
    for codec in range(5):
        data = batch(values(b"x" * 500, b"y" * 500), codec=codec, producer=(1, 0, codec * 2))
        append(log, data)
    written = contents(log)
    at = 0
    while at < len(written):
        header = parse_header(written, at)
        assert header.codec == CODEC_NAMES[wanted]
        at += header.size_bytes
    assert [record.offset for record in records(log)] == list(range(10))
    assert {record.value for record in records(log)} == {b"x" * 500, b"y" * 500}


def test_the_producers_codec_is_kept_by_default_byte_for_byte(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for codec in range(5):
        data = batch(values(b"x" * 500), codec=codec)
        sent = bytes(data)
        append(log, data)
        assert contents(log)[-len(sent) + 16 :] == sent[16:]


def test_a_batch_that_grows_over_the_limit_when_recompressed_is_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path, config(compression_type="uncompressed", max_message_bytes=1000))
    assert _code(log, batch(values(b"x" * 5000), codec=1)) == ErrorCode.message_too_large


def test_new_settings_hold_for_the_next_batch(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log)
    log.reconfigure(config(max_message_bytes=10))
    assert _code(log, batch()) == ErrorCode.message_too_large


def test_the_leaders_epoch_begins_where_its_first_batch_stands(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    fill(log, 2, epoch=3)
    fill(log, 1, epoch=5)
    assert (log.directory / "leader-epoch-checkpoint").read_text() == "0\n2\n3 0\n5 4\n"
    assert log.latest_epoch == 5


def test_records_are_read_back_as_bytes_of_ranges(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    fill(log, 3)
    (found,), next_offset = log.ranges_from(2, 1 << 20)
    assert next_offset == 6
    assert [record.offset for record in iter_records(log.read(found))] == [2, 3]
