"""A follower copies its leader's batches, and only those that fit its log."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mobula.storage import follow
from mobula.storage.batch import HEADER_BYTES, parse_header, place
from mobula.storage.log import Log, LogPosition, RejectedBatchesError
from tests.unit.storage.support import (
    append,
    batch,
    config,
    contents,
    fill,
    open_log,
    records,
    values,
)

SMALL = config(segment_bytes=2000, index_interval_bytes=300)


@pytest.fixture
def leader(tmp_path: Path) -> Log:
    log = open_log(tmp_path / "leader", SMALL)
    fill(log, 30, epoch=1)
    fill(log, 3, epoch=4)
    return log


@pytest.fixture
def follower(tmp_path: Path) -> Log:
    return open_log(tmp_path / "follower", SMALL)


def _pull(leader: Log, follower: Log, *, in_kernel: bool, max_bytes: int = 1 << 20) -> None:
    """One pull: what the leader answers, and what the follower makes of it."""
    ranges, next_offset = leader.ranges_from(follower.log_end.offset, max_bytes)
    for found in ranges:
        if not in_kernel:
            follower.append_as_follower(
                leader.read(found), max_leader_epoch=4, segment_base=found.segment_base
            )
            continue
        fd = os.open(leader.segment_path(found.segment_base), os.O_RDONLY)
        try:
            follower.append_range(
                fd, found.position, found.length, 4, segment_base=found.segment_base
            )
        finally:
            os.close(fd)
    assert follower.log_end.offset == next_offset


def _files(log: Log) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes()
        for path in log.directory.iterdir()
        if path.suffix in (".log", ".index", ".timeindex") or "epoch" in path.name
    }


@pytest.mark.parametrize("in_kernel", [True, False])
@pytest.mark.parametrize("max_bytes", [1, 300, 700, 3000, 1 << 20])
def test_a_followers_files_are_its_leaders_byte_for_byte(
    leader: Log, follower: Log, in_kernel: bool, max_bytes: int
) -> None:
    while follower.log_end.offset < leader.log_end.offset:
        _pull(leader, follower, in_kernel=in_kernel, max_bytes=max_bytes)
    assert follower.log_end == leader.log_end
    leader.close()
    follower.close()
    assert _files(follower) == _files(leader)
    assert follower.latest_epoch == 4


@pytest.mark.parametrize("in_kernel", [True, False])
def test_a_batch_larger_than_the_copy_buffer_is_copied_whole(
    tmp_path: Path, in_kernel: bool
) -> None:
    huge = config(max_message_bytes=1 << 22)
    leader, follower = open_log(tmp_path / "a", huge), open_log(tmp_path / "b", huge)
    for size in (10, 700_000, 100, 300_000, 262_144, 50):
        append(leader, batch(values(os.urandom(size))))
    _pull(leader, follower, in_kernel=in_kernel, max_bytes=1 << 22)
    assert contents(follower) == contents(leader)


def test_without_the_platforms_preadv_ranges_are_copied_too(
    leader: Log, follower: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mobula.storage.scan._PREADV", False)
    _pull(leader, follower, in_kernel=True)
    assert contents(follower) == contents(leader)


def _damage_crc(data: bytearray, at: int) -> None:
    data[at + HEADER_BYTES + 2] ^= 1


def _move_offset(data: bytearray, at: int) -> None:
    header = parse_header(data, at)
    place(memoryview(data)[at:], header.batch_length, header.base_offset + 1, 1)


def _raise_epoch(data: bytearray, at: int) -> None:
    header = parse_header(data, at)
    place(memoryview(data)[at:], header.batch_length, header.base_offset, 5)


def _lower_epoch(data: bytearray, at: int) -> None:
    header = parse_header(data, at)
    place(memoryview(data)[at:], header.batch_length, header.base_offset, 0)


def _lie_about_length(data: bytearray, at: int) -> None:
    data[at + 11] ^= 1


def _other_magic(data: bytearray, at: int) -> None:
    data[at + 16] = 1


def _zeroes(data: bytearray, at: int) -> None:
    data[at:] = bytes(len(data) - at)


SPOIL = [
    _damage_crc,
    _move_offset,
    _raise_epoch,
    _lower_epoch,
    _lie_about_length,
    _other_magic,
    _zeroes,
]


@pytest.mark.parametrize("spoil", SPOIL)
@pytest.mark.parametrize("index", [0, 3, 6])
def test_bytes_that_do_not_fit_are_refused_and_the_log_is_as_it_was(
    leader: Log, follower: Log, spoil: Callable[[bytearray, int], None], index: int
) -> None:
    _pull(leader, follower, in_kernel=False, max_bytes=900)
    start = follower.log_end
    before = contents(follower)
    ranges, _ = leader.ranges_from(start.offset, 1 << 20)
    data = bytearray(leader.read(ranges[1]))
    at = index * (len(data) // 7)
    first = leader.read(ranges[0])
    follower.append_as_follower(first, segment_base=ranges[0].segment_base)
    before += bytes(first)
    end = follower.log_end
    spoil(data, at)
    with pytest.raises(RejectedBatchesError):
        follower.append_as_follower(
            memoryview(data), max_leader_epoch=4, segment_base=ranges[1].segment_base
        )
    assert (follower.log_end, contents(follower)) == (end, before)
    while follower.log_end.offset < leader.log_end.offset:
        _pull(leader, follower, in_kernel=False)
    assert contents(follower) == contents(leader)


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranges are copied by pieces of a few batches."""
    monkeypatch.setattr(follow, "_COPY_BYTES", 1000)


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize(
    ("spoil", "index"),
    # Any epoch up to the leader's could be that of a log's first batch.
    [(each, at) for each in SPOIL for at in (0, 3, 6) if (each, at) != (_lower_epoch, 0)],
)
def test_a_leaders_file_that_changed_under_the_copy_is_refused_where_it_changed(
    leader: Log, follower: Log, spoil: Callable[[bytearray, int], None], index: int
) -> None:
    (found, *_), _ = leader.ranges_from(0, 1 << 20)
    path = leader.segment_path(0)
    sound = path.read_bytes()
    size = len(sound) // 7
    data = bytearray(sound)
    spoil(data, index * size)
    path.write_bytes(data)
    fd = os.open(path, os.O_RDONLY)
    try:
        with pytest.raises(RejectedBatchesError):
            follower.append_range(fd, found.position, found.length, 4, segment_base=0)
    finally:
        os.close(fd)
    copied = contents(follower)
    assert copied == sound[: len(copied)]
    assert len(copied) == follower.log_end.position <= index * size
    assert follower.log_end.offset == 2 * (len(copied) // size)
    path.write_bytes(sound)
    while follower.log_end.offset < leader.log_end.offset:
        _pull(leader, follower, in_kernel=True)
    assert contents(follower) == contents(leader)


@pytest.mark.parametrize("missing", [1, 100, 300, 1500])
def test_a_leaders_file_that_became_shorter_is_refused(
    leader: Log, follower: Log, missing: int
) -> None:
    (found, *_), _ = leader.ranges_from(0, 1 << 20)
    path = leader.segment_path(0)
    os.truncate(path, found.length - missing)
    fd = os.open(path, os.O_RDONLY)
    try:
        with pytest.raises(RejectedBatchesError):
            follower.append_range(fd, 0, found.length, 4)
    finally:
        os.close(fd)
    assert follower.log_end == LogPosition(0, 0, 0)


@pytest.mark.parametrize("extra", [1, 60, 61, 200])
def test_a_range_that_ends_inside_a_batch_is_refused(
    leader: Log, follower: Log, extra: int
) -> None:
    size = parse_header(leader.segment_path(0).read_bytes()).size_bytes
    with pytest.raises(RejectedBatchesError):
        follower.append_as_follower(memoryview(leader.segment_path(0).read_bytes())[: size + extra])
    fd = os.open(leader.segment_path(0), os.O_RDONLY)
    try:
        with pytest.raises(RejectedBatchesError):
            follower.append_range(fd, 0, size + extra, 4)
    finally:
        os.close(fd)
    assert follower.log_end.offset in (0, 2)


def test_a_deleted_segment_is_copied_through_its_descriptor(leader: Log, follower: Log) -> None:
    (found, *_), _ = leader.ranges_from(0, 1 << 20)
    fd = os.open(leader.segment_path(0), os.O_RDONLY)
    sound = leader.segment_path(0).read_bytes()
    try:
        leader.segment_path(0).unlink()
        follower.append_range(fd, 0, found.length, 4)
    finally:
        os.close(fd)
    assert contents(follower) == sound


def test_epochs_of_its_own_without_records_do_not_refuse_an_older_leaders_batches(
    leader: Log, follower: Log
) -> None:
    follower.assign_epoch(3, 0)
    _pull(leader, follower, in_kernel=False)
    assert follower.end_offset_for_epoch(1) == (1, 60)
    assert follower.end_offset_for_epoch(3) == (1, 60)


def test_an_empty_log_may_begin_in_the_middle_of_a_batch(tmp_path: Path) -> None:
    leader, follower = open_log(tmp_path / "leader"), open_log(tmp_path / "follower")
    append(leader, batch(values(*[b"v"] * 10)))
    append(leader, batch(values(*[b"w"] * 10)))
    leader.advance_log_start(14)
    follower.truncate_fully_and_start_at(14)
    _pull(leader, follower, in_kernel=False)
    assert (follower.log_start_offset, follower.log_end.offset) == (14, 20)
    assert follower.segment_bases == [10]
    assert [record.offset for record in records(follower)] == list(range(10, 20))
    again = open_log(follower.directory, log_start_offset=14)
    assert (again.log_start_offset, again.log_end.offset) == (14, 20)


def test_a_follower_rolls_by_its_own_settings_when_not_told_the_leaders(
    leader: Log, tmp_path: Path
) -> None:
    follower = open_log(tmp_path / "follower", config(segment_bytes=700))
    data = contents(leader)
    follower.append_as_follower(memoryview(data))
    assert contents(follower) == data
    assert max(follower.segment_path(base).stat().st_size for base in follower.segment_bases) <= 700


def test_nothing_pulled_changes_nothing(follower: Log) -> None:
    assert follower.append_as_follower(memoryview(b"")) == LogPosition(0, 0, 0)
