"""The metadata log: what was committed is there after any crash."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mobula.actors.controller.metadata_log import MetadataLog, MetadataLogError


def opened(directory: Path) -> tuple[MetadataLog, list[bytes]]:
    log = MetadataLog(directory)
    found = log.open()
    return log, found.snapshot + found.records


def only_log(directory: Path) -> Path:
    (path,) = directory.glob("*.log")
    return path


def test_a_new_log_is_empty(tmp_path: Path) -> None:
    log, records = opened(tmp_path / "log")
    assert records == []
    assert log.next_offset == 0


def test_what_was_committed_is_read_again_in_order(tmp_path: Path) -> None:
    log, _ = opened(tmp_path)
    log.commit([b"a", b"b"])
    log.commit([b"c"])
    log.close()
    again, records = opened(tmp_path)
    assert records == [b"a", b"b", b"c"]
    assert again.next_offset == 3
    again.commit([b"d"])
    again.close()
    assert opened(tmp_path)[1] == [b"a", b"b", b"c", b"d"]


def test_a_kill_at_any_byte_keeps_every_commit_that_was_whole(tmp_path: Path) -> None:
    source = tmp_path / "source"
    log, _ = opened(source)
    ends = [0]
    commits = [[b"first", b"second"], [b""], [os.urandom(20)], [b"MbMd" * 2]]
    for commit in commits:
        log.commit(commit)
        ends.append(only_log(source).stat().st_size)
    log.close()
    data = only_log(source).read_bytes()
    for size in range(len(data) + 1):
        folder = tmp_path / "copy"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        (folder / only_log(source).name).write_bytes(data[:size])
        whole = sum(end <= size for end in ends) - 1
        expected = [record for commit in commits[:whole] for record in commit]
        survivor, records = opened(folder)
        assert records == expected
        survivor.commit([b"after the crash"])
        survivor.close()
        assert opened(folder)[1] == [*expected, b"after the crash"]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_whatever_a_crash_left_of_the_last_frame_is_cut_off(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("log")
    log, _ = opened(folder)
    log.commit([b"kept"])
    start = only_log(folder).stat().st_size
    log.commit([b"x" * 200])
    log.close()
    path = only_log(folder)
    content = bytearray(path.read_bytes())
    # Sectors that never reached the disk read as zeros.
    first = data.draw(st.integers(start, len(content) - 1))
    last = data.draw(st.integers(first + 1, len(content)))
    content[first:last] = bytes(last - first)
    path.write_bytes(content)
    again, records = opened(folder)
    again.close()
    assert records in ([b"kept"], [b"kept", b"x" * 200])
    if any(content[start : start + 4]) is False:
        assert records == [b"kept"]


def test_damage_before_an_intact_frame_is_refused_and_nothing_is_cut(tmp_path: Path) -> None:
    log, _ = opened(tmp_path)
    log.commit([b"promised"])
    log.commit([b"promised too"])
    log.close()
    path = only_log(tmp_path)
    content = bytearray(path.read_bytes())
    content[14] ^= 1
    path.write_bytes(content)
    with pytest.raises(MetadataLogError, match="damaged at byte 0"):
        opened(tmp_path)
    assert path.read_bytes() == content


def test_a_snapshot_takes_the_place_of_the_records_before_it(tmp_path: Path) -> None:
    log, _ = opened(tmp_path)
    log.commit([b"a", b"b", b"c"])
    log.snapshot([b"image"])
    assert log.records_since_snapshot == 0
    log.commit([b"d"])
    log.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "00000000000000000002.snapshot",
        "00000000000000000003.log",
    ]
    again = MetadataLog(tmp_path)
    found = again.open()
    assert (found.snapshot_offset, found.snapshot, found.records) == (2, [b"image"], [b"d"])
    assert again.next_offset == 4


def test_a_kill_at_any_step_of_a_snapshot_loses_nothing(tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    log, _ = opened(before)
    log.commit([b"a", b"b", b"c"])
    log.close()
    shutil.copytree(before, after)
    log, _ = opened(after)
    log.snapshot([b"image"])
    log.close()
    (old_log,) = before.glob("*.log")
    (snapshot,) = after.glob("*.snapshot")
    (new_log,) = after.glob("*.log")
    steps = [
        {old_log.name: old_log, "00000000000000000002.tmp": snapshot},
        {old_log.name: old_log, snapshot.name: snapshot},
        {old_log.name: old_log, snapshot.name: snapshot, new_log.name: new_log},
        {snapshot.name: snapshot, new_log.name: new_log},
        {snapshot.name: snapshot},
    ]
    for number, files in enumerate(steps):
        folder = tmp_path / f"step-{number}"
        folder.mkdir()
        for name, source in files.items():
            shutil.copy(source, folder / name)
        log = MetadataLog(folder)
        found = log.open()
        assert log.next_offset == 3
        if snapshot.name in files:
            assert (found.snapshot, found.records) == ([b"image"], [])
        else:
            assert (found.snapshot, found.records) == ([], [b"a", b"b", b"c"])
        log.commit([b"d"])
        log.close()
        assert opened(folder)[1][-1] == b"d"
        assert not list(folder.glob("*.tmp"))


def test_a_second_snapshot_replaces_the_first(tmp_path: Path) -> None:
    log, _ = opened(tmp_path)
    log.commit([b"a"])
    log.snapshot([b"image 1"])
    log.commit([b"b"])
    log.snapshot([b"image 2"])
    log.close()
    assert len(list(tmp_path.iterdir())) == 2
    assert opened(tmp_path)[1] == [b"image 2"]


def test_a_damaged_snapshot_is_refused(tmp_path: Path) -> None:
    log, _ = opened(tmp_path)
    log.commit([b"a"])
    log.snapshot([b"image"])
    log.close()
    (path,) = tmp_path.glob("*.snapshot")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(MetadataLogError, match="is damaged"):
        opened(tmp_path)


def test_a_log_with_a_gap_is_refused(tmp_path: Path) -> None:
    log, _ = opened(tmp_path)
    log.commit([b"a"])
    log.snapshot([b"image"])
    log.commit([b"b"])
    log.close()
    for path in tmp_path.glob("*.snapshot"):
        path.unlink()
    with pytest.raises(MetadataLogError, match="offset 0 is missing"):
        opened(tmp_path)


def test_a_snapshot_is_due_when_the_log_outgrows_the_limit_and_the_last_image(
    tmp_path: Path,
) -> None:
    log, _ = opened(tmp_path)
    log.commit([b"x"] * 9)
    assert not log.wants_snapshot(10)
    log.commit([b"x"])
    assert log.wants_snapshot(10)
    log.snapshot([b"image"] * 30)
    log.commit([b"x"] * 29)
    assert not log.wants_snapshot(10)
    log.commit([b"x"])
    assert log.wants_snapshot(10)
