from __future__ import annotations

import logging
from typing import Any

import pytest

from mobula.actors.gateway.request_handler_helper import handle_error, respond_with_error
from mobula.protocol.api import ApiKey
from mobula.protocol.errors import DecodeError, ErrorCode, KafkaError
from mobula.protocol.messages import build_request, decode_response, encode

from .fakes import FakeSink, request_of

ASKED: dict[ApiKey, tuple[range, dict[str, Any]]] = {
    ApiKey.PRODUCE: (
        range(3, 14),
        {
            "acks": 1,
            "timeout": 10,
            "topic_data": [
                {
                    "name": "t",
                    "topic_id": b"t" * 16,
                    "partition_data": [{"index": 0, "records": None}],
                }
            ],
        },
    ),
    ApiKey.FETCH: (
        range(4, 19),
        {"topics": [{"topic": "t", "topic_id": b"t" * 16, "partitions": [{"partition": 0}]}]},
    ),
    ApiKey.LIST_OFFSETS: (
        range(1, 12),
        {"topics": [{"name": "t", "partitions": [{"partition_index": 0}]}]},
    ),
    ApiKey.METADATA: (range(14), {"topics": [{"name": "t", "topic_id": bytes(16)}]}),
    ApiKey.API_VERSIONS: (range(5), {}),
    ApiKey.CREATE_TOPICS: (range(2, 8), {"topics": [{"name": "t"}]}),
    ApiKey.DELETE_TOPICS: (
        range(1, 7),
        {"topics": [{"name": "t", "topic_id": bytes(16)}], "topic_names": ["t"]},
    ),
    ApiKey.DELETE_RECORDS: (
        range(3),
        {"topics": [{"name": "t", "partitions": [{"partition_index": 0, "offset": 1}]}]},
    ),
    ApiKey.INIT_PRODUCER_ID: (range(6), {"transactional_id": None}),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (
        range(2, 5),
        {"topics": [{"topic": "t", "partitions": [{"partition": 0}]}]},
    ),
    ApiKey.DESCRIBE_CONFIGS: (
        range(1, 5),
        {"resources": [{"resource_type": 2, "resource_name": "t"}]},
    ),
    ApiKey.ALTER_CONFIGS: (
        range(3),
        {"resources": [{"resource_type": 2, "resource_name": "t", "configs": []}]},
    ),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (
        range(2),
        {"resources": [{"resource_type": 2, "resource_name": "t", "configs": []}]},
    ),
    ApiKey.DESCRIBE_LOG_DIRS: (range(1, 5), {"topics": None}),
    ApiKey.CREATE_PARTITIONS: (range(4), {"topics": [{"name": "t", "count": 3}]}),
    ApiKey.DESCRIBE_CLUSTER: (range(3), {}),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: (range(1), {"topics": [{"name": "t"}], "cursor": None}),
}

SILENT = {(ApiKey.DESCRIBE_LOG_DIRS, 1), (ApiKey.DESCRIBE_LOG_DIRS, 2)}
"""Kafka has no place for a code there either: nothing is described."""


def codes(message: Any) -> set[str]:
    """Every error code that is anywhere in a response."""
    found: set[str] = set()
    for name in message.__dataclass_fields__:
        value = getattr(message, name)
        if name == "error_code":
            found.add(value.name)
        elif isinstance(value, tuple):
            for item in value:
                if hasattr(item, "__dataclass_fields__"):
                    found |= codes(item)
    return found


@pytest.mark.parametrize(
    ("key", "version"),
    [(key, version) for key, (versions, _) in ASKED.items() for version in versions],
    ids=lambda value: value.name if isinstance(value, ApiKey) else f"v{value}",
)
def test_an_error_is_answered_in_the_requests_api_and_version(key: ApiKey, version: int) -> None:
    sink = FakeSink()
    body = encode(build_request(key, version, ASKED[key][1]))
    handle_error(request_of(key, version, body, sink), KafkaError(ErrorCode.policy_violation, "no"))
    answer = decode_response(key, version, sink.sent[0])
    expected = set() if (key, version) in SILENT else {"policy_violation"}
    assert codes(answer) - {"none"} == expected


def test_a_bug_is_logged_with_its_traceback_and_answered_unknown_server_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sink = FakeSink()
    body = encode(build_request(ApiKey.INIT_PRODUCER_ID, 4, {"transactional_id": None}))
    request = request_of(ApiKey.INIT_PRODUCER_ID, 4, body, sink)
    try:
        raise ZeroDivisionError("a bug")
    except ZeroDivisionError as error:
        handle_error(request, error)
    answer = decode_response(ApiKey.INIT_PRODUCER_ID, 4, sink.sent[0])
    assert answer.error_code == ErrorCode.unknown_server_error
    assert "ZeroDivisionError: a bug" in caplog.text


def test_a_decode_error_closes_the_connection() -> None:
    sink = FakeSink()
    handle_error(request_of(ApiKey.FETCH, 4, b"", sink), DecodeError("bad bytes"))
    assert sink.closed == ["malformed request: bad bytes"]


def test_a_produce_that_expects_no_response_is_closed_instead() -> None:
    sink = FakeSink()
    body = encode(build_request(ApiKey.PRODUCE, 9, {**ASKED[ApiKey.PRODUCE][1], "acks": 0}))
    respond_with_error(
        request_of(ApiKey.PRODUCE, 9, body, sink), ErrorCode.invalid_required_acks, None
    )
    assert len(sink.closed) == 1


def test_an_error_after_the_response_is_only_logged(caplog: pytest.LogCaptureFixture) -> None:
    sink = FakeSink()
    request = request_of(ApiKey.FETCH, 4, b"", sink)
    request.respond(b"ok")
    with caplog.at_level(logging.ERROR):
        handle_error(request, RuntimeError("late"))
    assert sink.endings == 1
    assert "late" in caplog.text


def test_an_error_that_no_response_can_say_closes_the_connection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sink = FakeSink()
    body = encode(build_request(ApiKey.PRODUCE, 8, ASKED[ApiKey.PRODUCE][1]))
    detail = "too long for a string of this version" * 1000
    respond_with_error(request_of(ApiKey.PRODUCE, 8, body, sink), ErrorCode.invalid_record, detail)
    assert len(sink.closed) == 1
    assert "no error response could be made" in caplog.text


def test_an_error_when_the_bytes_are_gone_closes_the_connection() -> None:
    sink = FakeSink()
    handle_error(request_of(ApiKey.PRODUCE, 9, b"", sink), RuntimeError("late"))
    assert len(sink.closed) == 1
