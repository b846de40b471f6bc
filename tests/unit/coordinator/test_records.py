"""Records of coordinators in Kafka's formats."""

from __future__ import annotations

import pytest

from mobula.actors.coordinator.group.records import (
    GroupKey,
    GroupRecord,
    GroupValue,
    MemberValue,
    OffsetKey,
    OffsetRecord,
    OffsetValue,
    Record,
    decode,
    encode,
)
from mobula.actors.coordinator.partitioner import java_hash, partition_for

MEMBERS = (
    MemberValue("m-1", None, "client", "/127.0.0.1", 60_000, 45_000, b"subscription", b"parts"),
    MemberValue("m-2", "instance", "", "/::1", 1, 2, b"", b""),
)


@pytest.mark.parametrize(
    "record",
    [
        OffsetRecord(OffsetKey("g", "topic", 3), OffsetValue(42, 7, "text", 1_700_000_000_000)),
        OffsetRecord(OffsetKey("g", "topic", 0), OffsetValue(0, -1, "", 5, expire_ms=9)),
        OffsetRecord(OffsetKey("g\N{LATIN SMALL LETTER U WITH DIAERESIS}", "t", 1), None),
        GroupRecord(GroupKey("g"), GroupValue("consumer", 3, "range", "m-1", 99, MEMBERS)),
        GroupRecord(GroupKey("g"), GroupValue("", 0, None, None, -1, ())),
        GroupRecord(GroupKey("g"), None),
    ],
)
def test_a_record_comes_out_as_it_went_in(record: Record) -> None:
    found = decode(*encode(record))
    if isinstance(record, OffsetRecord) and record.value is not None and record.value.expire_ms > 0:
        # Only that old version has the field, and it has no leader epoch.
        assert isinstance(found, OffsetRecord)
        assert found.value == record.value._replace(leader_epoch=-1)
    assert found == record


def test_the_bytes_are_those_that_kafka_writes() -> None:
    record = OffsetRecord(OffsetKey("grp", "top", 1), OffsetValue(258, 2, "m", 1))
    key, value = encode(record)
    assert key == bytes.fromhex("0001 0003 677270 0003 746f70 00000001")
    assert value == bytes.fromhex("0003 0000000000000102 00000002 0001 6d 0000000000000001")


def test_a_kind_that_is_not_known_is_passed_over() -> None:
    assert decode(b"\x00\x63anything", b"value") is None


@pytest.mark.parametrize("key", [b"", b"\x00", b"\x00\x01\x00\x09ab", b"\x00\x01\xff\xf0"])
def test_a_damaged_record_is_said_to_be(key: bytes) -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        decode(key, b"")


@pytest.mark.parametrize(
    ("text", "hashed", "partition"),
    [
        ("", 0, 0),
        ("a", 97, 47),
        ("hello", 99162322, 22),
        ("my-group", -1906497762, 12),
        ("polygenelubricants", -(2**31), 0),
    ],
)
def test_a_group_is_placed_by_javas_hash(text: str, hashed: int, partition: int) -> None:
    assert java_hash(text) == hashed
    assert partition_for(text, 50) == partition
