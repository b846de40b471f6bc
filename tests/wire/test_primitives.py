"""Varints, strings, arrays and tagged fields on their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mobula.protocol import primitives
from mobula.protocol.errors import DecodeError
from tests.wire.strategies import TEXT

READERS: list[Callable[[memoryview, int], tuple[Any, int]]] = [
    primitives.read_uvarint,
    primitives.read_compact_length,
    primitives.read_compact_string,
    primitives.read_compact_nullable_string,
    primitives.read_string,
    primitives.read_nullable_string,
    primitives.read_array_length,
    primitives.read_tags,
]


@given(st.integers(0, 0xFFFFFFFF))
def test_a_varint_comes_back(value: int) -> None:
    data = primitives.encode_uvarint(value)
    assert primitives.read_uvarint(memoryview(b"x" + data + b"y"), 1) == (value, 1 + len(data))


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "ends past"),
        (b"\x80\x80", "ends past"),
        (b"\x80\x80\x80\x80\x80\x01", "longer than 32 bits"),
        (b"\xff\xff\xff\xff\x1f", "longer than 32 bits"),
    ],
)
def test_a_varint_that_does_not_end_or_does_not_fit_is_refused(data: bytes, complaint: str) -> None:
    with pytest.raises(DecodeError, match=complaint):
        primitives.read_uvarint(memoryview(data), 0)


@given(st.none() | TEXT)
def test_a_nullable_string_comes_back_in_both_formats(value: str | None) -> None:
    old = primitives.encode_nullable_string(value)
    compact = primitives.encode_compact_nullable_string(value)
    assert primitives.read_nullable_string(memoryview(old), 0) == (value, len(old))
    assert primitives.read_compact_nullable_string(memoryview(compact), 0) == (value, len(compact))


@pytest.mark.parametrize(
    ("read", "data"),
    [(primitives.read_string, b"\xff\xff"), (primitives.read_compact_string, b"\0")],
)
def test_null_is_refused_where_it_is_not_allowed(
    read: Callable[[memoryview, int], tuple[str, int]], data: bytes
) -> None:
    with pytest.raises(DecodeError, match="cannot be null"):
        read(memoryview(data), 0)


@given(st.dictionaries(st.integers(0, 1000), st.binary(max_size=200), max_size=5))
def test_tagged_fields_come_back(fields: dict[int, bytes]) -> None:
    data = primitives.encode_tags(sorted(fields.items()))
    tags, end = primitives.read_tags(memoryview(data), 0)
    assert {tag: data[start:stop] for tag, start, stop in tags} == fields
    assert end == len(data) == primitives.skip_tags(memoryview(data), 0)


@settings(deadline=None, max_examples=300)
@given(st.sampled_from(READERS), st.binary(max_size=30), st.integers(0, 32))
def test_a_reader_ends_within_the_bytes_or_raises_a_decode_error(
    read: Callable[[memoryview, int], tuple[Any, int]], data: bytes, at: int
) -> None:
    try:
        _, end = read(memoryview(data), at)
    except DecodeError:
        return
    assert at < end <= len(data)
