"""Open transactions, the last stable offset, and the index of aborted ones."""

from __future__ import annotations

import pytest

from mobula.storage.transactions import (
    ENTRY_BYTES,
    AbortedTransaction,
    Transactions,
    aborted_between,
    iter_aborted,
    pack_aborted,
)


def test_without_transactions_all_that_is_committed_is_stable() -> None:
    assert Transactions().last_stable(42) == 42


def test_an_open_transaction_holds_everything_after_its_begin() -> None:
    transactions = Transactions()
    transactions.began(1, 10)
    transactions.began(2, 12)
    transactions.began(1, 14)
    assert transactions.last_stable(20) == 10
    transactions.ended(1, 20, aborted=False)
    transactions.high_watermark_moved(21)
    assert transactions.last_stable(21) == 12


def test_what_ended_is_stable_only_when_its_marker_is_committed() -> None:
    transactions = Transactions()
    transactions.began(1, 10)
    transactions.ended(1, 20, aborted=False)
    transactions.high_watermark_moved(20)
    assert transactions.last_stable(20) == 10
    transactions.high_watermark_moved(21)
    assert transactions.last_stable(21) == 21


def test_the_high_watermark_bounds_what_is_stable() -> None:
    transactions = Transactions()
    transactions.began(1, 30)
    assert transactions.last_stable(20) == 20


def test_only_aborted_transactions_are_noted() -> None:
    transactions = Transactions()
    transactions.began(1, 10)
    transactions.began(2, 12)
    assert transactions.ended(2, 15, aborted=True) == AbortedTransaction(2, 12, 15, 10)
    assert transactions.ended(1, 16, aborted=False) is None
    transactions.began(3, 17)
    assert transactions.ended(3, 18, aborted=True) == AbortedTransaction(3, 17, 18, 19)


def test_a_marker_without_a_transaction_says_nothing() -> None:
    transactions = Transactions()
    assert transactions.ended(1, 5, aborted=True) is None
    assert transactions.last_stable(6) == 6


def test_a_failed_write_can_be_undone() -> None:
    transactions = Transactions()
    transactions.began(1, 10)
    before = transactions.copy()
    transactions.ended(1, 20, aborted=True)
    transactions.began(2, 21)
    assert before.last_stable(99) == 10
    assert 1 in before
    assert 2 not in before


def test_entries_have_kafkas_format() -> None:
    entry = AbortedTransaction(7, 10, 20, 15)
    data = pack_aborted(entry)
    assert data == bytes.fromhex(
        "0000 0000000000000007 000000000000000a 0000000000000014 000000000000000f"
    )
    assert len(data) == ENTRY_BYTES
    assert list(iter_aborted(data + data[:-1])) == [entry]


def test_an_index_of_a_later_version_is_not_guessed_at() -> None:
    with pytest.raises(ValueError, match="version 1"):
        list(iter_aborted(b"\0\1" + bytes(ENTRY_BYTES - 2)))


@pytest.mark.parametrize(
    ("start", "end", "producers", "whole"),
    [
        (0, 100, [1, 2, 3], False),
        (0, 10, [], True),
        (0, 11, [1], True),
        (21, 100, [2, 3], False),
        (20, 21, [1, 2], True),
        (51, 60, [], False),
    ],
)
def test_a_fetch_is_told_of_the_aborted_transactions_in_its_range(
    start: int, end: int, producers: list[int], whole: bool
) -> None:
    index = [
        AbortedTransaction(1, 10, 20, 12),
        AbortedTransaction(2, 12, 30, 31),
        AbortedTransaction(3, 40, 50, 51),
    ]
    found, ends = aborted_between(index, start, end)
    assert [entry.producer_id for entry in found] == producers
    assert ends is whole
