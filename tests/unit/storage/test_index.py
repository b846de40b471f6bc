"""The offset and the time index, entry by entry."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mobula.storage.index import OffsetIndex, TimeIndex

BASE = 1000


def _offset_index(path: Path) -> OffsetIndex:
    return OffsetIndex(str(path), BASE)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "index"


def test_entries_are_big_endian_and_relative_to_the_base(path: Path) -> None:
    index = _offset_index(path)
    index.append(1005, 0)
    index.append(1009, 4242)
    index.flush()
    assert path.read_bytes() == struct.pack(">IIII", 5, 0, 9, 4242)
    times = TimeIndex(str(path) + ".time", BASE)
    times.append(1_750_000_000_000, 1009)
    times.flush()
    assert Path(str(path) + ".time").read_bytes() == struct.pack(">qI", 1_750_000_000_000, 9)


def test_entries_stay_in_memory_until_flush_and_are_found_all_the_same(path: Path) -> None:
    index = _offset_index(path)
    index.append(1005, 10)
    assert not path.exists()
    assert index.last() == (1005, 10)
    assert index.floor(1006) == (1005, 10)
    index.append(1010, 20)
    assert index.floor(1010) == (1010, 20)
    index.flush()
    assert path.stat().st_size == 16


def test_lookups_give_the_last_entry_not_above(path: Path) -> None:
    index = _offset_index(path)
    for entry in range(10):
        index.append(BASE + 10 * entry + 9, 100 * entry)
    assert index.floor(BASE + 8) is None
    assert index.floor(BASE + 9) == (BASE + 9, 0)
    assert index.floor(BASE + 45) == (BASE + 39, 300)
    assert index.floor(BASE + 1000) == (BASE + 99, 900)
    assert index.floor_position(0) == (BASE + 9, 0)
    assert index.floor_position(399) == (BASE + 39, 300)
    assert index.floor_position(10**6) == (BASE + 99, 900)


def test_a_reopened_index_goes_on(path: Path) -> None:
    index = _offset_index(path)
    index.append(1005, 10)
    index.flush()
    index.release()
    again = _offset_index(path)
    assert (again.entries, again.last(), again.suspect) == (1, (1005, 10), False)
    again.append(1010, 20)
    again.flush()
    assert path.stat().st_size == 16


def test_truncation_drops_the_offset_and_all_after_it(path: Path) -> None:
    index = _offset_index(path)
    for entry in range(10):
        index.append(BASE + entry, entry)
        if entry == 6:
            index.flush()
    index.truncate_to(BASE + 8)
    assert (index.entries, index.last()) == (8, (BASE + 7, 7))
    index.flush()
    assert path.stat().st_size == 8 * 8
    index.truncate_to(BASE + 3)
    assert (index.entries, path.stat().st_size) == (3, 3 * 8)
    index.append(BASE + 100, 100)
    index.flush()
    assert _offset_index(path).last() == (BASE + 100, 100)


def test_half_an_entry_or_no_file_is_suspect_until_it_is_cut(path: Path) -> None:
    assert _offset_index(path).suspect
    path.write_bytes(bytes(13))
    index = _offset_index(path)
    assert index.suspect
    index.cut(0)
    assert (index.suspect, path.stat().st_size) == (False, 0)
    assert not _offset_index(path).suspect


def test_a_failed_flush_can_be_cut_off(path: Path) -> None:
    index = _offset_index(path)
    index.append(BASE + 1, 1)
    index.flush()
    index.append(BASE + 2, 2)
    with path.open("ab") as file:
        file.write(b"\x00\x00\x00")
    index.cut(1)
    assert path.stat().st_size == 8
    assert index.last() == (BASE + 1, 1)


@given(st.sets(st.integers(0, 2**31), min_size=1, max_size=60), st.integers(0, 2**31))
def test_time_lookup_agrees_with_looking_at_every_entry(timestamps: set[int], wanted: int) -> None:
    index = TimeIndex(os.devnull, BASE, fresh=True)
    entries = [(timestamp, BASE + at) for at, timestamp in enumerate(sorted(timestamps))]
    for timestamp, offset in entries:
        index.append(timestamp, offset)
    expected = [entry for entry in entries if entry[0] <= wanted]
    assert index.floor(wanted) == (expected[-1] if expected else None)
