"""Request and response headers, against kio's and against garbage."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.schema.request_header.v1 import RequestHeader as HeaderV1
from kio.schema.request_header.v2 import RequestHeader as HeaderV2
from kio.schema.response_header.v0 import ResponseHeader as ResponseHeaderV0
from kio.schema.response_header.v1 import ResponseHeader as ResponseHeaderV1

from mobula.protocol.api import ApiKey, request_header_version, response_header_version
from mobula.protocol.errors import DecodeError
from mobula.protocol.headers import RequestHeader, parse_request_header, response_header
from tests.wire.served import kio_encode
from tests.wire.strategies import TEXT, signed

KEYS = st.sampled_from(ApiKey)
BODY = b"body"


def frame_of(data: bytes) -> memoryview:
    return memoryview(bytearray(data))


@settings(deadline=None)
@given(KEYS, st.integers(0, 20), signed(32), st.none() | TEXT)
def test_a_header_of_every_version_parses_up_to_its_body(
    key: ApiKey, version: int, correlation_id: int, client_id: str | None
) -> None:
    schema: Any = HeaderV2 if request_header_version(key, version) == 2 else HeaderV1
    header = schema(
        request_api_key=key,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    data = kio_encode(header)
    parsed = parse_request_header(frame_of(data + BODY))
    assert parsed == RequestHeader(key, version, correlation_id, client_id, len(data))


@settings(deadline=None)
@given(KEYS, st.integers(0, 20), signed(32))
def test_a_response_header_is_what_kio_writes(key: ApiKey, version: int, number: int) -> None:
    schema: Any = ResponseHeaderV1 if response_header_version(key, version) else ResponseHeaderV0
    assert response_header(key, version, number) == kio_encode(schema(correlation_id=number))


def test_tagged_fields_of_a_header_are_skipped() -> None:
    tags = b"\x02" + b"\x00\x01a" + b"\x90\x01\x82\x01" + bytes(130)
    data = struct.pack(">hhihs", ApiKey.METADATA, 12, 7, 1, b"c") + tags
    parsed = parse_request_header(frame_of(data + BODY))
    assert parsed == RequestHeader(ApiKey.METADATA, 12, 7, "c", len(data))


@pytest.mark.parametrize("data", [struct.pack(">hhi", 12345, 3, 99), b"\x30\x39\x00\x03" * 9])
def test_an_unknown_api_parses_as_far_as_its_correlation_id(data: bytes) -> None:
    parsed = parse_request_header(frame_of(data))
    assert (parsed.api_key, parsed.api_version) == (12345, 3)
    assert parsed.correlation_id == struct.unpack_from(">i", data, 4)[0]
    assert (parsed.client_id, parsed.body_offset) == (None, 8)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "a frame of 0 bytes has no request header"),
        (b"\x00" * 7, "a frame of 7 bytes has no request header"),
        (struct.pack(">hhi", 3, 1, 7), "the request header ends past"),
        (struct.pack(">hhih", 3, 1, 7, 5) + b"abc", "the client id ends past"),
        (struct.pack(">hhih", 3, 1, 7, -2), "a client id of length -2"),
        (struct.pack(">hhih", 3, 1, 7, 2) + b"\xff\xfe", "not UTF-8"),
        (struct.pack(">hhih", 3, 12, 7, -1), "a list of tagged fields ends past"),
        (struct.pack(">hhih", 3, 12, 7, -1) + b"\xff\xff\xff\xff\x7f", "longer than 32 bits"),
        (struct.pack(">hhih", 3, 12, 7, -1) + b"\x01\x00\x05abc", "tagged field 0 ends past"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", None),
    ],
)
def test_garbage_is_a_decode_error_that_says_what_is_wrong(
    data: bytes, complaint: str | None
) -> None:
    if complaint is None:
        # A TLS hello is an unknown API, which is refused later.
        assert parse_request_header(frame_of(data)).api_key == 0x1603
        return
    with pytest.raises(DecodeError, match=complaint):
        parse_request_header(frame_of(data))


@settings(deadline=None, max_examples=500)
@given(KEYS.map(lambda key: struct.pack(">h", key)) | st.just(b""), st.binary(max_size=60))
def test_any_bytes_parse_or_are_a_decode_error(key: bytes, rest: bytes) -> None:
    try:
        header = parse_request_header(frame_of(key + rest))
    except DecodeError:
        return
    assert 8 <= header.body_offset <= len(key) + len(rest)
