"""Disks that fail: what was promised holds, what was not is undone."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mobula.protocol.errors import ErrorCode
from mobula.storage.batch import iter_headers, parse_header
from mobula.storage.descriptors import Descriptors
from mobula.storage.log import Log, StorageError
from mobula.storage.segment import Segment
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
    values,
)


def _full(*_: object) -> Any:
    raise OSError(errno.ENOSPC, "No space left on device")


def _full_after(times: int, real: Callable[..., Any]) -> Callable[..., Any]:
    """Works so often, then never again."""
    left = times

    def call(*args: Any) -> Any:
        nonlocal left
        left -= 1
        return real(*args) if left >= 0 else _full()

    return call


def _stage(log: Log, *, producer: tuple[int, int, int] | None = None, epoch: int = 0) -> None:
    data = batch(values(b"x" * 300), producer=producer)
    log.stage(data, parse_header(data), leader_epoch=epoch, now_ms=NOW_MS + 5)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    log = open_log(tmp_path, config(index_interval_bytes=0))
    fill(log, 3)
    append(log, batch(producer=(1, 0, 0)))
    return log


def _partial_write(real: Callable[..., int]) -> Callable[..., int]:
    def write(fd: int, buffers: list[memoryview]) -> int:
        real(fd, [buffers[0][:100]])
        return _full()

    return write


@pytest.mark.parametrize("partly", [True, False])
def test_a_full_disk_undoes_all_that_was_staged(
    log: Log, monkeypatch: pytest.MonkeyPatch, partly: bool
) -> None:
    before, files, end = contents(log), indexes(log), log.log_end
    for sequence in (1, 2, 3):
        _stage(log, producer=(1, 0, sequence), epoch=3)
    _stage(log, producer=(2, 0, 0), epoch=3)
    with monkeypatch.context() as broken:
        broken.setattr(os, "writev", _partial_write(os.writev) if partly else _full)
        with pytest.raises(StorageError) as failed:
            log.flush_staged()
    assert failed.value.code == ErrorCode.kafka_storage_error
    assert not log.offline
    assert (log.log_end, contents(log), indexes(log)) == (end, before, files)
    assert log.flush_staged() == end
    again = append(log, batch(producer=(1, 0, 1)), epoch=3)
    assert (again.base_offset, again.duplicate) == (end.offset, False)
    assert append(log, batch(producer=(2, 0, 40)), epoch=3).duplicate is False
    assert [record.offset for record in records(log)] == list(range(9))


def test_an_index_that_cannot_be_written_undoes_the_data_too(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, files, end = contents(log), indexes(log), log.log_end
    _stage(log)
    _stage(log)
    with monkeypatch.context() as broken:
        broken.setattr("mobula.storage.index.write_all", _full)
        with pytest.raises(StorageError):
            log.flush_staged()
    assert (log.log_end, contents(log), indexes(log)) == (end, before, files)
    append(log)
    assert [record.offset for record in records(log)] == list(range(8))


def test_a_failure_that_cannot_be_undone_takes_the_log_offline(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = log.log_end
    _stage(log)
    _stage(log)
    with monkeypatch.context() as broken:
        broken.setattr(os, "writev", _partial_write(os.writev))
        broken.setattr(os, "ftruncate", _full)
        with pytest.raises(StorageError):
            log.flush_staged()
    assert log.offline
    assert log.log_end == end
    with pytest.raises(StorageError):
        append(log)
    log.close()
    again = open_log(log.directory, log.config)
    assert again.log_end == end
    assert again.recovery is not None
    assert again.recovery.truncated_bytes == 100


def test_a_failed_roll_loses_nothing_that_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(tmp_path, config(segment_bytes=800))
    _stage(log)
    _stage(log)
    with monkeypatch.context() as broken:
        broken.setattr("mobula.storage.segment.Segment.create_file", _full)
        with pytest.raises(StorageError):
            _stage(log)
    assert log.log_end.offset == 2
    _stage(log)
    log.flush_staged()
    assert log.segment_bases == [0, 2]
    assert [record.offset for record in records(log)] == [0, 1, 2]


def test_no_batch_gets_the_offsets_of_one_that_was_lost_before_that_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(tmp_path, config(segment_bytes=800))
    data = [batch(values(b"x" * 300)) for _ in range(4)]
    headers = [parse_header(each) for each in data]
    lost = [log.stage(data[at], headers[at], leader_epoch=0, now_ms=NOW_MS) for at in (0, 1)]
    with monkeypatch.context() as broken:
        broken.setattr(os, "writev", _full)
        with pytest.raises(StorageError):
            log.stage(data[2], headers[2], leader_epoch=0, now_ms=NOW_MS)
    with pytest.raises(StorageError, match="earlier batch"):
        log.stage(data[3], headers[3], leader_epoch=0, now_ms=NOW_MS)
    end = log.flush_staged()
    assert all(staged.last_offset >= end.offset for staged in lost)
    assert append(log, data[3]).base_offset == 0


def test_a_failed_fsync_takes_the_log_offline(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", _full)
    with pytest.raises(StorageError):
        log.flush()
    assert log.offline
    assert log.recovery_point == 0


def test_a_segment_that_cannot_be_read_is_a_storage_error(log: Log) -> None:
    log.release_files()
    log.segment_path(0).unlink()
    with pytest.raises(StorageError):
        log.position_of(1)


def test_short_writes_are_continued(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    writev = os.writev

    def a_little(fd: int, buffers: list[memoryview]) -> int:
        return writev(fd, [buffers[0][:70]])

    monkeypatch.setattr(os, "writev", a_little)
    for _ in range(4):
        _stage(log)
    log.flush_staged()
    assert [record.offset for record in records(log)] == list(range(11))


def test_every_message_is_fsynced_when_the_topic_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(tmp_path, config(flush_messages=4))
    synced = []
    monkeypatch.setattr(os, "fsync", synced.append)
    fill(log, 1)
    assert (log.recovery_point, synced) == (0, [])
    fill(log, 1)
    assert log.recovery_point == 4
    assert synced
    fill(log, 1)
    assert log.recovery_point == 4


def test_flush_ms_is_kept_by_appends_and_by_the_clock(tmp_path: Path) -> None:
    log = open_log(tmp_path, config(flush_ms=100))
    append(log, now_ms=NOW_MS + 99)
    assert log.recovery_point == 0
    assert not log.flush_if_due(NOW_MS + 99)
    assert log.flush_if_due(NOW_MS + 100)
    assert log.recovery_point == 1
    assert not log.flush_if_due(NOW_MS + 500)
    append(log, now_ms=NOW_MS + 501)
    assert log.recovery_point == 2


def test_rolled_segments_are_fsynced_by_another_thread(tmp_path: Path) -> None:
    log = open_log(tmp_path, config(segment_bytes=2000))
    assert log.rolled_unsynced() is None
    fill(log, 30)
    work = log.rolled_unsynced()
    assert work is not None
    base = log.segment_bases[-1]
    assert work() == base
    log.synced(base)
    assert log.recovery_point == base
    assert log.rolled_unsynced() is None


def test_what_another_thread_fsynced_counts_for_nothing_after_a_truncation(
    tmp_path: Path,
) -> None:
    log = open_log(tmp_path, config(segment_bytes=2000))
    fill(log, 30)
    work = log.rolled_unsynced()
    assert work is not None
    log.truncate_to(4)
    fill(log, 28)
    log.synced(work())
    assert log.recovery_point == 0
    work = log.rolled_unsynced()
    assert work is not None
    log.synced(work())
    assert log.recovery_point == log.segment_bases[-1]


def test_a_follower_whose_epochs_cannot_be_written_is_whole_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leader, follower = open_log(tmp_path / "leader"), open_log(tmp_path / "follower")
    for epoch in (1, 2, 3):
        fill(leader, 2, epoch=epoch)
    data = memoryview(contents(leader))
    half = leader.position_of(6).position
    with monkeypatch.context() as broken:
        broken.setattr("mobula.storage.epochs.overwrite", _full)
        with pytest.raises(StorageError):
            follower.append_as_follower(data[:half])
    assert follower.log_end.offset == 6
    follower.append_as_follower(data[half:])
    assert contents(follower) == contents(leader)
    follower.release_files()
    assert open_log(follower.directory).end_offset_for_epoch(2) == (2, 8)


def test_few_descriptors_serve_many_logs(tmp_path: Path) -> None:
    held = Descriptors(4)
    logs = [open_log(tmp_path / f"topic-{index}", descriptors=held) for index in range(20)]
    assert held.holders == 0
    for _ in range(3):
        for log in logs:
            append(log)
    assert held.holders == 4
    for log in logs:
        assert [record.offset for record in records(log)] == [0, 1, 2]
        log.close()
    assert held.holders == 0


def test_losing_the_descriptor_between_stage_and_flush_does_no_harm(tmp_path: Path) -> None:
    held = Descriptors(1)
    settings = config(index_interval_bytes=0)
    first = open_log(tmp_path / "first", settings, descriptors=held)
    other = open_log(tmp_path / "other", settings, descriptors=held)
    for _ in range(3):
        _stage(first)
        _stage(first)
        fill(other, 2)
        first.flush_staged()
    assert [record.offset for record in records(first)] == list(range(6))
    first.close()
    whole = indexes(first)
    assert indexes(open_log(first.directory, settings)) == whole


def test_a_closed_log_refuses_and_closes_again(log: Log) -> None:
    log.close()
    log.close()
    with pytest.raises(StorageError):
        append(log)
    with pytest.raises(StorageError):
        log.truncate_to(0)


def test_a_deleted_log_leaves_nothing(tmp_path: Path) -> None:
    log = open_log(tmp_path / "topic-0")
    fill(log, 3)
    log.delete()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("broken_call", ["write", "roll"])
def test_a_follower_whose_disk_was_full_in_the_middle_of_a_copy_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken_call: str
) -> None:
    leader = open_log(tmp_path / "leader", config(segment_bytes=1 << 20))
    fill(leader, 2)
    for _ in range(4):
        append(leader, batch(values(b"x" * 300)), epoch=3)
    copies = memoryview(contents(leader))
    follower = open_log(tmp_path / "follower", config(segment_bytes=800))
    with monkeypatch.context() as broken:
        if broken_call == "write":
            broken.setattr(os, "write", _full_after(1, os.write))
        else:
            create = "mobula.storage.segment.Segment.create_file"
            broken.setattr(create, _full_after(1, Segment.create_file))
        with pytest.raises(StorageError):
            follower.append_as_follower(copies)
    held = len(contents(follower))
    # What was written is of epochs that the log knows: else the leader would have it cut.
    epochs = [header.partition_leader_epoch for _, header in iter_headers(contents(follower))]
    assert follower.latest_epoch == max(epochs, default=-1)
    follower.apply_retention(NOW_MS, follower.log_end.offset)
    assert follower.append_as_follower(copies[held:]).offset == leader.log_end.offset
    assert contents(follower) == contents(leader)
    assert follower.latest_epoch == 3
