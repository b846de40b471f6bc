"""The messages that are served, and how kio itself reads and writes them."""

from __future__ import annotations

import io
from typing import Any

from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer

from mobula.protocol.api import ApiKey

HAND_TUNED: dict[ApiKey, range] = {
    ApiKey.PRODUCE: range(3, 14),
    ApiKey.FETCH: range(4, 19),
    ApiKey.API_VERSIONS: range(5),
}
FROM_SCHEMA: dict[ApiKey, range] = {
    ApiKey.METADATA: range(14),
    ApiKey.LIST_OFFSETS: range(1, 12),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: range(2, 5),
    ApiKey.INIT_PRODUCER_ID: range(6),
    ApiKey.CREATE_TOPICS: range(2, 8),
    ApiKey.DELETE_TOPICS: range(1, 7),
    ApiKey.CREATE_PARTITIONS: range(4),
    ApiKey.DELETE_RECORDS: range(3),
    ApiKey.DESCRIBE_CONFIGS: range(1, 5),
    ApiKey.ALTER_CONFIGS: range(3),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: range(2),
    ApiKey.DESCRIBE_CLUSTER: range(3),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: range(1),
    ApiKey.DESCRIBE_LOG_DIRS: range(1, 5),
}
SERVED = HAND_TUNED | FROM_SCHEMA
SERVED_VERSIONS = [(key, version) for key, versions in SERVED.items() for version in versions]


def versions_of(key: ApiKey) -> list[int]:
    return list(SERVED[key])


def request_class(key: int, version: int) -> Any:
    return load_request_schema(key, version)


def response_class(key: int, version: int) -> Any:
    return load_response_schema(key, version)


def kio_encode(message: Any) -> bytes:
    """As kio's own writer encodes it."""
    with io.BytesIO() as out:
        entity_writer(type(message))(out, message)
        return out.getvalue()


def kio_decode(schema: Any, body: bytes) -> Any:
    """As kio's own reader decodes it. Never give it hostile bytes."""
    message, size = entity_reader(schema)(body, 0)
    assert size == len(body)
    return message
