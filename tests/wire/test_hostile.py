"""Bytes that no client sends: every decoder says DecodeError, and memory stays bounded."""

from __future__ import annotations

import random
import struct
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mobula.protocol import messages
from mobula.protocol.api import ApiKey
from mobula.protocol.api_versions import decode_api_versions_request
from mobula.protocol.errors import DecodeError, KafkaError
from mobula.protocol.fetch import decode_fetch_request
from mobula.protocol.primitives import encode_uvarint
from mobula.protocol.produce import decode_produce_request
from tests.wire.samples import sample
from tests.wire.served import SERVED_VERSIONS, kio_encode, request_class

HAND_TUNED: dict[ApiKey, Callable[[int, memoryview], Any]] = {
    ApiKey.PRODUCE: decode_produce_request,
    ApiKey.FETCH: decode_fetch_request,
    ApiKey.API_VERSIONS: decode_api_versions_request,
}
ABSURD_LENGTHS = [
    struct.pack(">i", 2**31 - 1),
    struct.pack(">i", 2**24),
    struct.pack(">i", -2),
    struct.pack(">h", 2**15 - 1),
    b"\xff\xff\xff\xff\x07",
    b"\xff\xff\xff\xff\x0f",
    b"\x80\x80\x80\x08",
    b"\xff\xff\xff\xff\xff\xff",
]
served = pytest.mark.parametrize(
    ("key", "version"), SERVED_VERSIONS, ids=[f"{k.name.lower()}-v{v}" for k, v in SERVED_VERSIONS]
)


def try_all(key: ApiKey, version: int, data: bytes) -> None:
    """Through every decoder for this request; an error but DecodeError gets out.

    (KafkaError is an answer: ApiVersions refuses a name with it.)
    """
    body = memoryview(bytearray(data))
    for decode in (
        lambda: messages.decode_request(key, version, body),
        lambda: HAND_TUNED[key](version, body) if key in HAND_TUNED else None,
    ):
        with suppress(DecodeError, KafkaError):
            decode()


@served
@settings(deadline=None, max_examples=25)
@given(data=st.binary(max_size=120) | st.lists(st.sampled_from([0, 1, 2, 127, 255])).map(bytes))
def test_random_bytes_are_at_worst_a_decode_error(key: ApiKey, version: int, data: bytes) -> None:
    try_all(key, version, data)


@served
def test_an_absurd_length_anywhere_in_a_request_takes_no_memory(key: ApiKey, version: int) -> None:
    body = kio_encode(sample(request_class(key, version)))
    try_all(key, version, body)
    tracemalloc.start()
    try:
        for absurd in ABSURD_LENGTHS:
            for at in range(len(body)):
                try_all(key, version, body[:at] + absurd + body[at + len(absurd) :])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 500_000


@served
def test_every_cut_of_a_request_is_a_decode_error(key: ApiKey, version: int) -> None:
    body = kio_encode(sample(request_class(key, version)))
    for size in range(len(body)):
        with pytest.raises(DecodeError):
            messages.decode_request(key, version, memoryview(body)[:size])


@served
@pytest.mark.parametrize("filling", [b"\x01", b"\x00\x00\x00\x01"])
def test_a_large_request_takes_memory_in_proportion_to_its_bytes(
    key: ApiKey, version: int, filling: bytes
) -> None:
    # As many of the smallest items as fit, behind each plausible count.
    size = 20_000
    items = filling * (size // len(filling))
    try_all(key, version, b"")
    for head in (b"", struct.pack(">i", size // 8), b"\xa0\x9c\x01"):
        for lead in (0, 7, 25):
            tracemalloc.start()
            try:
                try_all(key, version, bytes(lead) + head + items)
                _, peak = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
            assert peak < 100 * size


def test_random_changes_of_real_requests_are_at_worst_a_decode_error() -> None:
    noise = random.Random(4).randbytes(64)
    for key, version in SERVED_VERSIONS:
        body = kio_encode(sample(request_class(key, version)))
        for at in range(0, len(body), 3):
            changed = bytearray(body)
            changed[at] ^= noise[at % len(noise)]
            changed[(at * 7 + 1) % len(body)] = noise[(at + 1) % len(noise)]
            try_all(key, version, bytes(changed))


def test_many_small_items_are_decoded_whole() -> None:
    topics = [{"name": f"topic-{number}"} for number in range(50_000)]
    body = messages.encode(messages.build_request(ApiKey.METADATA, 12, {"topics": topics}))
    assert len(messages.decode_request(ApiKey.METADATA, 12, body).topics) == 50_000


def varint_array(count: int, item: bytes) -> bytes:
    return encode_uvarint(count + 1) + item * count


@pytest.mark.parametrize(
    ("key", "version", "body"),
    [
        (ApiKey.METADATA, 9, varint_array(2_000_000, b"\x01\x00")),
        (ApiKey.DELETE_TOPICS, 4, varint_array(5_000_000, b"\x01")),
        (
            ApiKey.DESCRIBE_LOG_DIRS,
            2,
            varint_array(9, b"\x01" + varint_array(90_000, bytes(4)) + b"\0"),
        ),
        (ApiKey.PRODUCE, 9, bytes(7) + varint_array(1_000_000, b"\x01\x01\x00")),
        (
            ApiKey.PRODUCE,
            9,
            bytes(7) + varint_array(9, b"\x01" + varint_array(90_000, bytes(6)) + b"\0"),
        ),
        (ApiKey.PRODUCE, 8, b"\xff\xff" + bytes(6) + struct.pack(">i", 500_000) + bytes(3_000_000)),
        (ApiKey.FETCH, 12, bytes(25) + varint_array(1_000_000, b"\x01\x01\x00")),
        (ApiKey.FETCH, 12, bytes(25) + b"\x01" + varint_array(1_000_000, b"\x01\x01\x00")),
        (ApiKey.FETCH, 7, bytes(25) + struct.pack(">i", 500_000) + bytes(3_000_000)),
        (ApiKey.FETCH, 7, bytes(29) + struct.pack(">i", 500_000) + bytes(3_000_000)),
    ],
)
def test_a_message_of_millions_of_items_is_refused_before_they_are_made(
    key: ApiKey, version: int, body: bytes
) -> None:
    decode = HAND_TUNED.get(key, partial(messages.decode_request, key))
    view = memoryview(body)
    tracemalloc.start()
    try:
        with pytest.raises(DecodeError, match="items in one message, more than the 250000"):
            decode(version, view)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 60_000_000
