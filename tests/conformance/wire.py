"""A client of raw requests: bytes out, a plain tree back.

Encoding and decoding are kio's own throughout, never the brokers' codecs: a bug in those
cannot hide by being on both ends.

Invariant: a connection has one request in flight, and every wait has a deadline.
"""

from __future__ import annotations

import dataclasses
import io
import socket
import struct
from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import Enum
from functools import cache
from typing import Any, TypeAlias
from uuid import UUID

from kio.index import load_request_schema, load_response_schema
from kio.schema.index import api_key_map, schema_name_map
from kio.serial import entity_reader, entity_writer

from mobula.protocol.messages import build_request
from mobula.protocol.schema import EPOCH, MILLISECOND

Json: TypeAlias = Any
"""What json.loads returns."""
Tree: TypeAlias = Mapping[str, Any]
"""A request by kio's field names; what is left out has its default."""

CLIENT_ID = "conformance"
_DEADLINE_S = 20.0


class ConnectionClosedError(Exception):
    """By the broker, in place of an answer."""


class Connection:
    def __init__(self, address: tuple[str, int]) -> None:
        self._socket = socket.create_connection(address, timeout=_DEADLINE_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._correlation_id = 0

    def close(self) -> None:
        self._socket.close()

    def send(self, key: int, version: int, body: bytes, client_id: str | None) -> int:
        """The correlation id to expect."""
        self._correlation_id += 1
        header = _request_header(key, version, self._correlation_id, client_id)
        try:
            self._socket.sendall(struct.pack(">i", len(header) + len(body)) + header + body)
        except (ConnectionResetError, BrokenPipeError):
            raise ConnectionClosedError from None
        return self._correlation_id

    def receive(self, key: int, version: int, correlation_id: int) -> bytes:
        """The body of the next response, which must be this one."""
        (length,) = struct.unpack(">i", self._exactly(4))
        frame = self._exactly(length)
        schema = load_response_schema(key, version)
        header_schema: Any = schema.__header_schema__
        header, end = entity_reader(header_schema)(frame, 0)
        assert header.correlation_id == correlation_id, "a response to another request"
        return frame[end:]

    def _exactly(self, count: int) -> bytes:
        found = bytearray()
        while len(found) < count:
            try:
                piece = self._socket.recv(count - len(found))
            except ConnectionResetError:
                piece = b""
            if not piece:
                raise ConnectionClosedError
            found += piece
        return bytes(found)


def encode_request(key: int, version: int, tree: Tree) -> bytes:
    """The body."""
    message = build_request(key, version, tree)
    return _encode(message)


def decode_response(key: int, version: int, body: bytes) -> Json:
    """Every byte of it; what is left over is an error."""
    message, size = entity_reader(load_response_schema(key, version))(body, 0)
    assert size == len(body), f"{len(body) - size} bytes too many: {body[size:].hex()}"
    return plain(message)


def with_null(body: bytes, text: str, *, flexible: bool) -> bytes:
    """The body with null in place of this string, also where null is not allowed."""
    data = text.encode()
    if flexible:
        assert len(data) < 127
        found, null = bytes([len(data) + 1]) + data, b"\0"
    else:
        found, null = struct.pack(">h", len(data)) + data, b"\xff\xff"
    assert body.count(found) == 1, f"{text} stands {body.count(found)} times in the request"
    return body.replace(found, null)


def is_flexible(key: int, version: int) -> bool:
    return bool(_nearest_request_schema(key, version).__flexible__)


def plain(value: Any) -> Json:
    """kio's classes as JSON: error codes by name, times in ms, ids and bytes as text."""
    if dataclasses.is_dataclass(value):
        return {
            field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
    match value:
        case Enum():
            return value.name
        case UUID():
            return str(value)
        case timedelta():
            return value // MILLISECOND
        case datetime():
            return (value - EPOCH) // MILLISECOND
        case tuple() | list():
            return [plain(item) for item in value]
        case bytes() | memoryview():
            return bytes(value).hex()
    return value


def _encode(message: Any) -> bytes:
    with io.BytesIO() as out:
        entity_writer(type(message))(out, message)
        return out.getvalue()


def _request_header(key: int, version: int, correlation_id: int, client_id: str | None) -> bytes:
    schema: Any = _nearest_request_schema(key, version).__header_schema__
    return _encode(
        schema(
            request_api_key=key,
            request_api_version=version,
            correlation_id=correlation_id,
            client_id=client_id,
        )
    )


@cache
def _nearest_request_schema(key: int, version: int) -> Any:
    """Of a version that does not exist, the nearest one's."""
    if key not in api_key_map:
        key, version = 18, 0
    known = sorted(schema_name_map[api_key_map[key]])
    return load_request_schema(key, min(max(version, known[0]), known[-1]))
