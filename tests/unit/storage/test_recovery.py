"""Opening logs: after a clean close, a crash, a torn write, with indexes lost or wrong."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mobula.protocol.errors import ErrorCode
from mobula.storage.batch import HEADER_BYTES
from mobula.storage.descriptors import Descriptors
from mobula.storage.log import Log, LogPosition, StorageError
from tests.unit.storage.support import (
    NOW_MS,
    TOPIC_ID,
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


def _crash(log: Log) -> Path:
    """As if the process had been killed: nothing is closed."""
    log.release_files()
    return log.directory


def _active(log: Log) -> Path:
    return log.segment_path(log.segment_bases[-1])


def test_a_clean_log_opens_as_it_was_without_a_scan(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL)
    fill(log, 30, epoch=2)
    before = contents(log)
    log.close()
    held = Descriptors(8)
    again = open_log(tmp_path, SMALL, clean=True, recovery_point=60, descriptors=held)
    assert again.recovery is None
    assert (again.log_end, again.recovery_point) == (log.log_end, 60)
    assert (contents(again), again.latest_epoch) == (before, 2)
    assert held.holders == 0


def test_opening_a_clean_log_reads_only_its_tail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(tmp_path, config(index_interval_bytes=1000))
    fill(log, 400)
    log.close()
    read = 0
    pread = os.pread

    def counting(fd: int, length: int, position: int) -> bytes:
        nonlocal read
        data = pread(fd, length, position)
        read += len(data)
        return data

    monkeypatch.setattr(os, "pread", counting)
    again = open_log(tmp_path, log.config, clean=True, recovery_point=800)
    assert again.log_end.offset == 800
    assert read < 2500


def test_an_idle_log_is_closed_and_opened_without_a_change(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL)
    fill(log, 30)
    log = reopen_cleanly(log)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    log = reopen_cleanly(log)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    append(log)
    assert log.log_end.offset == 61


def test_a_crashed_log_is_checked_from_its_recovery_point_on(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL)
    fill(log, 30)
    before, files = contents(log), indexes(log)
    end, bases = log.log_end, log.segment_bases
    again = open_log(_crash(log), SMALL, recovery_point=0)
    assert again.recovery is not None
    assert again.recovery.scanned_bytes == len(before)
    assert (again.recovery.truncated_bytes, again.recovery.truncated_at_offset) == (0, -1)
    assert (again.log_end, again.segment_bases, contents(again)) == (end, bases, before)
    assert indexes(again)[:-1] == files[:-1]
    half = open_log(_crash(again), SMALL, recovery_point=bases[-1])
    assert half.recovery is not None
    assert half.recovery.scanned_bytes == end.position


def test_a_write_torn_at_any_byte_of_the_last_batch_is_cut_off(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log", SMALL)
    fill(log, 3)
    whole = log.log_end
    append(log, batch(values(b"last", b"batch"), producer=(1, 0, 0)))
    size = _active(log).stat().st_size
    _crash(log)
    for length in range(whole.position, size):
        torn = tmp_path / f"torn-{length}"
        shutil.copytree(log.directory, torn)
        os.truncate(torn / _active(log).name, length)
        for clean in (True, False):
            again = open_log(torn, SMALL, clean=clean, recovery_point=8 if clean else 0)
            assert again.log_end == whole
            assert again.recovery is not None
            expected = length - whole.position if not clean or length > whole.position else 0
            assert again.recovery.truncated_bytes == expected
            if expected:
                assert again.recovery.truncated_at_offset == whole.offset
                assert again.recovery.reason
            os.truncate(torn / _active(log).name, length)
            again.release_files()
            shutil.copy(log.directory / _active(log).name, torn)
            os.truncate(torn / _active(log).name, length)
        final = open_log(torn, SMALL)
        assert append(final)[:2] == (6, 6)
        assert [record.offset for record in records(final)] == list(range(7))
        shutil.rmtree(torn)


@pytest.mark.parametrize("clean", [True, False])
def test_a_hundred_bytes_cut_off_are_recovered_and_reported(tmp_path: Path, clean: bool) -> None:
    log = open_log(tmp_path, config(index_interval_bytes=300))
    fill(log, 50)
    size = log.size_bytes
    log.close()
    os.truncate(_active(log), size - 100)
    again = open_log(tmp_path, log.config, clean=clean, recovery_point=100)
    assert again.recovery is not None
    assert again.log_end.offset == again.recovery.truncated_at_offset == 98
    assert again.recovery.truncated_bytes == size - 100 - again.log_end.position
    assert [record.offset for record in records(again)] == list(range(98))


def test_a_clean_log_cut_between_two_batches_is_noticed(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    fill(log, 4)
    cut = log.log_end.position
    fill(log, 1)
    log.close()
    os.truncate(_active(log), cut)
    again = open_log(tmp_path, clean=True, recovery_point=10)
    assert again.recovery is not None
    assert (again.recovery.truncated_at_offset, again.log_end.offset) == (8, 8)
    assert "10" in again.recovery.reason


def test_a_wrong_crc_cuts_the_log_there_and_drops_later_segments(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL)
    fill(log, 30)
    bases = log.segment_bases
    assert len(bases) > 3
    second = log.segment_path(bases[1])
    damaged = bytearray(second.read_bytes())
    size = len(damaged) // ((bases[2] - bases[1]) // 2)
    damaged[2 * size + HEADER_BYTES + 3] ^= 1
    second.write_bytes(damaged)
    total = log.size_bytes
    again = open_log(_crash(log), SMALL)
    assert again.segment_bases == bases[:2]
    assert again.log_end == LogPosition(bases[1] + 4, bases[1], 2 * size)
    assert again.recovery is not None
    assert again.recovery.truncated_bytes == total - again.size_bytes
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".deleted")]
    assert [record.offset for record in records(again)] == list(range(bases[1] + 4))


def test_a_hole_between_two_segments_ends_the_log_before_it(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL)
    fill(log, 30)
    bases = log.segment_bases
    second = log.segment_path(bases[1])
    size = second.stat().st_size // ((bases[2] - bases[1]) // 2)
    os.truncate(second, second.stat().st_size - size)
    again = open_log(_crash(log), SMALL)
    assert again.segment_bases == bases[:2]
    assert again.log_end.offset == bases[2] - 2
    assert again.recovery is not None
    assert again.recovery.truncated_at_offset == bases[2] - 2


@pytest.mark.parametrize("how", ["closed", "crashed", "cut"])
def test_batches_under_way_when_a_log_ended_are_known_when_they_are_sent_again(
    tmp_path: Path, how: str
) -> None:
    log = open_log(tmp_path, SMALL)
    fill(log, 20)
    for sequence in range(5):
        append(log, batch(values(b"v" * 600), producer=(7, 0, sequence)))
    first = log.log_end.offset - 5
    if how == "closed":
        again = reopen_cleanly(log)
    elif how == "crashed":
        assert log.segment_bases[-1] > first
        again = open_log(_crash(log), SMALL, recovery_point=log.segment_bases[-1])
    else:
        append(log)
        log.truncate_to(log.log_end.offset - 1)
        again = log
    for sequence in range(5):
        repeated = append(again, batch(values(b"v" * 600), producer=(7, 0, sequence)))
        assert (repeated.base_offset, repeated.duplicate) == (first + sequence, True)
    assert append(again, batch(producer=(7, 0, 5))).base_offset == first + 5


def test_what_lies_before_the_recovery_point_is_not_read(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL)
    fill(log, 30)
    first = log.segment_path(0)
    damaged = bytearray(first.read_bytes())
    damaged[HEADER_BYTES + 3] ^= 1
    first.write_bytes(damaged)
    again = open_log(_crash(log), SMALL, recovery_point=log.segment_bases[1])
    assert again.log_end == log.log_end


def _remove(path: Path) -> None:
    path.unlink()


def _scramble(path: Path) -> None:
    path.write_bytes(bytes((7 * at + 13) % 251 for at in range(path.stat().st_size)))


def _halve(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2 // 8 * 8 + 3])


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("spoil", [_remove, _scramble, _halve])
@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("segment", [0, -1])
def test_indexes_that_are_lost_or_wrong_are_made_anew(
    tmp_path: Path, suffix: str, spoil: Callable[[Path], None], clean: bool, segment: int
) -> None:
    log = open_log(tmp_path, SMALL)
    fill(log, 32)
    log.close()
    base = log.segment_bases[segment]
    path = log.segment_path(base).with_suffix(suffix)
    sound = path.read_bytes()
    assert len(sound) >= 8
    spoil(path)
    again = open_log(tmp_path, SMALL, clean=clean, recovery_point=64 if clean else 0)
    assert again.log_end == log.log_end
    for offset in range(64):
        found = again.position_of(offset)
        assert found == LogPosition(offset, found.segment, found.position)
        assert again.ranges_from(offset, 1)[1] == offset // 2 * 2 + 2
    if suffix == ".index" or segment == -1 or not clean:
        again.close()
        assert path.read_bytes() == sound


def test_files_of_unfinished_deletions_and_orphaned_indexes_are_removed(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL)
    fill(log, 3)
    log.close()
    strays = [
        "00000000000000000000.log.deleted",
        "00000000000000000777.index",
        "00000000000000000777.timeindex",
        "leader-epoch-checkpoint.tmp",
        "00000000000000000000.log.swap",
    ]
    for name in strays:
        (tmp_path / name).write_bytes(b"stray")
    again = open_log(tmp_path, SMALL, clean=True, recovery_point=6)
    assert again.log_end.offset == 6
    assert not set(strays) & set(os.listdir(tmp_path))


def test_epochs_are_read_from_the_batches_when_their_file_is_lost_or_damaged(
    tmp_path: Path,
) -> None:
    log = open_log(tmp_path, SMALL)
    for epoch in (1, 4, 5):
        fill(log, 5, epoch=epoch)
    text = (tmp_path / "leader-epoch-checkpoint").read_text()
    (tmp_path / "leader-epoch-checkpoint").write_text("0\n7\nnonsense\n")
    again = open_log(_crash(log), SMALL, recovery_point=log.segment_bases[-1])
    assert (tmp_path / "leader-epoch-checkpoint").read_text() == text
    (tmp_path / "leader-epoch-checkpoint").unlink()
    assert open_log(_crash(again), SMALL).latest_epoch == 5
    assert (tmp_path / "leader-epoch-checkpoint").read_text() == text


def test_epochs_after_the_cut_are_forgotten(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    fill(log, 2, epoch=1)
    fill(log, 1, epoch=2)
    os.truncate(_active(log), log.size_bytes - 1)
    again = open_log(_crash(log))
    assert (again.latest_epoch, again.log_end.offset) == (1, 4)


def test_a_folder_of_another_topic_is_a_storage_error(tmp_path: Path) -> None:
    open_log(tmp_path).close()
    with pytest.raises(StorageError, match="belongs to topic id") as refused:
        Log.open(
            tmp_path,
            topic_id=TOPIC_ID[::-1],
            config=SMALL,
            now_ms=NOW_MS,
            clean=True,
            recovery_point=0,
        )
    assert refused.value.code == ErrorCode.kafka_storage_error


def test_a_folder_that_cannot_be_read_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(StorageError):
        open_log(tmp_path / "file")


def test_the_start_of_the_log_comes_back_and_a_log_before_it_starts_over(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL)
    fill(log, 10)
    again = open_log(_crash(log), SMALL, log_start_offset=7)
    assert (again.log_start_offset, again.log_end.offset) == (7, 20)
    over = open_log(_crash(again), SMALL, log_start_offset=500)
    assert (over.log_start_offset, over.log_end) == (500, LogPosition(500, 500, 0))
    assert over.segment_bases == [500]


def test_a_log_begins_at_its_start_offset_when_it_is_made(tmp_path: Path) -> None:
    log = open_log(tmp_path, log_start_offset=42)
    assert append(log)[:2] == (42, 42)
    assert log.segment_path(42).name == "00000000000000000042.log"


def test_a_lost_folder_is_noticed_by_its_recovery_point(tmp_path: Path) -> None:
    log = open_log(tmp_path, clean=True, recovery_point=9)
    assert log.recovery is not None
    assert "9" in log.recovery.reason


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_whatever_byte_is_damaged_only_a_sound_prefix_survives(
    tmp_path: Path, data: st.DataObject
) -> None:
    shutil.rmtree(tmp_path, ignore_errors=True)
    log = open_log(tmp_path, SMALL)
    fill(log, 12, size=data.draw(st.integers(1, 400)))
    sound = contents(log)
    sizes = [log.segment_path(base).stat().st_size for base in log.segment_bases]
    at = data.draw(st.integers(0, len(sound) - 1))
    path_index = 0
    place = at
    while place >= sizes[path_index]:
        place -= sizes[path_index]
        path_index += 1
    path = log.segment_path(log.segment_bases[path_index])
    damaged = bytearray(path.read_bytes())
    damaged[place] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(damaged)
    again = open_log(_crash(log), SMALL)
    left = contents(again)
    # No CRC covers the leader epoch, and any epoch could have been the right one.
    header_at = at - at % (len(sound) // 12)
    if at - header_at in range(12, 16):
        assert len(left) == len(sound)
    else:
        assert left == sound[: len(left)]
        assert len(left) == header_at
    assert append(again).base_offset == again.log_end.offset - 1
