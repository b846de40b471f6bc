"""Writers for kio's classes, compiled from their fields.

A writer turns a value into its bytes. A value that does not fit its field (a number out
of range, null where there is none) is a bug of the caller, and raises what Python raises.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import cache
from operator import attrgetter, itemgetter
from typing import Any, Final, TypeAlias
from uuid import UUID

from mobula.protocol.primitives import (
    INT16,
    INT32,
    INT64,
    NO_TAGS,
    NULL_UUID,
    encode_compact_nullable_string,
    encode_compact_string,
    encode_nullable_string,
    encode_string,
    encode_tags,
    encode_uvarint,
)
from mobula.protocol.readers import FIXED_FORMATS
from mobula.protocol.schema import (
    EPOCH,
    MILLISECOND,
    FieldShape,
    is_flexible,
    shape_of,
)

Writer: TypeAlias = Callable[[Any], bytes]

_NULL_ENTITY: Final = b"\xff"
_ENTITY: Final = b"\x01"


@cache
def compile_writer(entity: type) -> Writer:
    """A writer for instances of this class."""
    flexible = is_flexible(entity)
    plain = [
        (shape.name, _field_writer(shape, flexible))
        for shape in shape_of(entity)
        if shape.tag is None
    ]
    values_of = _getter([name for name, _ in plain])
    writers = [write for _, write in plain]
    write_tags = _tags_writer(entity) if flexible else None

    def write(value: Any) -> bytes:
        parts = [write(part) for write, part in zip(writers, values_of(value), strict=True)]
        if write_tags is not None:
            parts.append(write_tags(value))
        return b"".join(parts)

    return write


def _getter(names: list[str]) -> Callable[[Any], Sequence[Any]]:
    match names:
        case []:
            return lambda _: ()
        case [name]:
            return lambda value: (getattr(value, name),)
    return attrgetter(*names)


def _tags_writer(entity: type) -> Writer:
    tagged = [
        (shape.tag, shape.name, shape.default, _field_writer(shape, True))
        for shape in shape_of(entity)
        if shape.tag is not None
    ]
    if not tagged:
        return lambda _: NO_TAGS
    tagged.sort(key=itemgetter(0))

    def write(value: Any) -> bytes:
        fields = []
        for tag, name, default, write_field in tagged:
            field = getattr(value, name)
            if field != default:
                fields.append((tag, write_field(field)))
        return encode_tags(fields)

    return write


def _field_writer(shape: FieldShape, flexible: bool) -> Writer:
    nullable = shape.nullable and not shape.array
    if shape.entity is not None:
        write = compile_writer(shape.entity)
        if nullable:
            write = _nullable_entity_writer(write)
    else:
        assert shape.kafka_type is not None
        write = _primitive_writer(shape.kafka_type, flexible=flexible, nullable=nullable)
    if shape.array:
        return _array_writer(shape, write, flexible=flexible)
    return write


def _nullable_entity_writer(write_entity: Writer) -> Writer:
    return lambda value: _NULL_ENTITY if value is None else _ENTITY + write_entity(value)


def _array_writer(shape: FieldShape, write_item: Writer, *, flexible: bool) -> Writer:
    def write(items: Sequence[Any] | None) -> bytes:
        if items is None:
            if not shape.nullable:
                raise TypeError(f"{shape.name} cannot be null")
            return b"\x00" if flexible else b"\xff\xff\xff\xff"
        count = encode_uvarint(len(items) + 1) if flexible else INT32.pack(len(items))
        return count + b"".join([write_item(item) for item in items])

    return write


def _primitive_writer(kafka_type: str, *, flexible: bool, nullable: bool) -> Writer:
    match kafka_type:
        case "string":
            return _STRING_WRITERS[flexible, nullable]
        case "bytes" | "records":
            return _bytes_writer(flexible=flexible, nullable=nullable)
        case "uuid":
            return _write_uuid
        case "error_code":
            return INT16.pack
        case "timedelta_i32":
            return _write_timedelta_i32
        case "timedelta_i64":
            return _write_timedelta_i64
        case "datetime_i64":
            return _write_datetime
    return struct.Struct(">" + FIXED_FORMATS[kafka_type]).pack


_STRING_WRITERS: Final[dict[tuple[bool, bool], Writer]] = {
    (True, True): encode_compact_nullable_string,
    (True, False): encode_compact_string,
    (False, True): encode_nullable_string,
    (False, False): encode_string,
}


def _bytes_writer(*, flexible: bool, nullable: bool) -> Writer:
    def write(value: bytes | None) -> bytes:
        if value is None:
            if not nullable:
                raise TypeError("bytes that cannot be null")
            return b"\x00" if flexible else b"\xff\xff\xff\xff"
        length = encode_uvarint(len(value) + 1) if flexible else INT32.pack(len(value))
        return length + value

    return write


def _write_uuid(value: UUID | None) -> bytes:
    return NULL_UUID if value is None else value.bytes


def _write_timedelta_i32(value: timedelta) -> bytes:
    return INT32.pack(value // MILLISECOND)


def _write_timedelta_i64(value: timedelta) -> bytes:
    return INT64.pack(value // MILLISECOND)


def _write_datetime(value: datetime | None) -> bytes:
    return INT64.pack(-1 if value is None else (value - EPOCH) // MILLISECOND)
