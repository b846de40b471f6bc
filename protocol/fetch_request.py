"""Fetch requests (key 1, v4-18).

Versions: v5 log start offset; v7 sessions (KIP-227); v9 leader epoch; v11 rack (KIP-392);
v12 flexible, last fetched epoch; v13 topic ids (KIP-516); v15 replica state instead of
replica id (KIP-903); v17 directory id of a replica; v18 high watermark of a replica.
"""

from __future__ import annotations

import struct
from typing import Final, TypeAlias

import msgspec

from mobula.protocol.errors import DecodeError
from mobula.protocol.primitives import (
    MAX_ITEMS,
    NULL_UUID,
    read_array_length,
    read_compact_length,
    read_compact_nullable_string,
    read_compact_string,
    read_string,
    read_tags,
    skip_tags,
    too_many_items,
    truncated,
)

VERSIONS = range(4, 19)
FIRST_FLEXIBLE: Final = 12
FIRST_WITH_TOPIC_IDS: Final = 13
HIGH_WATERMARK_UNSUPPORTED: Final = (1 << 63) - 1


class FetchPartition(msgspec.Struct, frozen=True, gc=False):
    """One partition of a fetch; -1 where a version does not say."""

    index: int
    current_leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int
    max_bytes: int
    replica_directory_id: bytes | None = None
    high_watermark: int = HIGH_WATERMARK_UNSUPPORTED


FetchTopic: TypeAlias = tuple[str | None, bytes | None, list[FetchPartition]]
"""Name (to v12) or topic id (from v13), and partitions."""
ForgottenTopic: TypeAlias = tuple[str | None, bytes | None, tuple[int, ...]]


class FetchRequest(msgspec.Struct, frozen=True, gc=False):
    replica_id: int
    """-1 for a consumer."""
    replica_epoch: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    session_id: int
    session_epoch: int
    topics: list[FetchTopic]
    forgotten: list[ForgottenTopic]
    rack_id: str
    cluster_id: str | None


_unpack_head_v4 = struct.Struct(">iiiib").unpack_from
_unpack_head_v7 = struct.Struct(">iiiibii").unpack_from
_unpack_head_v15 = struct.Struct(">iiibii").unpack_from
_unpack_partition_v4 = struct.Struct(">iqi").unpack_from
_unpack_partition_v5 = struct.Struct(">iqqi").unpack_from
_unpack_partition_v9 = struct.Struct(">iiqqi").unpack_from
_unpack_partition_v12 = struct.Struct(">iiqiqi").unpack_from
_unpack_int64 = struct.Struct(">q").unpack_from
_unpack_replica_state = struct.Struct(">iq").unpack_from


def decode_fetch_request(version: int, body: memoryview) -> FetchRequest:
    """What follows the request is ignored, as Kafka does. DecodeError: the bytes do not begin
    with a Fetch request of this version."""
    try:
        if version >= FIRST_FLEXIBLE:
            return _decode_flexible(version, body)
        return _decode_old(version, body)
    except (IndexError, struct.error):
        raise truncated(f"a Fetch request v{version}") from None


def _decode_flexible(version: int, body: memoryview) -> FetchRequest:
    replica_id = replica_epoch = -1
    if version >= 15:
        max_wait_ms, min_bytes, max_bytes, isolation, session_id, epoch = _unpack_head_v15(body, 0)
        at = 21
    else:
        replica_id, max_wait_ms, min_bytes, max_bytes, isolation, session_id, epoch = (
            _unpack_head_v7(body, 0)
        )
        at = 25
    topic_count, at = _array_length(body, at)
    topics: list[FetchTopic] = []
    items = topic_count
    for _ in range(topic_count):
        name, topic_id, at = _topic(version, body, at)
        partition_count, at = _array_length(body, at)
        items += partition_count
        if items > MAX_ITEMS:
            raise too_many_items(items)
        partitions: list[FetchPartition] = []
        for _ in range(partition_count):
            fields = _unpack_partition_v12(body, at)
            at += 32
            if body[at]:
                partition, at = _tagged_partition(version, body, at, fields)
            else:
                partition = FetchPartition(*fields)
                at += 1
            partitions.append(partition)
        at = skip_tags(body, at)
        topics.append((name, topic_id, partitions))
    forgotten, at = _forgotten(version, body, at, items)
    rack_id, at = read_compact_string(body, at)
    cluster_id = None
    if body[at]:
        tags, _ = read_tags(body, at)
        for tag, start, end in tags:
            if tag == 0:
                cluster_id, stop = read_compact_nullable_string(body[:end], start)
            elif tag == 1 and version >= 15:
                replica_id, replica_epoch = _unpack_replica_state(body[:end], start)
                stop = skip_tags(body[:end], start + 12)
            else:
                continue
            if stop != end:
                raise DecodeError(f"a tagged field {tag} of a wrong size")
    return FetchRequest(
        replica_id,
        replica_epoch,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation,
        session_id,
        epoch,
        topics,
        forgotten,
        rack_id,
        cluster_id,
    )


def _array_length(body: memoryview, at: int) -> tuple[int, int]:
    length = body[at]
    if 0 < length < 0x80:
        return length - 1, at + 1
    length, at = read_compact_length(body, at)
    if length < 0:
        raise DecodeError("null for an array that cannot be null")
    return length, at


def _topic(version: int, body: memoryview, at: int) -> tuple[str | None, bytes | None, int]:
    if version >= FIRST_WITH_TOPIC_IDS:
        return None, bytes(body[at : at + 16]), at + 16
    name, at = read_compact_string(body, at)
    return name, None, at


def _tagged_partition(
    version: int, body: memoryview, at: int, fields: tuple[int, int, int, int, int, int]
) -> tuple[FetchPartition, int]:
    directory_id = None
    high_watermark = HIGH_WATERMARK_UNSUPPORTED
    tags, at = read_tags(body, at)
    for tag, start, end in tags:
        if tag == 0 and version >= 17:
            if end - start != 16:
                raise DecodeError("a directory id that is not a UUID")
            directory_id = bytes(body[start:end])
            if directory_id == NULL_UUID:
                directory_id = None
        elif tag == 1 and version >= 18:
            if end - start != 8:
                raise DecodeError("a high watermark that is not an int64")
            (high_watermark,) = _unpack_int64(body, start)
    return FetchPartition(*fields, directory_id, high_watermark), at


def _forgotten(
    version: int, body: memoryview, at: int, items: int
) -> tuple[list[ForgottenTopic], int]:
    count, at = _array_length(body, at)
    items += count
    forgotten: list[ForgottenTopic] = []
    for _ in range(count):
        name, topic_id, at = _topic(version, body, at)
        partition_count, at = _array_length(body, at)
        items += partition_count
        if items > MAX_ITEMS:
            raise too_many_items(items)
        partitions, at = _indexes(body, at, partition_count)
        at = skip_tags(body, at)
        forgotten.append((name, topic_id, partitions))
    return forgotten, at


def _indexes(body: memoryview, at: int, count: int) -> tuple[tuple[int, ...], int]:
    end = at + count * 4
    if end > len(body):
        raise truncated("an array of partitions")
    return struct.unpack_from(f">{count}i", body, at), end


def _decode_old(version: int, body: memoryview) -> FetchRequest:
    session_id, epoch = 0, -1
    if version >= 7:
        replica_id, max_wait_ms, min_bytes, max_bytes, isolation, session_id, epoch = (
            _unpack_head_v7(body, 0)
        )
        at = 25
    else:
        replica_id, max_wait_ms, min_bytes, max_bytes, isolation = _unpack_head_v4(body, 0)
        at = 17
    topic_count, at = _old_array_length(body, at)
    topics: list[FetchTopic] = []
    items = topic_count
    for _ in range(topic_count):
        name, at = read_string(body, at)
        partition_count, at = _old_array_length(body, at)
        items += partition_count
        if items > MAX_ITEMS:
            raise too_many_items(items)
        partitions: list[FetchPartition] = []
        for _ in range(partition_count):
            partition, at = _old_partition(version, body, at)
            partitions.append(partition)
        topics.append((name, None, partitions))
    forgotten: list[ForgottenTopic] = []
    if version >= 7:
        forgotten_count, at = _old_array_length(body, at)
        items += forgotten_count
        for _ in range(forgotten_count):
            name, at = read_string(body, at)
            partition_count, at = _old_array_length(body, at)
            items += partition_count
            if items > MAX_ITEMS:
                raise too_many_items(items)
            indexes, at = _indexes(body, at, partition_count)
            forgotten.append((name, None, indexes))
    rack_id = ""
    if version >= 11:
        rack_id, _ = read_string(body, at)
    return FetchRequest(
        replica_id,
        -1,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation,
        session_id,
        epoch,
        topics,
        forgotten,
        rack_id,
        None,
    )


def _old_array_length(body: memoryview, at: int) -> tuple[int, int]:
    count, at = read_array_length(body, at)
    if count < 0:
        raise DecodeError("null for an array that cannot be null")
    return count, at


def _old_partition(version: int, body: memoryview, at: int) -> tuple[FetchPartition, int]:
    if version >= 9:
        index, epoch, offset, start, max_bytes = _unpack_partition_v9(body, at)
        return FetchPartition(index, epoch, offset, -1, start, max_bytes), at + 28
    if version >= 5:
        index, offset, start, max_bytes = _unpack_partition_v5(body, at)
        return FetchPartition(index, -1, offset, -1, start, max_bytes), at + 24
    index, offset, max_bytes = _unpack_partition_v4(body, at)
    return FetchPartition(index, -1, offset, -1, -1, max_bytes), at + 16
