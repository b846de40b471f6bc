"""Produce (key 0, v3-13): the request's decoder and the response's encoder.

Records stay views over the frame; nothing here looks into them.

Versions: v5 log start offset; v8 record errors and error message (KIP-467); v9 flexible;
v10 current leader and node endpoints (KIP-951); v13 topic ids instead of names (KIP-516).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from mobula.protocol.endpoints import encode_endpoint_tags
from mobula.protocol.errors import DecodeError
from mobula.protocol.primitives import (
    INT32,
    MAX_ITEMS,
    NO_TAGS,
    decode_utf8,
    encode_compact_nullable_string,
    encode_compact_string,
    encode_nullable_string,
    encode_string,
    encode_tags,
    encode_uvarint,
    read_array_length,
    read_compact_length,
    read_compact_nullable_string,
    read_nullable_string,
    read_string,
    skip_tags,
    too_many_items,
    truncated,
)

VERSIONS = range(3, 14)
FIRST_FLEXIBLE = 9
FIRST_WITH_TOPIC_IDS = 13

PartitionData: TypeAlias = tuple[int, memoryview | None]
"""Partition index and records."""
TopicData: TypeAlias = tuple[str | None, bytes | None, list[PartitionData]]
"""Name (to v12) or topic id (from v13), and partitions."""


class ProduceRequest(msgspec.Struct, frozen=True, gc=False):
    transactional_id: str | None
    acks: int
    timeout_ms: int
    topics: list[TopicData]


class PartitionResponse(msgspec.Struct, frozen=True, gc=False):
    """What became of one partition's records. Later fields are dropped where a version
    does not have them."""

    index: int
    error_code: int = 0
    base_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    record_errors: Sequence[tuple[int, str | None]] = ()
    """(index of the record in its batch, message)"""
    error_message: str | None = None
    current_leader: tuple[int, int] | None = None
    """(leader id, leader epoch)"""


TopicResponse: TypeAlias = tuple[str | None, bytes | None, Sequence[PartitionResponse]]
"""Name or topic id, as the request had it, and partitions."""

_unpack_acks_timeout = struct.Struct(">hi").unpack_from
_unpack_index_length = struct.Struct(">ii").unpack_from
_unpack_index = struct.Struct(">i").unpack_from


def decode_produce_request(version: int, body: memoryview) -> ProduceRequest:
    """What follows the request is ignored, as Kafka does. DecodeError: the bytes do not begin
    with a Produce request of this version."""
    try:
        if version >= FIRST_FLEXIBLE:
            return _decode_flexible(version, body)
        return _decode_old(version, body)
    except (IndexError, struct.error):
        raise truncated(f"a Produce request v{version}") from None


def _decode_flexible(version: int, body: memoryview) -> ProduceRequest:
    # Every length is tried first as the single byte it nearly always is.
    by_id = version >= FIRST_WITH_TOPIC_IDS
    size = len(body)
    if body[0]:
        transactional_id, at = read_compact_nullable_string(body, 0)
    else:
        transactional_id, at = None, 1
    acks, timeout_ms = _unpack_acks_timeout(body, at)
    topic_count, at = _array_length(body, at + 6)
    name: str | None = None
    topic_id: bytes | None = None
    topics: list[TopicData] = []
    items = topic_count
    for _ in range(topic_count):
        if by_id:
            topic_id = bytes(body[at : at + 16])
            at += 16
        else:
            length = body[at]
            if 0 < length < 0x80:
                start = at + 1
            else:
                length, start = read_compact_length(body, at)
                length += 1
                if not length:
                    raise DecodeError("null for a topic's name")
            at = start + length - 1
            if at > size:
                raise truncated("a topic's name")
            name = decode_utf8(body[start:at])
        partition_count, at = _array_length(body, at)
        items += partition_count
        if items > MAX_ITEMS:
            raise too_many_items(items)
        partitions: list[PartitionData] = []
        for _ in range(partition_count):
            (index,) = _unpack_index(body, at)
            length, start = read_compact_length(body, at + 4)
            if length < 0:
                partitions.append((index, None))
                at = start
            else:
                at = start + length
                partitions.append((index, body[start:at]))
            at = skip_tags(body, at) if body[at] else at + 1
        topics.append((name, topic_id, partitions))
        at = skip_tags(body, at) if body[at] else at + 1
    skip_tags(body, at)
    return ProduceRequest(transactional_id, acks, timeout_ms, topics)


def _array_length(body: memoryview, at: int) -> tuple[int, int]:
    length = body[at]
    if 0 < length < 0x80:
        return length - 1, at + 1
    length, at = read_compact_length(body, at)
    if length < 0:
        raise DecodeError("null for an array that cannot be null")
    return length, at


def _decode_old(version: int, body: memoryview) -> ProduceRequest:
    size = len(body)
    transactional_id, at = read_nullable_string(body, 0)
    acks, timeout_ms = _unpack_acks_timeout(body, at)
    topic_count, at = _old_array_length(body, at + 6)
    topics: list[TopicData] = []
    items = topic_count
    for _ in range(topic_count):
        name, at = read_string(body, at)
        partition_count, at = _old_array_length(body, at)
        items += partition_count
        if items > MAX_ITEMS:
            raise too_many_items(items)
        partitions: list[PartitionData] = []
        for _ in range(partition_count):
            index, length = _unpack_index_length(body, at)
            start = at + 8
            if length < 0:
                if length != -1:
                    raise DecodeError(f"records of length {length}")
                partitions.append((index, None))
                at = start
            else:
                at = start + length
                if at > size:
                    raise truncated(f"a batch of {length} bytes")
                partitions.append((index, body[start:at]))
        topics.append((name, None, partitions))
    return ProduceRequest(transactional_id, acks, timeout_ms, topics)


def _old_array_length(body: memoryview, at: int) -> tuple[int, int]:
    count, at = read_array_length(body, at)
    if count < 0:
        raise DecodeError("null for an array that cannot be null")
    return count, at


_pack_v3 = struct.Struct(">ihqq").pack
_pack_v5 = struct.Struct(">ihqqq").pack
_pack_plain_v8 = struct.Struct(">ihqqq6s").pack
_pack_plain_v9 = struct.Struct(">ihqqq3s").pack
_pack_leader = struct.Struct(">iix").pack
_NOTHING_MORE_V8 = b"\x00\x00\x00\x00\xff\xff"
_NOTHING_MORE_V9 = b"\x01\x00\x00"


def encode_produce_response(
    version: int,
    topics: Sequence[TopicResponse],
    throttle_ms: int = 0,
    node_endpoints: Sequence[tuple[int, str, int, str | None]] = (),
) -> bytes:
    """The body of a response. Endpoints are (node id, host, port, rack)."""
    if version < FIRST_FLEXIBLE:
        return _encode_old(version, topics, throttle_ms)
    parts = [encode_uvarint(len(topics) + 1)]
    for name, topic_id, partitions in topics:
        if version >= FIRST_WITH_TOPIC_IDS:
            assert topic_id is not None
            parts.append(topic_id)
        else:
            assert name is not None
            parts.append(encode_compact_string(name))
        parts.append(encode_uvarint(len(partitions) + 1))
        parts += [_encode_partition(version, partition) for partition in partitions]
        parts.append(NO_TAGS)
    parts.append(INT32.pack(throttle_ms))
    parts.append(encode_endpoint_tags(node_endpoints if version >= 10 else ()))
    return b"".join(parts)


def _encode_partition(version: int, partition: PartitionResponse) -> bytes:
    record_errors = partition.record_errors
    error_message = partition.error_message
    leader = partition.current_leader
    plain = not record_errors and error_message is None and leader is None
    fixed = _pack_plain_v9(
        partition.index,
        partition.error_code,
        partition.base_offset,
        partition.log_append_time_ms,
        partition.log_start_offset,
        _NOTHING_MORE_V9 if plain else b"",
    )
    if plain:
        return fixed
    parts = [fixed[:-3], encode_uvarint(len(record_errors) + 1)]
    for index, message in record_errors:
        parts += (INT32.pack(index), encode_compact_nullable_string(message), NO_TAGS)
    parts.append(encode_compact_nullable_string(error_message))
    if leader is None or leader == (-1, -1) or version < 10:
        parts.append(NO_TAGS)
    else:
        parts.append(encode_tags([(0, _pack_leader(*leader))]))
    return b"".join(parts)


def _encode_old(version: int, topics: Sequence[TopicResponse], throttle_ms: int) -> bytes:
    parts = [INT32.pack(len(topics))]
    for name, _, partitions in topics:
        assert name is not None
        parts += (encode_string(name), INT32.pack(len(partitions)))
        parts += [_encode_old_partition(version, partition) for partition in partitions]
    parts.append(INT32.pack(throttle_ms))
    return b"".join(parts)


def _encode_old_partition(version: int, partition: PartitionResponse) -> bytes:
    head = (
        partition.index,
        partition.error_code,
        partition.base_offset,
        partition.log_append_time_ms,
    )
    if version < 5:
        return _pack_v3(*head)
    if version < 8:
        return _pack_v5(*head, partition.log_start_offset)
    if not partition.record_errors and partition.error_message is None:
        return _pack_plain_v8(*head, partition.log_start_offset, _NOTHING_MORE_V8)
    parts = [
        _pack_v5(*head, partition.log_start_offset),
        INT32.pack(len(partition.record_errors)),
    ]
    for index, message in partition.record_errors:
        parts += (INT32.pack(index), encode_nullable_string(message))
    parts.append(encode_nullable_string(partition.error_message))
    return b"".join(parts)
