"""Messages from kio's schemas: our readers, writers and builders against kio's own."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mobula.protocol import messages
from mobula.protocol.api import ApiKey
from mobula.protocol.errors import DecodeError, ErrorCode
from mobula.protocol.schema import EPOCH
from tests.wire.served import (
    SERVED_VERSIONS,
    kio_decode,
    kio_encode,
    request_class,
    response_class,
)
from tests.wire.strategies import entities

few = settings(
    deadline=None,
    max_examples=8,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
served = pytest.mark.parametrize(
    ("key", "version"), SERVED_VERSIONS, ids=[f"{k.name.lower()}-v{v}" for k, v in SERVED_VERSIONS]
)
TOPIC_ID = bytes(range(16))


@served
@few
@given(data=st.data())
def test_a_request_is_written_as_kio_writes_it_and_comes_back(
    key: ApiKey, version: int, data: st.DataObject
) -> None:
    schema = request_class(key, version)
    request = data.draw(entities(schema))
    body = messages.encode(request)
    assert body == kio_encode(request)
    assert messages.decode_request(key, version, body) == request == kio_decode(schema, body)


@served
@few
@given(data=st.data())
def test_a_response_is_written_as_kio_writes_it_and_comes_back(
    key: ApiKey, version: int, data: st.DataObject
) -> None:
    schema = response_class(key, version)
    response = data.draw(entities(schema))
    body = messages.encode(response)
    assert body == kio_encode(response)
    assert messages.decode_response(key, version, body) == response == kio_decode(schema, body)


@served
def test_a_message_is_built_from_nothing_but_defaults_in_every_version(
    key: ApiKey, version: int
) -> None:
    for build, decode in (
        (messages.build_request, messages.decode_request),
        (messages.build_response, messages.decode_response),
    ):
        message = build(key, version, {})
        assert decode(key, version, kio_encode(message)) == message


def test_a_request_is_decoded_from_writable_memory() -> None:
    body = messages.encode(messages.build_request(ApiKey.METADATA, 12, {"topics": None}))
    frame = memoryview(bytearray(b"header" + body))[6:]
    assert messages.decode_request(ApiKey.METADATA, 12, frame).topics is None


def metadata_tree() -> dict[str, Any]:
    return {
        "throttle_time": 1500,
        "cluster_id": "cluster",
        "controller_id": 1,
        "topics": [
            {
                "error_code": 3,
                "name": "t",
                "topic_id": TOPIC_ID,
                "partitions": [
                    {"error_code": ErrorCode.none, "partition_index": 2, "replica_nodes": [1, 2]}
                ],
            }
        ],
    }


def test_plain_values_become_kios_types() -> None:
    response = messages.build_response(ApiKey.METADATA, 12, metadata_tree())
    (topic,) = response.topics
    assert response.throttle_time == timedelta(milliseconds=1500)
    assert topic.error_code is ErrorCode.unknown_topic_or_partition
    assert topic.topic_id == UUID(bytes=TOPIC_ID)
    assert topic.partitions[0].replica_nodes == (1, 2)


def test_times_and_null_ids_become_kios_types() -> None:
    partitions = [{"log_append_time": -1}, {"log_append_time": 1_700_000_000_123}]
    tree = {"responses": [{"topic_id": bytes(16), "partition_responses": partitions}]}
    response = messages.build_response(ApiKey.PRODUCE, 13, tree)
    (topic,) = response.responses
    assert topic.topic_id is None
    assert [partition.log_append_time for partition in topic.partition_responses] == [
        None,
        EPOCH + timedelta(milliseconds=1_700_000_000_123),
    ]
    body = messages.encode(response)
    assert messages.decode_response(ApiKey.PRODUCE, 13, body) == response


def test_missing_fields_have_the_schemas_defaults() -> None:
    response = messages.build_response(ApiKey.METADATA, 12, metadata_tree())
    (topic,) = response.topics
    assert response.brokers == ()
    assert topic.is_internal is False
    assert topic.topic_authorized_operations == -(2**31)
    assert topic.partitions[0].leader_epoch == -1


@pytest.mark.parametrize("version", range(14))
def test_one_tree_serves_every_version_of_a_message(version: int) -> None:
    response = messages.build_response(ApiKey.METADATA, version, metadata_tree())
    body = messages.encode(response)
    assert messages.decode_response(ApiKey.METADATA, version, body) == response
    assert hasattr(response, "throttle_time") == (version >= 3)
    assert hasattr(response.topics[0], "topic_id") == (version >= 10)


def test_null_stands_where_the_schema_allows_it() -> None:
    request = messages.build_request(ApiKey.METADATA, 9, {"topics": None})
    cursor = messages.build_request(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, {"cursor": None})
    set_cursor = messages.build_request(
        ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, {"cursor": {"topic_name": "t", "partition_index": 4}}
    )
    assert request.topics is None
    assert cursor.cursor is None
    assert set_cursor.cursor.partition_index == 4


@pytest.mark.parametrize(
    "tree",
    [{"trottle_time": 1}, {"topics": [{"nmae": "t"}]}, {"topics": [{"partitions": [{"x": 1}]}]}],
)
def test_a_field_that_no_version_has_is_refused(tree: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="no version of MetadataResponse"):
        messages.build_response(ApiKey.METADATA, 4, tree)


def test_bytes_after_a_response_are_refused() -> None:
    body = messages.encode(messages.build_response(ApiKey.METADATA, 9, {"topics": []}))
    with pytest.raises(DecodeError, match="1 bytes too many after a MetadataResponse v9"):
        messages.decode_response(ApiKey.METADATA, 9, body + b"\x00")


def test_librdkafkas_request_for_all_topics_has_bytes_after_its_end() -> None:
    request = messages.decode_request(ApiKey.METADATA, 13, bytes.fromhex("00000000010000"))
    assert request.topics is None


@pytest.mark.parametrize(("key", "version"), [(3, 99), (3, -1), (4, 0), (9999, 0)])
def test_a_version_or_api_that_does_not_exist_is_a_decode_error(key: int, version: int) -> None:
    with pytest.raises(DecodeError, match=f"no version {version} of API {key}"):
        messages.decode_request(key, version, b"")


def test_an_unknown_tagged_field_is_skipped() -> None:
    body = messages.encode(messages.build_request(ApiKey.METADATA, 9, {"topics": []}))
    assert body[-1] == 0
    extended = body[:-1] + b"\x01\x63\x02ab"
    assert messages.decode_request(ApiKey.METADATA, 9, extended).topics == ()


def test_a_tagged_field_that_is_longer_than_its_value_is_refused() -> None:
    request = messages.build_request(ApiKey.FETCH, 12, {"cluster_id": "abc"})
    body = messages.encode(request)
    assert body.endswith(b"\x01\x00\x04\x04abc")
    with pytest.raises(DecodeError, match="cluster_id is shorter"):
        messages.decode_request(ApiKey.FETCH, 12, body[:-5] + b"\x05\x04abcd")


def test_a_duration_of_the_largest_int64_does_not_end_the_connection() -> None:
    forever = (2**63 - 1).to_bytes(8, "big")
    body = messages.encode(messages.build_request(ApiKey.EXPIRE_DELEGATION_TOKEN, 2, {}))
    request = messages.decode_request(
        ApiKey.EXPIRE_DELEGATION_TOKEN, 2, body[:1] + forever + body[9:]
    )
    assert request.expiry_time_period > timedelta(days=365 * 1000)
