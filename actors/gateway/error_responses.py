"""The response that says one error about a whole request, for each API, in its version.

Where an API has a code of its own for the request it is set; where it has not, each
element that was asked for carries it. This is what Kafka's `getErrorResponse` answers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from mobula.protocol.api import ApiKey
from mobula.protocol.errors import ErrorCode
from mobula.protocol.messages import build_response, decode_request, encode
from mobula.protocol.produce import (
    PartitionResponse,
    decode_produce_request,
    encode_produce_response,
)

Tree: TypeAlias = dict[str, Any]


def error_response(
    key: int, version: int, body: memoryview, code: ErrorCode, detail: str | None
) -> bytes | None:
    """The response's body. None: this request expects no response, or has no way to say it.

    DecodeError when the request itself cannot be read.
    """
    if key == ApiKey.PRODUCE:
        return _produce(version, body, code, detail)
    build = _TREES.get(key)
    if build is None:
        return None
    asked = decode_request(key, version, body)
    return encode(build_response(key, version, build(asked, version, code, detail)))


def _produce(version: int, body: memoryview, code: ErrorCode, detail: str | None) -> bytes | None:
    asked = decode_produce_request(version, body)
    if asked.acks == 0:
        return None
    return encode_produce_response(
        version,
        [
            (
                name,
                topic_id,
                [
                    PartitionResponse(index, code.value, error_message=detail)
                    for index, _ in partitions
                ],
            )
            for name, topic_id, partitions in asked.topics
        ],
    )


def _top_level(_asked: Any, _version: int, code: ErrorCode, _detail: str | None) -> Tree:
    return {"error_code": code}


def _top_level_with_message(
    _asked: Any, _version: int, code: ErrorCode, detail: str | None
) -> Tree:
    return {"error_code": code, "error_message": detail}


def _fetch(asked: Any, version: int, code: ErrorCode, _detail: str | None) -> Tree:
    if version >= 13:
        return {"error_code": code}
    return {
        "error_code": code,
        "responses": [
            {
                "topic": topic.topic,
                "partitions": [
                    {
                        "partition_index": partition.partition,
                        "error_code": code,
                        "high_watermark": -1,
                        "records": b"",
                    }
                    for partition in topic.partitions
                ],
            }
            for topic in asked.topics
        ],
    }


def _list_offsets(asked: Any, _version: int, code: ErrorCode, _detail: str | None) -> Tree:
    return {
        "topics": [
            {
                "name": topic.name,
                "partitions": [
                    {
                        "partition_index": partition.partition_index,
                        "error_code": code,
                        "timestamp": -1,
                        "offset": -1,
                    }
                    for partition in topic.partitions
                ],
            }
            for topic in asked.topics
        ]
    }


def _metadata(asked: Any, version: int, code: ErrorCode, _detail: str | None) -> Tree:
    return {
        "error_code": code,
        "topics": [
            {
                "error_code": code,
                # Only later versions can leave the name out.
                "name": topic.name if version >= 12 else topic.name or "",
                "topic_id": getattr(topic, "topic_id", None),
            }
            for topic in asked.topics or ()
        ],
    }


def _init_producer_id(_asked: Any, _version: int, code: ErrorCode, _detail: str | None) -> Tree:
    return {"error_code": code, "producer_id": -1, "producer_epoch": -1}


def _offset_for_leader_epoch(
    asked: Any, _version: int, code: ErrorCode, _detail: str | None
) -> Tree:
    return {
        "topics": [
            {
                "topic": topic.topic,
                "partitions": [
                    {"partition": partition.partition, "error_code": code}
                    for partition in topic.partitions
                ],
            }
            for topic in asked.topics
        ]
    }


def _delete_records(asked: Any, _version: int, code: ErrorCode, _detail: str | None) -> Tree:
    return {
        "topics": [
            {
                "name": topic.name,
                "partitions": [
                    {
                        "partition_index": partition.partition_index,
                        "low_watermark": -1,
                        "error_code": code,
                    }
                    for partition in topic.partitions
                ],
            }
            for topic in asked.topics
        ]
    }


def _resources(field: str) -> Callable[[Any, int, ErrorCode, str | None], Tree]:
    """DescribeConfigs, AlterConfigs, IncrementalAlterConfigs: a result a resource."""

    def build(asked: Any, _version: int, code: ErrorCode, detail: str | None) -> Tree:
        return {
            field: [
                {
                    "error_code": code,
                    "error_message": detail,
                    "resource_type": resource.resource_type,
                    "resource_name": resource.resource_name,
                }
                for resource in asked.resources
            ]
        }

    return build


def _named_topics(field: str) -> Callable[[Any, int, ErrorCode, str | None], Tree]:
    def build(asked: Any, _version: int, code: ErrorCode, detail: str | None) -> Tree:
        return {
            field: [
                {"name": topic.name, "error_code": code, "error_message": detail}
                for topic in asked.topics
            ]
        }

    return build


def _delete_topics(asked: Any, version: int, code: ErrorCode, detail: str | None) -> Tree:
    if version >= 6:
        named = [{"name": topic.name, "topic_id": topic.topic_id} for topic in asked.topics]
    else:
        named = [{"name": name} for name in asked.topic_names]
    return {"responses": [{**name, "error_code": code, "error_message": detail} for name in named]}


def _describe_topic_partitions(
    asked: Any, _version: int, code: ErrorCode, _detail: str | None
) -> Tree:
    return {"topics": [{"name": topic.name, "error_code": code} for topic in asked.topics]}


def _join_group(asked: Any, version: int, code: ErrorCode, _detail: str | None) -> Tree:
    return {
        "error_code": code,
        "generation_id": -1,
        "protocol_name": None if version >= 7 else "",
        "leader": "",
        "member_id": asked.member_id,
    }


def _sync_group(_asked: Any, _version: int, code: ErrorCode, _detail: str | None) -> Tree:
    return {"error_code": code, "assignment": b""}


def _offset_commit(asked: Any, version: int, code: ErrorCode, _detail: str | None) -> Tree:
    return {
        "topics": [
            {
                **_named(topic, version >= 10),
                "partitions": [
                    {"partition_index": part.partition_index, "error_code": code}
                    for part in topic.partitions
                ],
            }
            for topic in asked.topics
        ]
    }


def _offset_fetch(asked: Any, version: int, code: ErrorCode, _detail: str | None) -> Tree:
    if version >= 8:
        groups = [{"group_id": g.group_id, "error_code": code, "topics": ()} for g in asked.groups]
        return {"groups": groups}
    if version >= 2:
        return {"topics": (), "error_code": code}
    return {
        "topics": [
            {
                "name": topic.name,
                "partitions": [
                    {
                        "partition_index": index,
                        "committed_offset": -1,
                        "metadata": "",
                        "error_code": code,
                    }
                    for index in topic.partition_indexes
                ],
            }
            for topic in asked.topics
        ]
    }


def _describe_groups(asked: Any, _version: int, code: ErrorCode, detail: str | None) -> Tree:
    return {
        "groups": [
            {
                "error_code": code,
                "error_message": detail,
                "group_id": group_id,
                "group_state": "",
                "protocol_type": "",
                "protocol_data": "",
                "members": (),
            }
            for group_id in asked.groups
        ]
    }


def _delete_groups(asked: Any, _version: int, code: ErrorCode, _detail: str | None) -> Tree:
    return {
        "results": [{"group_id": group_id, "error_code": code} for group_id in asked.groups_names]
    }


def _find_coordinator(asked: Any, version: int, code: ErrorCode, detail: str | None) -> Tree:
    nobody = {"error_code": code, "error_message": detail, "node_id": -1, "host": "", "port": -1}
    if version < 4:
        return nobody
    return {"coordinators": [{"key": key, **nobody} for key in asked.coordinator_keys]}


def _named(topic: Any, by_id: bool) -> Tree:
    return {"topic_id": topic.topic_id} if by_id else {"name": topic.name}


_TREES: Final[dict[int, Callable[[Any, int, ErrorCode, str | None], Tree]]] = {
    ApiKey.FETCH: _fetch,
    ApiKey.LIST_OFFSETS: _list_offsets,
    ApiKey.METADATA: _metadata,
    ApiKey.API_VERSIONS: _top_level,
    ApiKey.CREATE_TOPICS: _named_topics("topics"),
    ApiKey.DELETE_TOPICS: _delete_topics,
    ApiKey.DELETE_RECORDS: _delete_records,
    ApiKey.INIT_PRODUCER_ID: _init_producer_id,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: _offset_for_leader_epoch,
    ApiKey.DESCRIBE_CONFIGS: _resources("results"),
    ApiKey.ALTER_CONFIGS: _resources("responses"),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _resources("responses"),
    ApiKey.DESCRIBE_LOG_DIRS: _top_level,
    ApiKey.FIND_COORDINATOR: _find_coordinator,
    ApiKey.JOIN_GROUP: _join_group,
    ApiKey.SYNC_GROUP: _sync_group,
    ApiKey.HEARTBEAT: _top_level,
    ApiKey.LEAVE_GROUP: _top_level,
    ApiKey.OFFSET_COMMIT: _offset_commit,
    ApiKey.OFFSET_FETCH: _offset_fetch,
    ApiKey.OFFSET_DELETE: _top_level,
    ApiKey.DESCRIBE_GROUPS: _describe_groups,
    ApiKey.LIST_GROUPS: _top_level,
    ApiKey.DELETE_GROUPS: _delete_groups,
    ApiKey.CREATE_PARTITIONS: _named_topics("results"),
    ApiKey.DESCRIBE_CLUSTER: _top_level_with_message,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: _describe_topic_partitions,
}
