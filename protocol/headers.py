"""Request and response headers.

Version 1 of a request header is key, version, correlation id and client id; version 2
(every flexible version) puts tagged fields after them, and keeps the client id in the
old string format. Version 0 belonged to a request that no longer exists.

Invariant: `parse_request_header` raises nothing but DecodeError, whatever the bytes.
"""

from __future__ import annotations

import struct

import msgspec

from mobula.protocol.api import FIRST_FLEXIBLE, FIRST_TAGGED_RESPONSE_HEADER
from mobula.protocol.errors import DecodeError
from mobula.protocol.primitives import decode_utf8, skip_tags, truncated

_FIXED = struct.Struct(">hhih")
_UNKNOWN = struct.Struct(">hhi")
_unpack_fixed = _FIXED.unpack_from
_first_flexible = FIRST_FLEXIBLE.get
_pack_correlation = struct.Struct(">i").pack
_pack_correlation_and_no_tags = struct.Struct(">ix").pack


class RequestHeader(msgspec.Struct, frozen=True, gc=False):
    """`body_offset` is where the body starts in the frame."""

    api_key: int
    """An int, for it may be a key that `ApiKey` does not know."""
    api_version: int
    correlation_id: int
    client_id: str | None
    body_offset: int


def parse_request_header(frame: memoryview) -> RequestHeader:
    """The header of a frame; of an unknown API only as far as the correlation id."""
    try:
        key, version, correlation_id, length = _unpack_fixed(frame, 0)
    except struct.error:
        return _parse_short(frame)
    first_flexible = _first_flexible(key)
    if first_flexible is None:
        return RequestHeader(key, version, correlation_id, None, 8)
    if length >= 0:
        at = 10 + length
        if at > len(frame):
            raise truncated("the client id")
        client_id = decode_utf8(frame[10:at])
    elif length == -1:
        at = 10
        client_id = None
    else:
        raise DecodeError(f"a client id of length {length}")
    if version >= first_flexible:
        at = skip_tags(frame, at)
    return RequestHeader(key, version, correlation_id, client_id, at)


def _parse_short(frame: memoryview) -> RequestHeader:
    if len(frame) < 8:
        raise DecodeError(f"a frame of {len(frame)} bytes has no request header")
    key, version, correlation_id = _UNKNOWN.unpack_from(frame, 0)
    if key in FIRST_FLEXIBLE:
        raise truncated("the request header")
    return RequestHeader(key, version, correlation_id, None, 8)


def response_header(key: int, version: int, correlation_id: int) -> bytes:
    """What goes before a response's body. KeyError: no such API."""
    if version >= FIRST_TAGGED_RESPONSE_HEADER[key]:
        return _pack_correlation_and_no_tags(correlation_id)
    return _pack_correlation(correlation_id)
