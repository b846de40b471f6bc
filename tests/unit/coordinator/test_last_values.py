"""What a coordinator keeps of its log."""

from __future__ import annotations

import pytest

from mobula.actors.coordinator.last_values import LastValues
from mobula.storage.errors import StorageError
from mobula.storage.records import NewRecord, build_batch


def batch(base_offset: int, *pairs: tuple[bytes | None, bytes | None], codec: int = 0) -> bytes:
    records = [NewRecord(1_700_000_000_000 + at, *pair) for at, pair in enumerate(pairs)]
    return bytes(build_batch(records, base_offset=base_offset, codec=codec))


@pytest.mark.parametrize("codec", range(5))
def test_the_last_value_of_each_key_counts_in_the_order_of_last_records(codec: int) -> None:
    found = LastValues()
    data = batch(0, (b"a", b"1"), (b"b", b"2"), (b"c", b"x" * 5000), codec=codec)
    data += batch(3, (b"a", b"3"), (None, b"no key"), (b"b", None), codec=codec)
    assert found.add(memoryview(data)) == (len(data), 6)
    assert list(found) == [(b"c", b"x" * 5000), (b"a", b"3"), (b"b", None)]
    assert found.records == 6


def test_a_batch_that_is_cut_is_left_for_the_next_read() -> None:
    found = LastValues()
    first, second = batch(0, (b"a", b"1")), batch(1, (b"b", b"2"))
    assert found.add(memoryview(first + second[:-1])) == (len(first), 1)
    assert found.add(memoryview(second)) == (len(second), 2)
    assert [key for key, _ in found] == [b"a", b"b"]


def test_control_batches_are_passed_over() -> None:
    control = build_batch([NewRecord(1, b"\0\0\0\1", b"\0\0\0\0\0\0")], control=True)
    found = LastValues()
    assert found.add(memoryview(control)) == (len(control), 1)
    assert list(found) == []


def test_damage_is_told() -> None:
    data = bytearray(batch(0, (b"a", b"1")))
    data[61] = 0x7E
    with pytest.raises(StorageError, match="past its batch"):
        LastValues().add(memoryview(data))
    data[16] = 1
    with pytest.raises(StorageError, match="no record batch"):
        LastValues().add(memoryview(data))
