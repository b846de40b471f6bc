"""The captured frames, read and written by us."""

from __future__ import annotations

import pytest

from mobula.protocol import messages
from mobula.protocol.api import ApiKey
from mobula.protocol.api_versions import decode_api_versions_request
from mobula.protocol.fetch import decode_fetch_request
from mobula.protocol.frames import FrameReader
from mobula.protocol.headers import RequestHeader, parse_request_header, response_header
from mobula.protocol.produce import decode_produce_request
from tests.wire import golden
from tests.wire.samples import CLIENT_ID, CORRELATION_ID, sample
from tests.wire.served import request_class, response_class

FRAMES = golden.load()
VERSIONS = golden.captured_versions()
captured = pytest.mark.parametrize(
    ("key", "version"), VERSIONS, ids=[f"{k.name.lower()}-v{v}" for k, v in VERSIONS]
)


def cut(data: bytes) -> memoryview:
    """The one frame in these bytes, as a connection would receive it."""
    scratch = memoryview(bytearray(65536))
    reader = FrameReader(1 << 20, scratch)
    reader.get_buffer()[: len(data)] = data
    (frame,) = reader.buffer_updated(len(data))
    return frame


def test_every_captured_version_is_there() -> None:
    assert set(FRAMES) == {(kind, *v) for v in VERSIONS for kind in ("request", "response")}


@captured
def test_a_captured_request_is_read_from_its_first_to_its_last_byte(
    key: ApiKey, version: int
) -> None:
    frame = cut(FRAMES["request", key, version])
    header = parse_request_header(frame)
    assert header == RequestHeader(key, version, CORRELATION_ID, CLIENT_ID, header.body_offset)
    body = frame[header.body_offset :]
    expected = sample(request_class(key, version))
    assert messages.decode_request(key, version, body) == expected
    assert messages.encode(expected) == body
    match key:
        case ApiKey.PRODUCE:
            produce = decode_produce_request(version, body)
            assert produce.acks == expected.acks
            assert produce.topics[0][2][0][1] == expected.topic_data[0].partition_data[0].records
        case ApiKey.FETCH:
            fetch = decode_fetch_request(version, body)
            partition = expected.topics[0].partitions[0]
            assert fetch.min_bytes == expected.min_bytes
            assert fetch.topics[0][2][0].fetch_offset == partition.fetch_offset
        case ApiKey.API_VERSIONS:
            name = decode_api_versions_request(version, body).client_software_name
            assert name == getattr(expected, "client_software_name", "")


@captured
def test_a_captured_response_is_what_we_write(key: ApiKey, version: int) -> None:
    frame = cut(FRAMES["response", key, version])
    response = sample(response_class(key, version))
    assert response_header(key, version, CORRELATION_ID) + messages.encode(response) == frame
