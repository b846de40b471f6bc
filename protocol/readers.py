"""Readers for kio's classes, compiled from their fields.

Invariant: on any bytes a reader returns an instance or raises DecodeError; no length makes
it allocate more than a fixed multiple of the bytes that are really there, and a message
has at most MAX_ITEMS items. (A reader is used by one thread at a time.)
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import timedelta
from functools import cache
from typing import Any, Final, TypeAlias
from uuid import UUID

from mobula.protocol.errors import DecodeError, ErrorCode
from mobula.protocol.primitives import (
    MAX_ITEMS,
    NULL_UUID,
    read_array_length,
    read_compact_length,
    read_compact_nullable_string,
    read_compact_string,
    read_nullable_string,
    read_string,
    read_tags,
    too_many_items,
    truncated,
)
from mobula.protocol.schema import EPOCH, FieldShape, is_flexible, shape_of

Reader: TypeAlias = Callable[[memoryview, int], tuple[Any, int]]
ItemsReader: TypeAlias = Callable[[memoryview, int, int], tuple[tuple[Any, ...], int]]

FIXED_FORMATS: Final = {
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "uint8": "B",
    "uint16": "H",
    "uint32": "I",
    "uint64": "Q",
    "float64": "d",
    "bool": "?",
}
_MAX_TIMEDELTA_MS: Final = timedelta.max // timedelta(milliseconds=1)


class _Budget:
    """How many items the message being read may still have."""

    __slots__ = ("items",)

    def __init__(self) -> None:
        self.items = MAX_ITEMS


@cache
def compile_reader(entity: type) -> Reader:
    """A reader that returns an instance of this message's class and where it ends."""
    budget = _Budget()
    read_message = _entity_reader(entity, budget)

    def read(buf: memoryview, at: int) -> tuple[Any, int]:
        budget.items = MAX_ITEMS
        return read_message(buf, at)

    return read


def _entity_reader(entity: type, budget: _Budget) -> Reader:
    flexible = is_flexible(entity)
    plain: list[tuple[str, Reader]] = []
    tagged: dict[int, tuple[str, Reader]] = {}
    absent: dict[str, Any] = {}
    for shape in shape_of(entity):
        if shape.tag is None:
            plain.append((shape.name, _field_reader(shape, flexible, budget)))
        else:
            tagged[shape.tag] = (shape.name, _field_reader(shape, flexible, budget))
            absent[shape.name] = shape.default

    def read(buf: memoryview, at: int) -> tuple[Any, int]:
        values = absent.copy()
        for name, read_field in plain:
            values[name], at = read_field(buf, at)
        if flexible:
            tags, at = read_tags(buf, at)
            for tag, start, end in tags:
                if tag in tagged:
                    name, read_field = tagged[tag]
                    values[name], stop = read_field(buf[:end], start)
                    if stop != end:
                        raise DecodeError(f"{name} is shorter than its tagged field")
        return entity(**values), at

    return read


def _field_reader(shape: FieldShape, flexible: bool, budget: _Budget) -> Reader:
    nullable = shape.nullable and not shape.array
    if shape.entity is not None:
        read = _entity_reader(shape.entity, budget)
        if nullable:
            read = _nullable_entity_reader(read)
    else:
        assert shape.kafka_type is not None
        read = _primitive_reader(shape.kafka_type, flexible=flexible, nullable=nullable)
    if shape.array:
        code = FIXED_FORMATS.get(shape.kafka_type or "")
        items_of = _item_by_item(read) if code is None else _packed(code)
        return _array_reader(shape, items_of, budget, flexible=flexible)
    return read


def _nullable_entity_reader(read_entity: Reader) -> Reader:
    def read(buf: memoryview, at: int) -> tuple[Any, int]:
        marker, at = _read_int8(buf, at)
        return (None, at) if marker < 0 else read_entity(buf, at)

    return read


def _item_by_item(read_item: Reader) -> ItemsReader:
    def read(buf: memoryview, at: int, count: int) -> tuple[tuple[Any, ...], int]:
        items = []
        for _ in range(count):
            item, at = read_item(buf, at)
            items.append(item)
        return tuple(items), at

    return read


def _packed(code: str) -> ItemsReader:
    size = struct.calcsize(">" + code)

    def read(buf: memoryview, at: int, count: int) -> tuple[tuple[Any, ...], int]:
        end = at + count * size
        if end > len(buf):
            raise truncated("an array")
        return struct.unpack_from(f">{count}{code}", buf, at), end

    return read


def _array_reader(
    shape: FieldShape, read_items: ItemsReader, budget: _Budget, *, flexible: bool
) -> Reader:
    read_length = read_compact_length if flexible else read_array_length

    def read(buf: memoryview, at: int) -> tuple[tuple[Any, ...] | None, int]:
        count, at = read_length(buf, at)
        if count < 0:
            if not shape.nullable:
                raise DecodeError(f"null for {shape.name}, which cannot be null")
            return None, at
        budget.items -= count
        if budget.items < 0:
            raise too_many_items(MAX_ITEMS - budget.items)
        return read_items(buf, at, count)

    return read


def _primitive_reader(kafka_type: str, *, flexible: bool, nullable: bool) -> Reader:
    match kafka_type:
        case "string":
            return _STRING_READERS[flexible, nullable]
        case "bytes" | "records":
            return _bytes_reader(flexible=flexible, nullable=nullable)
        case "uuid":
            return _read_uuid
        case "error_code":
            return _read_error_code
        case "timedelta_i32":
            return _read_timedelta_i32
        case "timedelta_i64":
            return _read_timedelta_i64
        case "datetime_i64":
            return _datetime_reader(nullable=nullable)
    return _fixed_reader(">" + FIXED_FORMATS[kafka_type])


def _fixed_reader(layout: str) -> Reader:
    packing = struct.Struct(layout)
    unpack, size = packing.unpack_from, packing.size

    def read(buf: memoryview, at: int) -> tuple[Any, int]:
        try:
            return unpack(buf, at)[0], at + size
        except struct.error:
            raise truncated("a number") from None

    return read


_read_int8 = _fixed_reader(">b")
_read_int16 = _fixed_reader(">h")
_read_int32 = _fixed_reader(">i")
_read_int64 = _fixed_reader(">q")

_STRING_READERS: Final[dict[tuple[bool, bool], Reader]] = {
    (True, True): read_compact_nullable_string,
    (True, False): read_compact_string,
    (False, True): read_nullable_string,
    (False, False): read_string,
}


def _bytes_reader(*, flexible: bool, nullable: bool) -> Reader:
    read_length = read_compact_length if flexible else read_array_length

    def read(buf: memoryview, at: int) -> tuple[bytes | None, int]:
        length, at = read_length(buf, at)
        if length < 0:
            if not nullable:
                raise DecodeError("null for bytes that cannot be null")
            return None, at
        return bytes(buf[at : at + length]), at + length

    return read


def _read_uuid(buf: memoryview, at: int) -> tuple[UUID | None, int]:
    data = bytes(buf[at : at + 16])
    if len(data) < 16:
        raise truncated("a UUID")
    return (None if data == NULL_UUID else UUID(bytes=data)), at + 16


def _read_error_code(buf: memoryview, at: int) -> tuple[ErrorCode, int]:
    code, at = _read_int16(buf, at)
    try:
        return ErrorCode(code), at
    except ValueError:
        raise DecodeError(f"{code} is not an error code") from None


def _read_timedelta_i32(buf: memoryview, at: int) -> tuple[timedelta, int]:
    value, at = _read_int32(buf, at)
    return timedelta(milliseconds=value), at


def _read_timedelta_i64(buf: memoryview, at: int) -> tuple[timedelta, int]:
    value, at = _read_int64(buf, at)
    # Clients say "for ever" with the largest int64, which no timedelta can hold.
    value = max(-_MAX_TIMEDELTA_MS, min(value, _MAX_TIMEDELTA_MS))
    return timedelta(milliseconds=value), at


def _datetime_reader(*, nullable: bool) -> Reader:
    def read(buf: memoryview, at: int) -> tuple[Any, int]:
        value, at = _read_int64(buf, at)
        if value == -1 and nullable:
            return None, at
        if value < 0:
            raise DecodeError(f"a time of {value} ms")
        try:
            return EPOCH + timedelta(milliseconds=value), at
        except OverflowError:
            raise DecodeError(f"a time of {value} ms") from None

    return read
