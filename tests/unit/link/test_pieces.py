"""How a bag is cut for a Ray call."""

from __future__ import annotations

import pytest

from mobula.actors.link.pieces import (
    LIMIT_VARIABLE,
    RAISED_LIMIT_BYTES,
    piece_bytes,
    pieces_of,
)


@pytest.mark.parametrize("size", [0, 1, 98_304, 98_305, 400_000, 5_000_000])
def test_a_bag_is_cut_into_pieces_that_travel_inside_the_call(size: int) -> None:
    content = bytes(size)
    pieces = pieces_of(content, 98_304)
    assert b"".join(pieces) == content
    assert len(pieces) == 1 or all(len(piece) <= 98_304 for piece in pieces)


def test_more_than_six_pieces_go_through_the_object_store() -> None:
    assert [len(pieces_of(bytes(size), 10)) for size in (10, 11, 60, 61)] == [1, 2, 6, 1]


def test_a_process_goes_by_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(LIMIT_VARIABLE, raising=False)
    assert 90_000 < piece_bytes() < 100 * 1024
    monkeypatch.setenv(LIMIT_VARIABLE, str(RAISED_LIMIT_BYTES))
    assert 1_000_000 < piece_bytes() < RAISED_LIMIT_BYTES
