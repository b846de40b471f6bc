"""Records of transactions in Kafka's formats."""

from __future__ import annotations

import pytest

from mobula.actors.coordinator.transaction.records import (
    State,
    TransactionRecord,
    TransactionValue,
    decode,
    encode,
)

NONE = frozenset[tuple[str, int]]()
SOME = frozenset({("a", 0), ("a", 2), ("b", 1)})


@pytest.mark.parametrize(
    "value",
    [
        None,
        TransactionValue(7, 0, 60_000, State.EMPTY, NONE, 5, -1),
        TransactionValue(7, 3, 60_000, State.ONGOING, SOME, 9, 8),
        TransactionValue(7, 3, 1, State.COMPLETE_COMMIT, NONE, 9, 8),
        TransactionValue(7, 3, 1, State.ONGOING, SOME, 9, 8, client_version=2),
        TransactionValue(7, 3, 1, State.PREPARE_ABORT, SOME, 9, 8, 6, 5, 2, 1),
        TransactionValue(7, 3, 1, State.EMPTY, NONE, 9, 8, previous_producer_id=6),
    ],
)
def test_a_record_comes_out_as_it_went_in(value: TransactionValue | None) -> None:
    record = TransactionRecord("an id", value)
    assert decode(*encode(record)) == record


def test_the_bytes_are_those_that_kafka_writes() -> None:
    value = TransactionValue(258, 1, 60_000, State.ONGOING, frozenset({("t", 3)}), 2, 1)
    key, data = encode(TransactionRecord("x", value))
    assert key == bytes.fromhex("0000 0001 78")
    assert data == bytes.fromhex(
        "0000 0000000000000102 0001 0000ea60 01"
        "00000001 0001 74 00000001 00000003"
        "0000000000000002 0000000000000001"
    )


def test_kinds_and_versions_that_are_not_known_are_passed_over() -> None:
    assert decode(b"\0\1rest", b"value") is None
    assert decode(b"\0\0\0\1x", b"\0\x09value") is None


@pytest.mark.parametrize("value", [b"", b"\0\0\0", b"\0\1" + bytes(15) + b"\x09"])
def test_a_damaged_record_is_said_to_be(value: bytes) -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        decode(b"\0\0\0\1x", value)
