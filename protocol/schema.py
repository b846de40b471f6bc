"""What a kio class says about its wire format, in a form to compile codecs from.

kio gives us the messages of every API version as typed classes. Its own reader trusts
array lengths (one absurd length ends the process) and its writer is slow, so reading and
writing is compiled here from the classes' fields (`readers`, `writers`, `builders`).
"""

from __future__ import annotations

import dataclasses
from dataclasses import MISSING, dataclass
from datetime import UTC, datetime, timedelta
from types import NoneType, UnionType
from typing import Any, Final, get_args, get_origin

from mobula.protocol.errors import ErrorCode

EPOCH: Final = datetime.fromtimestamp(0, UTC)
MILLISECOND: Final = timedelta(milliseconds=1)

_IMPLICIT_DEFAULTS: Final[dict[str, Any]] = {
    **dict.fromkeys(("int8", "int16", "int32", "int64"), 0),
    **dict.fromkeys(("uint8", "uint16", "uint32", "uint64"), 0),
    "float64": 0.0,
    "bool": False,
    "string": "",
    "bytes": b"",
    "uuid": None,
    "error_code": ErrorCode.none,
    "timedelta_i32": timedelta(0),
    "timedelta_i64": timedelta(0),
    "datetime_i64": EPOCH,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldShape:
    """One field. Exactly one of `kafka_type` and `entity` is set: what it, or an item, is."""

    name: str
    kafka_type: str | None
    entity: type | None
    array: bool
    nullable: bool
    """The value may be null; of an array, the array (an item is never null)."""
    tag: int | None
    default: Any
    """The value when none is given. Null where the schema names none and null is allowed."""


def shape_of(entity: type) -> list[FieldShape]:
    """The fields of a kio class, in the order of the wire."""
    return [_field_shape(entity, field) for field in dataclasses.fields(entity)]


def is_flexible(entity: type) -> bool:
    return bool(entity.__flexible__)  # type: ignore[attr-defined]


def _field_shape(entity: type, field: dataclasses.Field[Any]) -> FieldShape:
    inner, nullable = _without_none(field.type)
    array = get_origin(inner) is tuple
    if array:
        inner, _ = _without_none(get_args(inner)[0])
    is_entity = dataclasses.is_dataclass(inner)
    kafka_type = None if is_entity else _kafka_type(entity, field)
    return FieldShape(
        name=field.name,
        kafka_type=kafka_type,
        entity=inner if is_entity else None,
        array=array,
        # A null UUID is the zero UUID, so that the wire knows no other null for it.
        nullable=nullable and (array or kafka_type != "uuid"),
        tag=field.metadata.get("tag"),
        default=_default(field, kafka_type, inner, array=array, nullable=nullable),
    )


def _kafka_type(entity: type, field: dataclasses.Field[Any]) -> str:
    kafka_type: str = field.metadata["kafka_type"]
    if kafka_type not in _IMPLICIT_DEFAULTS and kafka_type != "records":
        raise TypeError(f"{entity.__qualname__}.{field.name} is of unknown type {kafka_type}")
    return kafka_type


def _without_none(annotation: Any) -> tuple[Any, bool]:
    if get_origin(annotation) is not UnionType:
        return annotation, False
    members = [member for member in get_args(annotation) if member is not NoneType]
    if len(members) != 1:
        raise TypeError(f"a union of more than one type: {annotation}")
    return members[0], True


def _default(
    field: dataclasses.Field[Any],
    kafka_type: str | None,
    inner: Any,
    *,
    array: bool,
    nullable: bool,
) -> Any:
    if field.default is not MISSING:
        return field.default
    if array:
        return ()
    if nullable or kafka_type == "records":
        return None
    if kafka_type is None:
        return inner(**{shape.name: shape.default for shape in shape_of(inner)})
    return _IMPLICIT_DEFAULTS[kafka_type]
