"""One message of every kind, the same every time, with every field filled."""

from __future__ import annotations

import struct
from datetime import timedelta
from itertools import count
from typing import Any
from uuid import UUID

from kio.schema.request_header.v1 import RequestHeader as RequestHeaderV1
from kio.schema.request_header.v2 import RequestHeader as RequestHeaderV2
from kio.schema.response_header.v0 import ResponseHeader as ResponseHeaderV0
from kio.schema.response_header.v1 import ResponseHeader as ResponseHeaderV1

from mobula.protocol.errors import ErrorCode
from mobula.protocol.schema import EPOCH, FieldShape, shape_of
from tests.wire.served import kio_encode, request_class, response_class

CORRELATION_ID = 4711
CLIENT_ID = "client"


def sample(schema: Any) -> Any:
    """An instance whose values all differ, as far as their types allow."""
    return _entity(schema, count(1))


def _entity(schema: Any, numbers: count[int]) -> Any:
    return schema(**{shape.name: _field(shape, numbers) for shape in shape_of(schema)})


def _field(shape: FieldShape, numbers: count[int]) -> Any:
    value = (
        _entity(shape.entity, numbers)
        if shape.entity is not None
        else _primitive(shape, next(numbers))
    )
    return (value,) if shape.array else value


def _primitive(shape: FieldShape, number: int) -> Any:
    match shape.kafka_type:
        case "string":
            # Also a name that client software may have.
            return f"{shape.name.replace('_', '-')}-{number}"
        case "bytes" | "records":
            return f"{shape.name} {number}".encode()
        case "bool":
            return True
        case "uuid":
            return UUID(int=number << 64 | number)
        case "error_code":
            return ErrorCode(number % 50)
        case "timedelta_i32" | "timedelta_i64":
            return timedelta(milliseconds=number)
        case "datetime_i64":
            return EPOCH + timedelta(milliseconds=1_700_000_000_000 + number)
    return number


def request_frame(key: int, version: int) -> bytes:
    """As kio encodes the sample, with its header and length."""
    schema = request_class(key, version)
    header_schema: Any = RequestHeaderV2 if schema.__flexible__ else RequestHeaderV1
    header = header_schema(
        request_api_key=key,
        request_api_version=version,
        correlation_id=CORRELATION_ID,
        client_id=CLIENT_ID,
    )
    return _framed(kio_encode(header) + kio_encode(sample(schema)))


def response_frame(key: int, version: int) -> bytes:
    """As kio encodes the sample, with its header and length."""
    schema = response_class(key, version)
    tagged = schema.__header_schema__.__version__ == 1
    header_schema: Any = ResponseHeaderV1 if tagged else ResponseHeaderV0
    header = header_schema(correlation_id=CORRELATION_ID)
    return _framed(kio_encode(header) + kio_encode(sample(schema)))


def _framed(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data
