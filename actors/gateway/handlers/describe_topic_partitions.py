"""DescribeTopicPartitions (key 75, v0).

Behaviour: topics in the order of their names, partition by partition, from a cursor on;
a response has at most `max.request.partition.size.limit` partitions, or fewer when the
client says so, and a cursor for the rest. Without names it describes every topic.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mobula.actors.authorized_operations import ALL_ON_TOPIC
from mobula.actors.gateway.request import Request
from mobula.actors.gateway.services import Services
from mobula.actors.metadata.image import MetadataImage, TopicImage
from mobula.actors.metadata.records import PartitionChanged
from mobula.actors.metadata.topic_name import is_internal, topic_name_problem
from mobula.protocol.api import Api, ApiKey
from mobula.protocol.errors import ErrorCode, KafkaError
from mobula.protocol.messages import build_response, decode_request, encode

API = Api(ApiKey.DESCRIBE_TOPIC_PARTITIONS, range(1))

_NO_LEADER = -1


def handle(request: Request, services: Services) -> None:
    version = request.header.api_version
    asked = decode_request(API.key, version, request.body)
    cursor = asked.cursor
    names = {topic.name for topic in asked.topics} or services.image.topic_ids.keys()
    if cursor is not None:
        _check_cursor(cursor, {topic.name for topic in asked.topics})
    limit = services.config.integer("max.request.partition.size.limit")
    limit = max(1, min(limit, asked.response_partition_limit))
    start = ("", 0) if cursor is None else (cursor.topic_name, cursor.partition_index)
    tree = describe(services.image, names, start, limit, request.context.listener)
    request.respond(encode(build_response(API.key, version, tree)))


def _check_cursor(cursor: Any, asked: set[str]) -> None:
    if cursor.partition_index < 0:
        raise KafkaError(
            ErrorCode.invalid_request, f"the cursor's partition is {cursor.partition_index}"
        )
    if asked and cursor.topic_name not in asked:
        raise KafkaError(
            ErrorCode.invalid_request,
            f"the cursor's topic {cursor.topic_name} is not among the topics asked for",
        )


def describe(
    image: MetadataImage, names: Iterable[str], start: tuple[str, int], limit: int, listener: str
) -> dict[str, Any]:
    """From `start` on, `limit` partitions and no more; `next_cursor` says where to go on."""
    topics: list[dict[str, Any]] = []
    room = limit
    for name in sorted(name for name in names if name >= start[0]):
        if not room:
            return {"topics": topics, "next_cursor": _cursor(name, 0)}
        topic = image.topic(name)
        if topic is None:
            invalid = topic_name_problem(name) is not None
            code = ErrorCode.invalid_topic_exception if invalid else _UNKNOWN
            topics.append(_failed(name, code))
            continue
        first = start[1] if name == start[0] else 0
        indexes = sorted(index for index in topic.partitions if index >= first)
        listed = [_partition(image, topic.partitions[i], listener) for i in indexes[:room]]
        topics.append(_topic(topic, listed))
        if len(indexes) > room:
            return {"topics": topics, "next_cursor": _cursor(name, indexes[room])}
        room -= len(listed)
    return {"topics": topics, "next_cursor": None}


_UNKNOWN = ErrorCode.unknown_topic_or_partition


def _cursor(name: str, partition: int) -> dict[str, Any]:
    return {"topic_name": name, "partition_index": partition}


def _failed(name: str, code: ErrorCode) -> dict[str, Any]:
    return {
        "error_code": code,
        "name": name,
        "partitions": [],
        "topic_authorized_operations": ALL_ON_TOPIC,
    }


def _topic(topic: TopicImage, partitions: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "error_code": ErrorCode.none,
        "name": topic.name,
        "topic_id": topic.topic_id,
        "is_internal": is_internal(topic.name),
        "partitions": partitions,
        "topic_authorized_operations": ALL_ON_TOPIC,
    }


def _partition(image: MetadataImage, partition: PartitionChanged, listener: str) -> dict[str, Any]:
    led = _reachable(image, partition.leader, listener)
    return {
        "error_code": ErrorCode.none if led else ErrorCode.leader_not_available,
        "partition_index": partition.partition,
        "leader_id": partition.leader if led else _NO_LEADER,
        "leader_epoch": partition.leader_epoch,
        "replica_nodes": partition.replicas,
        "isr_nodes": partition.isr,
        "eligible_leader_replicas": [],
        "last_known_elr": [],
        "offline_replicas": [
            replica for replica in partition.replicas if not _reachable(image, replica, listener)
        ],
    }


def _reachable(image: MetadataImage, broker_id: int, listener: str) -> bool:
    broker = image.brokers.get(broker_id)
    if broker is None or broker.fenced:
        return False
    return any(endpoint.listener == listener for endpoint in broker.endpoints)
