"""Fetch by hand, against kio for every version."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mobula.protocol import messages
from mobula.protocol.api import ApiKey
from mobula.protocol.endpoints import NodeEndpoint
from mobula.protocol.errors import DecodeError, ErrorCode
from mobula.protocol.fetch import (
    HIGH_WATERMARK_UNSUPPORTED,
    FetchPartition,
    FetchPartitionResponse,
    FetchRequest,
    decode_fetch_request,
    encode_fetch_response,
)
from tests.wire.served import kio_encode, request_class, versions_of
from tests.wire.strategies import BYTES, TEXT, entities, signed

VERSIONS = versions_of(ApiKey.FETCH)
every_version = pytest.mark.parametrize("version", VERSIONS)
TOPIC_ID = bytes(range(16))
some = settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow])


def frame_of(data: bytes) -> memoryview:
    return memoryview(bytearray(data))


def id_of(entity: Any, name: str) -> bytes | None:
    if not hasattr(entity, name):
        return None
    value = getattr(entity, name)
    return bytes(16) if value is None else value.bytes


def as_ours(request: Any) -> FetchRequest:
    """A kio request in the shape of our decoder."""
    state = getattr(request, "replica_state", None)
    return FetchRequest(
        state.replica_id if state else request.replica_id,
        state.replica_epoch if state else -1,
        request.max_wait // timedelta(milliseconds=1),
        request.min_bytes,
        request.max_bytes,
        request.isolation_level,
        getattr(request, "session_id", 0),
        getattr(request, "session_epoch", -1),
        [
            (getattr(topic, "topic", None), id_of(topic, "topic_id"), partitions_of(topic))
            for topic in request.topics
        ],
        [
            (getattr(topic, "topic", None), id_of(topic, "topic_id"), topic.partitions)
            for topic in getattr(request, "forgotten_topics_data", ())
        ],
        getattr(request, "rack_id", ""),
        getattr(request, "cluster_id", None),
    )


def partitions_of(topic: Any) -> list[FetchPartition]:
    return [
        FetchPartition(
            p.partition,
            getattr(p, "current_leader_epoch", -1),
            p.fetch_offset,
            getattr(p, "last_fetched_epoch", -1),
            getattr(p, "log_start_offset", -1),
            p.partition_max_bytes,
            p.replica_directory_id.bytes if getattr(p, "replica_directory_id", None) else None,
            getattr(p, "high_watermark", HIGH_WATERMARK_UNSUPPORTED),
        )
        for p in topic.partitions
    ]


@every_version
@some
@given(data=st.data())
def test_a_request_decodes_as_kio_wrote_it(version: int, data: st.DataObject) -> None:
    request = data.draw(entities(request_class(ApiKey.FETCH, version)))
    assert decode_fetch_request(version, frame_of(kio_encode(request))) == as_ours(request)


def full_request(version: int) -> bytes:
    """Every field that the version has, and none at its default."""
    partition = {
        "partition": 1,
        "current_leader_epoch": 2,
        "fetch_offset": 3,
        "last_fetched_epoch": 4,
        "log_start_offset": 5,
        "partition_max_bytes": 6,
        "replica_directory_id": TOPIC_ID,
        "high_watermark": 7,
    }
    tree = {
        "cluster_id": "cluster",
        "replica_id": 8,
        "replica_state": {"replica_id": 8, "replica_epoch": 9},
        "max_wait": 10,
        "session_id": 11,
        "session_epoch": 12,
        "topics": [{"topic": "t", "topic_id": TOPIC_ID, "partitions": [partition] * 2}],
        "forgotten_topics_data": [{"topic": "f", "topic_id": TOPIC_ID, "partitions": [13, 14]}],
        "rack_id": "rack",
    }
    return kio_encode(messages.build_request(ApiKey.FETCH, version, tree))


@every_version
def test_every_cut_of_a_request_is_a_decode_error(version: int) -> None:
    body = full_request(version)
    assert decode_fetch_request(version, frame_of(body)).replica_id == 8
    for size in range(len(body)):
        with pytest.raises(DecodeError):
            decode_fetch_request(version, frame_of(body[:size]))


@every_version
def test_bytes_after_a_request_are_ignored(version: int) -> None:
    body = full_request(version)
    asked = decode_fetch_request(version, frame_of(body + b"\x00"))
    assert asked == decode_fetch_request(version, frame_of(body))


def test_a_replica_of_a_new_version_says_what_it_has() -> None:
    request = decode_fetch_request(18, frame_of(full_request(18)))
    ((name, topic_id, partitions),) = request.topics
    assert (name, topic_id) == (None, TOPIC_ID)
    assert partitions == [FetchPartition(1, 2, 3, 4, 5, 6, TOPIC_ID, 7)] * 2
    assert (request.replica_id, request.replica_epoch) == (8, 9)
    assert request.forgotten == [(None, TOPIC_ID, (13, 14))]
    assert (request.cluster_id, request.rack_id) == ("cluster", "rack")


def test_unknown_tagged_fields_are_skipped_at_every_level() -> None:
    tags = b"\x01\x63\x02ab"
    partition = {"partition": 1, "fetch_offset": 3, "partition_max_bytes": 6}
    tree = {"topics": [{"topic_id": TOPIC_ID, "partitions": [partition]}], "max_wait": 1}
    body = kio_encode(messages.build_request(ApiKey.FETCH, 16, tree))
    plain = decode_fetch_request(16, frame_of(body))
    # partition's tags, topic's tags, no forgotten topics, empty rack, request's tags
    assert body.endswith(b"\x06\x00\x00\x01\x01\x00")
    extended = body[:-5] + tags * 2 + b"\x01\x01" + tags
    assert decode_fetch_request(16, frame_of(extended)) == plain


UNKNOWN = st.just((-1, -1))
PARTITION = st.builds(
    FetchPartitionResponse,
    index=signed(32),
    error_code=st.sampled_from([code.value for code in ErrorCode]),
    high_watermark=signed(64),
    last_stable_offset=signed(64),
    log_start_offset=signed(64),
    records=st.none() | BYTES,
    aborted_transactions=st.none() | st.lists(st.tuples(signed(64), signed(64)), max_size=3),
    preferred_read_replica=signed(32),
    diverging_epoch=st.none() | UNKNOWN | st.tuples(signed(32), signed(64)),
    current_leader=st.none() | UNKNOWN | st.tuples(signed(32), signed(32)),
    snapshot_id=st.none() | UNKNOWN | st.tuples(signed(64), signed(32)),
)
TOPICS = st.lists(
    st.tuples(TEXT, st.binary(min_size=16, max_size=16), st.lists(PARTITION, max_size=3)),
    max_size=3,
)
ENDPOINTS = st.lists(st.tuples(signed(32), TEXT, signed(32), st.none() | TEXT), max_size=2)


def partition_tree(partition: FetchPartitionResponse) -> dict[str, Any]:
    aborted = partition.aborted_transactions
    epoch, end_offset = partition.diverging_epoch or (-1, -1)
    leader_id, leader_epoch = partition.current_leader or (-1, -1)
    snapshot_end, snapshot_epoch = partition.snapshot_id or (-1, -1)
    return {
        "partition_index": partition.index,
        "error_code": partition.error_code,
        "high_watermark": partition.high_watermark,
        "last_stable_offset": partition.last_stable_offset,
        "log_start_offset": partition.log_start_offset,
        "diverging_epoch": {"epoch": epoch, "end_offset": end_offset},
        "current_leader": {"leader_id": leader_id, "leader_epoch": leader_epoch},
        "snapshot_id": {"end_offset": snapshot_end, "epoch": snapshot_epoch},
        "aborted_transactions": None
        if aborted is None
        else [{"producer_id": producer, "first_offset": first} for producer, first in aborted],
        "preferred_read_replica": partition.preferred_read_replica,
        "records": partition.records,
    }


@every_version
@some
@given(
    topics=TOPICS,
    throttle_ms=signed(32),
    error_code=st.sampled_from(ErrorCode),
    session_id=signed(32),
    endpoints=ENDPOINTS,
)
def test_a_response_is_what_kio_writes(
    *,
    version: int,
    topics: Any,
    throttle_ms: int,
    error_code: ErrorCode,
    session_id: int,
    endpoints: Any,
) -> None:
    tree = {
        "throttle_time": throttle_ms,
        "error_code": error_code,
        "session_id": session_id,
        "responses": [
            {"topic": name, "topic_id": topic_id, "partitions": [*map(partition_tree, partitions)]}
            for name, topic_id, partitions in topics
        ],
        "node_endpoints": [
            {"node_id": node, "host": host, "port": port, "rack": rack}
            for node, host, port, rack in endpoints
        ],
    }
    parts = encode_fetch_response(
        version,
        topics,
        throttle_ms=throttle_ms,
        error_code=error_code,
        session_id=session_id,
        node_endpoints=endpoints,
    )
    assert b"".join(parts) == kio_encode(messages.build_response(ApiKey.FETCH, version, tree))
    assert all(len(part) > 0 for part in parts)


@every_version
def test_records_pass_through_as_the_buffers_they_are(version: int) -> None:
    first, second = memoryview(b"f" * 2000), bytearray(b"s" * 10)
    partitions = [
        FetchPartitionResponse(0, records=first),
        FetchPartitionResponse(1, records=b""),
        FetchPartitionResponse(2, records=second),
    ]
    parts = encode_fetch_response(version, [("t", TOPIC_ID, partitions)])
    assert any(part is first for part in parts)
    assert any(part is second for part in parts)
    assert len(parts) <= 5
    response = messages.decode_response(ApiKey.FETCH, version, b"".join(parts))
    assert [p.records for p in response.responses[0].partitions] == [first, b"", second]


def test_a_leadership_error_carries_the_leader_and_its_endpoint_from_version_16() -> None:
    partition = FetchPartitionResponse(
        0, ErrorCode.fenced_leader_epoch.value, current_leader=(2, 7)
    )
    endpoint = NodeEndpoint(2, "host", 9092, "rack")
    for version in VERSIONS:
        parts = encode_fetch_response(
            version, [("t", TOPIC_ID, [partition])], node_endpoints=[endpoint]
        )
        response = messages.decode_response(ApiKey.FETCH, version, b"".join(parts))
        answer = response.responses[0].partitions[0]
        assert answer.error_code is ErrorCode.fenced_leader_epoch
        assert hasattr(answer, "current_leader") == (version >= 12)
        assert hasattr(response, "node_endpoints") == (version >= 16)
        if version >= 16:
            assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == (2, 7)
            assert response.node_endpoints[0].rack == "rack"
