"""DeleteRecords (key 21, v0-2).

Behaviour: records before an offset go from partitions that this broker leads (-1: all that
is committed). The leader's log start moves at once; the answer waits in the purgatory until
every replica's has. Internal topics are refused with INVALID_TOPIC_EXCEPTION, topics that
are only compacted with POLICY_VIOLATION. One bad partition never fails the rest; of one that is
named twice the last offset counts.
Versions: v2 is flexible.
"""

from __future__ import annotations

from typing import Any

from mobula.actors.config.topic import topic_config
from mobula.actors.gateway.ask_replicas import ask_replicas
from mobula.actors.gateway.leadership import leadership_code
from mobula.actors.gateway.request import Request
from mobula.actors.gateway.services import Services
from mobula.actors.link.interface import LinkError
from mobula.actors.metadata.topic_name import is_internal
from mobula.actors.purgatory.messages import (
    WATCH_DELETE_RECORDS,
    DeleteDone,
    DeletePart,
    WatchDeleteRecords,
)
from mobula.actors.replica.messages import (
    DELETE_RECORDS,
    DeleteRecords,
    PartitionDelete,
    PartitionDeleted,
)
from mobula.protocol.api import Api, ApiKey
from mobula.protocol.errors import ErrorCode
from mobula.protocol.messages import build_response, decode_request, encode

API = Api(ApiKey.DELETE_RECORDS, range(3))

_GRACE_MS = 1_000
"""What the purgatory's answer may be late by before it counts as lost."""


def handle(request: Request, services: Services) -> None:
    asked = decode_request(API.key, request.header.api_version, request.body)
    _Deleting(request, services, asked).start()


class _Deleting:
    def __init__(self, request: Request, services: Services, asked: Any) -> None:
        self._request = request
        self._services = services
        timeout_ms = asked.timeout.total_seconds() * 1000
        self._deadline_ms = services.runtime.clock.monotonic_ms() + int(timeout_ms)
        asked_for = {
            (topic.name, part.partition_index): part.offset
            for topic in asked.topics
            for part in topic.partitions
        }
        self._keys = list(asked_for)
        self._wanted: list[PartitionDelete | PartitionDeleted] = [
            self._check(name, index, offset) for (name, index), offset in asked_for.items()
        ]
        self._accepted = [
            index for index, part in enumerate(self._wanted) if isinstance(part, PartitionDelete)
        ]
        self._results: list[Any] = list(self._wanted)

    def start(self) -> None:
        ask_replicas(
            self._request,
            self._services,
            DELETE_RECORDS,
            [self._results[index] for index in self._accepted],
            message=DeleteRecords,
            failed=PartitionDeleted,
            on_done=self._deleted,
        )

    def _check(self, name: str, index: int, offset: int) -> PartitionDelete | PartitionDeleted:
        image = self._services.image
        topic_id = image.topic_ids.get(name)
        state = None if topic_id is None else image.partition(topic_id, index)
        if topic_id is None or state is None:
            return _failed(ErrorCode.unknown_topic_or_partition)
        if is_internal(name):
            return _failed(ErrorCode.invalid_topic_exception)
        code = leadership_code(state, self._services.row(topic_id, index), -1)
        if code:
            return PartitionDeleted(code)
        config = topic_config(image, name, self._services.config, self._services.broker_id)
        if "delete" not in config.strings("cleanup.policy"):
            return _failed(ErrorCode.policy_violation)
        return PartitionDelete(topic_id, index, offset)

    def _deleted(self, answers: list[PartitionDeleted]) -> None:
        waiting: list[int] = []
        parts: list[DeletePart] = []
        for index, answer in zip(self._accepted, answers, strict=True):
            self._results[index] = answer
            if not answer.error_code and answer.low_watermark < answer.required_low_watermark:
                wanted = self._wanted[index]
                assert isinstance(wanted, PartitionDelete)
                waiting.append(index)
                parts.append(
                    DeletePart(wanted.topic_id, wanted.partition, answer.required_low_watermark)
                )
        if not parts:
            self._respond()
            return
        self._request.local_done()
        timeout_ms = max(self._deadline_ms - self._services.runtime.clock.monotonic_ms(), 0)
        link = self._services.purgatory
        handle = link.call(
            WATCH_DELETE_RECORDS,
            WatchDeleteRecords(timeout_ms, parts),
            lambda done, _: self._request.resume(self._settled, waiting, done),
            lambda error: self._request.resume(self._unsettled, waiting, error),
            timeout_ms=timeout_ms + _GRACE_MS,
        )
        self._request.on_abandoned = lambda: link.cancel(handle)

    def _settled(self, waiting: list[int], done: DeleteDone) -> None:
        for index, code, low_watermark in zip(
            waiting, done.error_codes, done.low_watermarks, strict=True
        ):
            if code == ErrorCode.request_timed_out:
                # How far it had come is worth more than nothing.
                low_watermark = self._results[index].low_watermark  # noqa: PLW2901
            self._results[index] = PartitionDeleted(code, -1, low_watermark)
        self._respond()

    def _unsettled(self, waiting: list[int], _: LinkError) -> None:
        # The records are gone from the leader; whether from all, nobody can say now.
        for index in waiting:
            self._results[index] = _failed(ErrorCode.request_timed_out)
        self._respond()

    def _respond(self) -> None:
        topics: dict[str, list[Any]] = {}
        for (name, index), result in zip(self._keys, self._results, strict=True):
            topics.setdefault(name, []).append(_partition(index, result))
        tree = {
            "topics": [
                {"name": name, "partitions": partitions} for name, partitions in topics.items()
            ]
        }
        version = self._request.header.api_version
        self._request.respond(encode(build_response(API.key, version, tree)))


def _failed(code: ErrorCode) -> PartitionDeleted:
    return PartitionDeleted(int(code))


def _partition(index: int, result: PartitionDeleted) -> dict[str, Any]:
    return {
        "partition_index": index,
        "low_watermark": result.low_watermark,
        "error_code": result.error_code,
    }
