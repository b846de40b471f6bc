"""Produce by hand, against kio for every version."""

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
from mobula.protocol.produce import (
    PartitionResponse,
    ProduceRequest,
    decode_produce_request,
    encode_produce_response,
)
from tests.wire.served import kio_encode, request_class, versions_of
from tests.wire.strategies import TEXT, entities, signed

VERSIONS = versions_of(ApiKey.PRODUCE)
every_version = pytest.mark.parametrize("version", VERSIONS)
TOPIC_ID = bytes(range(16))
some = settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])


def frame_of(data: bytes) -> memoryview:
    return memoryview(bytearray(data))


def as_ours(request: Any) -> ProduceRequest:
    """A kio request in the shape of our decoder."""
    return ProduceRequest(
        request.transactional_id,
        request.acks,
        request.timeout // timedelta(milliseconds=1),
        [
            (
                getattr(topic, "name", None),
                (topic.topic_id.bytes if topic.topic_id else bytes(16))
                if hasattr(topic, "topic_id")
                else None,
                [
                    (p.index, None if p.records is None else memoryview(p.records))
                    for p in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ],
    )


@every_version
@some
@given(data=st.data())
def test_a_request_decodes_as_kio_wrote_it(version: int, data: st.DataObject) -> None:
    request = data.draw(entities(request_class(ApiKey.PRODUCE, version)))
    assert decode_produce_request(version, frame_of(kio_encode(request))) == as_ours(request)


def one_batch(version: int, records: bytes | None = b"batch") -> bytes:
    partition = {"index": 3, "records": records}
    topic = {"name": "t", "topic_id": TOPIC_ID, "partition_data": [partition]}
    request = messages.build_request(
        ApiKey.PRODUCE, version, {"acks": -1, "timeout": 1500, "topic_data": [topic]}
    )
    return kio_encode(request)


@every_version
def test_records_are_views_of_the_frame(version: int) -> None:
    frame = frame_of(b"header" + one_batch(version))
    request = decode_produce_request(version, frame[6:])
    ((name, topic_id, ((index, records),)),) = request.topics
    assert (name, topic_id) == (("t", None) if version < 13 else (None, TOPIC_ID))
    assert index == 3
    assert records is not None
    assert records.obj is frame.obj
    records[:5] = b"BATCH"
    assert b"BATCH" in frame.obj


@every_version
def test_every_cut_of_a_request_is_a_decode_error(version: int) -> None:
    body = one_batch(version, b"r" * 200)
    for size in range(len(body)):
        with pytest.raises(DecodeError):
            decode_produce_request(version, frame_of(body[:size]))


@every_version
def test_bytes_after_a_request_are_ignored(version: int) -> None:
    body = one_batch(version)
    asked = decode_produce_request(version, frame_of(body + b"\x00"))
    assert asked == decode_produce_request(version, frame_of(body))


def test_unknown_tagged_fields_are_skipped_at_every_level() -> None:
    tags = b"\x01\x63\x02ab"
    body = one_batch(9)
    assert body.endswith(b"batch\x00\x00\x00")
    extended = body[:-3] + tags * 3
    assert decode_produce_request(9, frame_of(extended)) == decode_produce_request(
        9, frame_of(body)
    )


@pytest.mark.parametrize(
    ("version", "body", "complaint"),
    [
        (9, b"\x00\xff\xff\x00\x00\x00\x00\x00\x00", "null for an array"),
        (9, b"\x00\xff\xff\x00\x00\x00\x00\x02\x00\x01\x00\x00", "null for a topic's name"),
        (8, b"\xff\xff" + bytes(6) + b"\xff" * 4, "null for an array"),
        (8, b"\xff\xff" + bytes(6) + b"\x7f\xff\xff\xff", "2147483647 items in 0 bytes"),
        (9, b"\x00" + bytes(6) + b"\xff\xff\xff\xff\x07", "length 2147483646 ends past"),
        (8, b"\xff\xfe" + bytes(40), "a string of length -2"),
        (
            8,
            b"\xff\xff" + bytes(6) + b"\0\0\0\1\0\1t\0\0\0\1" + b"\0\0\0\0\xff\xff\xff\xfe",
            "records of length -2",
        ),
        (
            8,
            b"\xff\xff" + bytes(6) + b"\0\0\0\1\0\1t\0\0\0\1" + b"\0\0\0\0\x7f\0\0\0",
            "a batch of 2130706432 bytes ends past",
        ),
    ],
)
def test_lengths_that_cannot_be_are_named(version: int, body: bytes, complaint: str) -> None:
    with pytest.raises(DecodeError, match=complaint):
        decode_produce_request(version, frame_of(body))


PARTITION = st.builds(
    PartitionResponse,
    index=signed(32),
    error_code=st.sampled_from([code.value for code in ErrorCode]),
    base_offset=signed(64),
    log_append_time_ms=st.just(-1) | st.integers(0, 1 << 42),
    log_start_offset=signed(64),
    record_errors=st.lists(st.tuples(signed(32), st.none() | TEXT), max_size=3),
    error_message=st.none() | TEXT,
    current_leader=st.none() | st.tuples(signed(32), signed(32)) | st.just((-1, -1)),
)
TOPICS = st.lists(
    st.tuples(TEXT, st.binary(min_size=16, max_size=16), st.lists(PARTITION, max_size=3)),
    max_size=3,
)
ENDPOINTS = st.lists(st.tuples(signed(32), TEXT, signed(32), st.none() | TEXT), max_size=2)


def kio_tree(topics: Any, throttle_ms: int, endpoints: Any) -> dict[str, Any]:
    return {
        "responses": [
            {
                "name": name,
                "topic_id": topic_id,
                "partition_responses": [partition_tree(partition) for partition in partitions],
            }
            for name, topic_id, partitions in topics
        ],
        "throttle_time": throttle_ms,
        "node_endpoints": [
            {"node_id": node, "host": host, "port": port, "rack": rack}
            for node, host, port, rack in endpoints
        ],
    }


def partition_tree(partition: PartitionResponse) -> dict[str, Any]:
    leader, epoch = partition.current_leader or (-1, -1)
    return {
        "index": partition.index,
        "error_code": partition.error_code,
        "base_offset": partition.base_offset,
        "log_append_time": partition.log_append_time_ms,
        "log_start_offset": partition.log_start_offset,
        "record_errors": [
            {"batch_index": index, "batch_index_error_message": message}
            for index, message in partition.record_errors
        ],
        "error_message": partition.error_message,
        "current_leader": {"leader_id": leader, "leader_epoch": epoch},
    }


@every_version
@some
@given(topics=TOPICS, throttle_ms=signed(32), endpoints=ENDPOINTS)
def test_a_response_is_what_kio_writes(
    version: int, topics: Any, throttle_ms: int, endpoints: Any
) -> None:
    tree = kio_tree(topics, throttle_ms, endpoints)
    expected = kio_encode(messages.build_response(ApiKey.PRODUCE, version, tree))
    assert encode_produce_response(version, topics, throttle_ms, endpoints) == expected


def test_a_leadership_error_carries_the_leader_and_its_endpoint_from_version_10() -> None:
    partition = PartitionResponse(0, ErrorCode.not_leader_or_follower.value, current_leader=(2, 7))
    endpoint = NodeEndpoint(2, "host", 9092, None)
    for version in VERSIONS:
        body = encode_produce_response(version, [("t", TOPIC_ID, [partition])], 0, [endpoint])
        response = messages.decode_response(ApiKey.PRODUCE, version, body)
        answer = response.responses[0].partition_responses[0]
        assert answer.error_code is ErrorCode.not_leader_or_follower
        assert hasattr(response, "node_endpoints") == (version >= 10)
        if version >= 10:
            assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == (2, 7)
            assert response.node_endpoints[0].host == "host"
