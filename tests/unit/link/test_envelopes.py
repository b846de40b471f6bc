"""Bags and answers survive the trip as bytes."""

from __future__ import annotations

import pytest

from mobula.actors.link.courier import NOT_TAKEN, Answer, Bag
from mobula.actors.link.envelopes import pack_answer, pack_bag, unpack_answer, unpack_bag

LARGEST = 2**64 - 1


@pytest.mark.parametrize(
    "bag",
    [
        Bag("broker-0/replica-0", 1, 2, 3, b"content"),
        Bag("", 0, 0, 0, b""),
        Bag("br\N{LATIN SMALL LETTER O WITH DIAERESIS}ker", LARGEST, LARGEST, LARGEST, bytes(1000)),
    ],
)
def test_a_bag_comes_out_as_it_went_in(bag: Bag) -> None:
    assert unpack_bag(pack_bag(bag)) == bag


@pytest.mark.parametrize("answer", [NOT_TAKEN, Answer(7), Answer(LARGEST, 2, 3, b"content")])
def test_an_answer_comes_out_as_it_went_in(answer: Answer) -> None:
    assert unpack_answer(pack_answer(answer)) == answer
