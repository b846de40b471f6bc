"""Builders: kio's classes made from plain trees of dicts and lists.

A tree names fields as kio does and holds plain values (an int for a duration or a time in
milliseconds, 16 bytes for a UUID, an int for an error code). One tree serves every version
of a message: what a version does not have is dropped, what is missing has its default.

Invariant: a name that no version of the message has is refused, so that a slip of the pen
cannot become a default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from functools import cache
from typing import Any, TypeAlias
from uuid import UUID

from mobula.protocol.errors import ErrorCode
from mobula.protocol.primitives import NULL_UUID
from mobula.protocol.schema import EPOCH, FieldShape, shape_of

Tree: TypeAlias = Mapping[str, Any]
Builder: TypeAlias = Callable[[Tree], Any]
Convert: TypeAlias = Callable[[Any], Any]


def compile_builder(entity: type, known_elsewhere: Callable[[str, str], bool]) -> Builder:
    """A builder for this class; `known_elsewhere(class name, field)` asks other versions."""
    shapes = shape_of(entity)
    defaults = {shape.name: shape.default for shape in shapes}
    converts = {shape.name: _convert(shape, known_elsewhere) for shape in shapes}
    dropped: set[str] = set()

    def build(tree: Tree) -> Any:
        values = defaults.copy()
        for name, value in tree.items():
            convert = converts.get(name, _missing)
            if convert is _missing:
                if name not in dropped:
                    if not known_elsewhere(entity.__name__, name):
                        raise TypeError(f"no version of {entity.__name__} has a field {name}")
                    dropped.add(name)
            else:
                values[name] = value if convert is None else convert(value)
        return entity(**values)

    return build


def _missing(_: Any) -> Any:
    raise AssertionError("a mark, never called")


def _convert(shape: FieldShape, known_elsewhere: Callable[[str, str], bool]) -> Convert | None:
    """How a plain value becomes a field; None when it is one already."""
    if shape.entity is not None:
        convert: Convert | None = compile_builder(shape.entity, known_elsewhere)
    else:
        convert = _CONVERSIONS.get(shape.kafka_type or "")
    if shape.array:
        return _array_convert(convert)
    if convert is None or not shape.nullable:
        return convert
    return _nullable_convert(convert)


def _array_convert(convert: Convert | None) -> Convert:
    def build(items: Iterable[Any] | None) -> tuple[Any, ...] | None:
        if items is None:
            return None
        return tuple(items) if convert is None else tuple([convert(item) for item in items])

    return build


def _nullable_convert(convert: Convert) -> Convert:
    return lambda value: None if value is None else convert(value)


@cache
def _error_code(value: int) -> ErrorCode:
    return ErrorCode(value)


def _duration(value: int | timedelta) -> timedelta:
    return value if isinstance(value, timedelta) else timedelta(milliseconds=value)


def _time(value: int | datetime) -> datetime | None:
    if isinstance(value, datetime):
        return value
    return None if value == -1 else EPOCH + timedelta(milliseconds=value)


def _uuid(value: bytes | UUID | None) -> UUID | None:
    data = value.bytes if isinstance(value, UUID) else value
    return None if data is None or data == NULL_UUID else UUID(bytes=data)


_CONVERSIONS: dict[str, Convert] = {
    "error_code": _error_code,
    "timedelta_i32": _duration,
    "timedelta_i64": _duration,
    "datetime_i64": _time,
    "uuid": _uuid,
}
