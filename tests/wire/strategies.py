"""Hypothesis strategies for kio's classes, from their fields.

Not kio's own: those exist only when hypothesis was imported before kio.
"""

from __future__ import annotations

from datetime import timedelta
from functools import cache
from typing import Any

from hypothesis import strategies as st

from mobula.protocol.errors import ErrorCode
from mobula.protocol.schema import EPOCH, FieldShape, shape_of


def signed(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)


def text(max_size: int = 20) -> st.SearchStrategy[str]:
    return st.text(st.characters(codec="utf-8"), max_size=max_size)


# Long enough for lengths of two bytes.
TEXT = text() | st.sampled_from(["", "x" * 127, "ü" * 64, "y" * 300])
BYTES = st.binary(max_size=40) | st.sampled_from([b"", b"r" * 127, b"s" * 20_000])

_TYPES: dict[str, st.SearchStrategy[Any]] = {
    **{f"int{bits}": signed(bits) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": st.integers(0, (1 << bits) - 1) for bits in (8, 16, 32, 64)},
    "float64": st.floats(allow_nan=False, allow_infinity=False),
    "bool": st.booleans(),
    "string": TEXT,
    "bytes": BYTES,
    "records": BYTES,
    "uuid": st.none() | st.uuids(),
    "error_code": st.sampled_from(ErrorCode),
    "timedelta_i32": signed(32).map(lambda ms: timedelta(milliseconds=ms)),
    "timedelta_i64": signed(45).map(lambda ms: timedelta(milliseconds=ms)),
    "datetime_i64": st.integers(0, 1 << 42).map(lambda ms: EPOCH + timedelta(milliseconds=ms)),
}


@cache
def entities(schema: Any) -> st.SearchStrategy[Any]:
    """Instances of a kio class, every field filled."""
    fields = {shape.name: _field(shape) for shape in shape_of(schema)}
    return st.builds(schema, **fields)


def _field(shape: FieldShape) -> st.SearchStrategy[Any]:
    one: st.SearchStrategy[Any]
    if shape.entity is not None:
        one = st.deferred(lambda: entities(shape.entity))
    else:
        assert shape.kafka_type is not None
        one = _TYPES[shape.kafka_type]
    if shape.array:
        one = st.lists(one, max_size=3).map(tuple)
    # A tagged field is null by being absent, and kio cannot write it otherwise.
    if shape.nullable and (shape.tag is None or shape.default is None):
        one = st.none() | one
    if shape.tag is not None:
        one = st.just(shape.default) | one
    return one
