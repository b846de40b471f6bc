"""Fetch responses (key 1, v4-18).

Records are passed through: the response is a list of buffers, and a partition's records
are one of them, the very object that was given.

Versions: v5 log start offset; v7 error code and session id; v11 preferred read replica;
v12 flexible, diverging epoch, current leader and snapshot id; v13 topic ids; v16 node
endpoints (KIP-951).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, TypeAlias

import msgspec

from mobula.protocol.endpoints import encode_endpoint_tags
from mobula.protocol.fetch_request import FIRST_FLEXIBLE, FIRST_WITH_TOPIC_IDS
from mobula.protocol.primitives import (
    INT32,
    NO_TAGS,
    Buffer,
    encode_compact_string,
    encode_string,
    encode_tags,
    encode_uvarint,
)


class FetchPartitionResponse(msgspec.Struct, frozen=True, gc=False):
    """One partition's answer. Later fields are dropped where a version does not have them."""

    index: int
    error_code: int = 0
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    records: Buffer | None = b""
    """Kafka's clients want no null here, not even with an error."""
    aborted_transactions: Sequence[tuple[int, int]] | None = None
    """(producer id, first offset); null under read_uncommitted."""
    preferred_read_replica: int = -1
    diverging_epoch: tuple[int, int] | None = None
    """(epoch, end offset)"""
    current_leader: tuple[int, int] | None = None
    """(leader id, leader epoch)"""
    snapshot_id: tuple[int, int] | None = None
    """(end offset, epoch)"""


FetchTopicResponse: TypeAlias = tuple[str | None, bytes | None, Sequence[FetchPartitionResponse]]
"""Name or topic id, as the request had it, and partitions."""

_pack_head_v7 = struct.Struct(">ihi").pack
_pack_partition_v4 = struct.Struct(">ihqq").pack
_pack_partition_v5 = struct.Struct(">ihqqq").pack
_pack_partition_v11 = struct.Struct(">ihqqqii").pack
_pack_partition_v12 = struct.Struct(">ihqqqBi").pack
_pack_aborted = struct.Struct(">qq").pack
_pack_aborted_v12 = struct.Struct(">qqx").pack
_pack_epoch_end = struct.Struct(">iqx").pack
_pack_leader = struct.Struct(">iix").pack
_pack_snapshot = struct.Struct(">qix").pack
_UNKNOWN: Final = (-1, -1)


def encode_fetch_response(
    version: int,
    topics: Sequence[FetchTopicResponse],
    *,
    throttle_ms: int = 0,
    error_code: int = 0,
    session_id: int = 0,
    node_endpoints: Sequence[tuple[int, str, int, str | None]] = (),
) -> list[Buffer]:
    """The body of a response, in parts. Endpoints are (node id, host, port, rack)."""
    if version < FIRST_FLEXIBLE:
        return _encode_old(version, topics, throttle_ms, error_code, session_id)
    out: list[Buffer] = []
    small = [_pack_head_v7(throttle_ms, error_code, session_id), encode_uvarint(len(topics) + 1)]
    for name, topic_id, partitions in topics:
        if version >= FIRST_WITH_TOPIC_IDS:
            assert topic_id is not None
            small.append(topic_id)
        else:
            assert name is not None
            small.append(encode_compact_string(name))
        small.append(encode_uvarint(len(partitions) + 1))
        for partition in partitions:
            small.append(_encode_partition(partition))
            records = partition.records
            if records is None:
                small.append(b"\x00")
            else:
                small.append(encode_uvarint(len(records) + 1))
                if records:
                    out += (b"".join(small), records)
                    small = []
            small.append(_encode_partition_tags(partition))
        small.append(NO_TAGS)
    small.append(encode_endpoint_tags(node_endpoints if version >= 16 else ()))
    out.append(b"".join(small))
    return out


def _encode_partition(partition: FetchPartitionResponse) -> bytes:
    """Everything up to the records."""
    aborted = partition.aborted_transactions
    if not aborted:
        return _pack_partition_v12(
            partition.index,
            partition.error_code,
            partition.high_watermark,
            partition.last_stable_offset,
            partition.log_start_offset,
            0 if aborted is None else 1,
            partition.preferred_read_replica,
        )
    fixed = _pack_partition_v5(
        partition.index,
        partition.error_code,
        partition.high_watermark,
        partition.last_stable_offset,
        partition.log_start_offset,
    )
    parts = [fixed, encode_uvarint(len(aborted) + 1)]
    parts += [_pack_aborted_v12(*transaction) for transaction in aborted]
    parts.append(INT32.pack(partition.preferred_read_replica))
    return b"".join(parts)


def _encode_partition_tags(partition: FetchPartitionResponse) -> bytes:
    diverging = partition.diverging_epoch
    leader = partition.current_leader
    snapshot = partition.snapshot_id
    if diverging is None and leader is None and snapshot is None:
        return NO_TAGS
    tags = []
    if diverging is not None and diverging != _UNKNOWN:
        tags.append((0, _pack_epoch_end(*diverging)))
    if leader is not None and leader != _UNKNOWN:
        tags.append((1, _pack_leader(*leader)))
    if snapshot is not None and snapshot != _UNKNOWN:
        tags.append((2, _pack_snapshot(*snapshot)))
    return encode_tags(tags)


def _encode_old(
    version: int,
    topics: Sequence[FetchTopicResponse],
    throttle_ms: int,
    error_code: int,
    session_id: int,
) -> list[Buffer]:
    out: list[Buffer] = []
    if version >= 7:
        small = [_pack_head_v7(throttle_ms, error_code, session_id)]
    else:
        small = [INT32.pack(throttle_ms)]
    small.append(INT32.pack(len(topics)))
    for name, _, partitions in topics:
        assert name is not None
        small += (encode_string(name), INT32.pack(len(partitions)))
        for partition in partitions:
            small.append(_encode_old_partition(version, partition))
            records = partition.records
            small.append(INT32.pack(-1 if records is None else len(records)))
            if records:
                out += (b"".join(small), records)
                small = []
    if small:
        out.append(b"".join(small))
    return out


def _encode_old_partition(version: int, partition: FetchPartitionResponse) -> bytes:
    """Everything up to the records."""
    aborted = partition.aborted_transactions
    head = (
        partition.index,
        partition.error_code,
        partition.high_watermark,
        partition.last_stable_offset,
    )
    if version >= 11 and not aborted:
        return _pack_partition_v11(
            *head,
            partition.log_start_offset,
            -1 if aborted is None else 0,
            partition.preferred_read_replica,
        )
    if version >= 5:
        parts = [_pack_partition_v5(*head, partition.log_start_offset)]
    else:
        parts = [_pack_partition_v4(*head)]
    parts.append(INT32.pack(-1 if aborted is None else len(aborted)))
    parts += [_pack_aborted(*transaction) for transaction in aborted or ()]
    if version >= 11:
        parts.append(INT32.pack(partition.preferred_read_replica))
    return b"".join(parts)
