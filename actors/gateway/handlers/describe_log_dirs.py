"""DescribeLogDirs (key 35, v1-4).

Behaviour: this broker's data folder, the size and lag of each log in it, and the room on
its disk. Each replica actor of the broker that may hold one of the logs is asked, and the
answers are merged. If one does not answer, the folder says KAFKA_STORAGE_ERROR: sizes
that leave out some logs would be wrong.
Versions: v2 is flexible; v3 has an error for the whole; v4 the disk's total and usable
bytes (KIP-827).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from mobula.actors.gateway.request import Request
from mobula.actors.gateway.services import Services
from mobula.actors.link.interface import LinkError
from mobula.actors.metadata.image import MetadataImage
from mobula.actors.placement import replica_actor_of
from mobula.actors.replica.messages import (
    DESCRIBE_LOGS,
    DescribeLogs,
    LogDescription,
    LogsDescribed,
)
from mobula.protocol.api import Api, ApiKey
from mobula.protocol.errors import ErrorCode
from mobula.protocol.messages import build_response, decode_request, encode

API = Api(ApiKey.DESCRIBE_LOG_DIRS, range(1, 5))

_TIMEOUT_MS = 10_000


def handle(request: Request, services: Services) -> None:
    asked = decode_request(API.key, request.header.api_version, request.body)
    wanted = _wanted(asked.topics, services)
    gathering = _Gathering(request, services, wanted)
    gathering.ask(sorted({_actor(services, key) for key in wanted}))


def _wanted(topics: Any, services: Services) -> set[tuple[bytes, int]]:
    """This broker's replicas that were asked for. No list at all asks for all."""
    image, broker_id = services.image, services.broker_id
    mine = {
        (topic.topic_id, partition.partition)
        for topic in image.topics.values()
        for partition in topic.partitions.values()
        if broker_id in partition.replicas
    }
    if topics is None:
        return mine
    named = {
        (topic_id, partition)
        for topic in topics
        if (topic_id := image.topic_ids.get(topic.topic)) is not None
        for partition in topic.partitions
    }
    return mine & named


def _actor(services: Services, key: tuple[bytes, int]) -> str:
    return replica_actor_of(services.image, services.broker_id, *key)


class _Gathering:
    """The answers of several replica actors for one request."""

    def __init__(
        self, request: Request, services: Services, wanted: set[tuple[bytes, int]]
    ) -> None:
        self._request = request
        self._services = services
        self._wanted = wanted
        self._logs: list[LogDescription] = []
        self._failed = False
        self._missing: dict[str, Callable[[], None]] = {}
        """By actor that has not answered: how to take the question back."""

    def ask(self, actors: list[str]) -> None:
        if not actors:
            self._finish()
            return
        self._request.on_abandoned = self._abandon
        # All of them first: an answer may come before the next question is asked.
        self._missing = dict.fromkeys(actors, _nothing)
        for actor in actors:
            self._ask_one(actor)

    def _ask_one(self, actor: str) -> None:
        link = self._services.runtime.link(actor)
        handle = link.call(
            DESCRIBE_LOGS,
            DescribeLogs(),
            lambda reply, _: self._request.resume(self._answered, actor, reply),
            lambda error: self._request.resume(self._unanswered, actor, error),
            timeout_ms=_TIMEOUT_MS,
        )
        if actor in self._missing:
            self._missing[actor] = lambda: link.cancel(handle)

    def _answered(self, actor: str, reply: LogsDescribed) -> None:
        self._logs += reply.logs
        self._done(actor)

    def _unanswered(self, actor: str, _: LinkError) -> None:
        self._failed = True
        self._done(actor)

    def _done(self, actor: str) -> None:
        del self._missing[actor]
        if not self._missing:
            self._finish()

    def _abandon(self) -> None:
        for take_back in self._missing.values():
            take_back()
        self._missing.clear()

    def _finish(self) -> None:
        wanted = [log for log in self._logs if (log.topic_id, log.partition) in self._wanted]
        result = describe_folder(
            self._services.image, self._services.runtime.spec.data_dir, wanted, self._failed
        )
        version = self._request.header.api_version
        self._request.respond(encode(build_response(API.key, version, {"results": [result]})))


def _nothing() -> None: ...


def describe_folder(
    image: MetadataImage, folder: str, logs: list[LogDescription], failed: bool
) -> dict[str, Any]:
    try:
        disk = os.statvfs(folder)
    except OSError:
        failed = True
        total = usable = -1
    else:
        total, usable = disk.f_blocks * disk.f_frsize, disk.f_bavail * disk.f_frsize
    if failed:
        return {
            "error_code": ErrorCode.kafka_storage_error,
            "log_dir": folder,
            "topics": [],
            "total_bytes": total,
            "usable_bytes": usable,
        }
    by_topic: dict[str, list[LogDescription]] = {}
    for log in logs:
        topic = image.topics.get(log.topic_id)
        # Deleted while its actor answered.
        if topic is not None:
            by_topic.setdefault(topic.name, []).append(log)
    return {
        "error_code": ErrorCode.none,
        "log_dir": folder,
        "topics": [
            {"name": name, "partitions": [_log(log) for log in sorted(by_topic[name], key=_index)]}
            for name in sorted(by_topic)
        ],
        "total_bytes": total,
        "usable_bytes": usable,
    }


def _index(log: LogDescription) -> int:
    return log.partition


def _log(log: LogDescription) -> dict[str, Any]:
    return {
        "partition_index": log.partition,
        "partition_size": log.size_bytes,
        "offset_lag": log.offset_lag,
        "is_future_key": False,
    }
