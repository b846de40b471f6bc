"""OffsetFetch (key 9, v1-10).

Behaviour: a partition without a committed offset says -1, not an error; a group that is not
known has no offsets. Null topics mean all that the group has.
Versions: v2 asks for all and has an error of its own for the group, v5 brings the leader
epoch (KIP-320), v7 waits for open transactions (KIP-447), v8 asks for several groups
(KIP-709), v9 names the member (KIP-848), v10 has topic ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from mobula.actors.coordinator.group.group_machine import GroupMachine
from mobula.actors.coordinator.group.outcomes import GroupOutcome
from mobula.actors.coordinator.group.records import OffsetValue
from mobula.actors.coordinator.outcome import Outcome
from mobula.actors.coordinator.request import CoordinatorRequest, Gathered
from mobula.actors.coordinator.services import CoordinatorServices
from mobula.protocol.api import Api, ApiKey
from mobula.protocol.errors import ErrorCode, KafkaError

API = Api(ApiKey.OFFSET_FETCH, range(1, 11))

_FIRST_WITH_GROUP_ERROR = 2
_FIRST_WITH_GROUPS = 8
_FIRST_WITH_TOPIC_IDS = 10
_NO_OFFSET = OffsetValue(-1, -1, "", -1)


def handle(request: CoordinatorRequest, services: CoordinatorServices) -> None:
    body = request.body
    if request.version >= _FIRST_WITH_GROUPS:
        groups: Sequence[Any] = body.groups

        def done(answers: list[dict[str, Any]]) -> None:
            request.respond({"groups": answers})

    else:
        groups = (body,)

        def done(answers: list[dict[str, Any]]) -> None:
            request.respond(_without_group(answers[0], request.version))

    gathered = Gathered(len(groups), done)
    for index, group in enumerate(groups):
        _Fetch(request.version, group, services, partial(gathered.put, index)).start()


class _Fetch:
    """The offsets of one group."""

    def __init__(self, version: int, group: Any, services: CoordinatorServices, put: Any) -> None:
        self._version = version
        self._group = group
        self._services = services
        self._put = put

    def start(self) -> None:
        self._services.groups.decide(self._group.group_id, self._decide, self._put, self._failed)

    def _decide(self, machine: GroupMachine) -> GroupOutcome:
        group = self._group
        if group.topics is None:
            topics = self._all(machine)
        else:
            topics = [self._topic(machine, topic) for topic in group.topics]
        return Outcome(
            (), {"group_id": group.group_id, "error_code": ErrorCode.none, "topics": topics}
        )

    def _failed(self, error: KafkaError) -> None:
        group = self._group
        topics: Iterable[dict[str, Any]] = ()
        if self._version < _FIRST_WITH_GROUP_ERROR:
            topics = [
                {
                    "name": topic.name,
                    "partitions": [
                        _part(index, _NO_OFFSET, error.code) for index in topic.partition_indexes
                    ],
                }
                for topic in group.topics
            ]
        self._put({"group_id": group.group_id, "error_code": error.code, "topics": topics})

    def _all(self, machine: GroupMachine) -> list[dict[str, Any]]:
        topics: dict[str, list[dict[str, Any]]] = {}
        for (topic, index), value in machine.offsets(self._group.group_id).items():
            topics.setdefault(topic, []).append(_part(index, value, ErrorCode.none))
        image = self._services.image
        return [
            {**self._named(name, image.topic_ids.get(name)), "partitions": parts}
            for name, parts in topics.items()
            if self._version < _FIRST_WITH_TOPIC_IDS or name in image.topic_ids
        ]

    def _topic(self, machine: GroupMachine, topic: Any) -> dict[str, Any]:
        code = ErrorCode.none
        if self._version >= _FIRST_WITH_TOPIC_IDS:
            topic_id = None if topic.topic_id is None else topic.topic_id.bytes
            found = None if topic_id is None else self._services.image.topics.get(topic_id)
            name = "" if found is None else found.name
            if found is None:
                code = ErrorCode.unknown_topic_id
        else:
            name, topic_id = topic.name, None
        parts = []
        for index in topic.partition_indexes:
            value = None if code else machine.offset(self._group.group_id, name, index)
            parts.append(_part(index, value or _NO_OFFSET, code))
        return {**self._named(name, topic_id), "partitions": parts}

    def _named(self, name: str, topic_id: bytes | None) -> dict[str, Any]:
        if self._version < _FIRST_WITH_TOPIC_IDS:
            return {"name": name}
        return {"topic_id": None if topic_id is None else UUID(bytes=topic_id)}


def _part(index: int, value: OffsetValue, code: ErrorCode) -> dict[str, Any]:
    return {
        "partition_index": index,
        "committed_offset": value.offset,
        "committed_leader_epoch": value.leader_epoch,
        "metadata": value.metadata,
        "error_code": code,
    }


def _without_group(answer: dict[str, Any], version: int) -> dict[str, Any]:
    """As it was said before there could be several groups."""
    if version < _FIRST_WITH_GROUP_ERROR:
        return {"topics": answer["topics"]}
    return {"topics": answer["topics"], "error_code": answer["error_code"]}
