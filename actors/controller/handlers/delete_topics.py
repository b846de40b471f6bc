"""DeleteTopics (key 20, v1-6).

Behaviour: each topic is judged for itself. Named twice, by name, by id or by both in two
places: INVALID_REQUEST, and it stays.
Versions: v3 says TOPIC_DELETION_DISABLED where earlier ones say INVALID_REQUEST; v5 returns
messages; v6 takes ids in place of names (KIP-516).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from mobula.actors.controller.core import ControllerCore
from mobula.actors.controller.outcome import Outcome
from mobula.actors.controller.request import (
    SUCCEEDED,
    ControllerRequest,
    ResponseTree,
    refused,
)
from mobula.actors.metadata.image import MetadataImage
from mobula.actors.metadata.records import Record
from mobula.protocol.api import Api, ApiKey
from mobula.protocol.errors import ErrorCode, KafkaError

API = Api(ApiKey.DELETE_TOPICS, range(1, 7))


class _Named(NamedTuple):
    """A topic as the client names it: by name or by id."""

    name: str | None
    topic_id: bytes | None

    @property
    def malformed(self) -> bool:
        return (self.name is None) == (self.topic_id is None)


def handle(request: ControllerRequest, controller: ControllerCore) -> Outcome[ResponseTree]:
    named = _named(request)
    if not controller.config.boolean("delete.topic.enable"):
        error = _disabled(request.version)
        return Outcome([], {"responses": [_failure(topic, error) for topic in _judged(named)]})
    times = Counter(named)
    in_doubt = _named_and_identified(times, controller.image)
    records: list[Record] = []
    results: list[Mapping[str, Any]] = []
    for topic in _judged(named):
        try:
            _check_named(topic, times[topic])
            topic_id = _found(topic, controller.image)
        except KafkaError as error:
            results.append(_failure(topic, error))
            continue
        name = controller.image.topics[topic_id].name
        if topic_id not in in_doubt:
            records += controller.topics.delete(topic_id)
            results.append({"name": name, "topic_id": topic_id, **SUCCEEDED})
        elif topic.name is not None:
            # Said once, of the name and the id together.
            results.append({"name": name, "topic_id": topic_id, **refused(_SUPPLIED)})
    return Outcome(records, {"responses": results})


_SUPPLIED = KafkaError(
    ErrorCode.invalid_request, "The provided topic name maps to an ID that was already supplied."
)


def _named_and_identified(times: Mapping[_Named, int], image: MetadataImage) -> set[bytes | None]:
    """The topics that the request has both by name and, elsewhere, by id."""
    ids = {topic.topic_id for topic in times if topic.name is None}
    return ids & {
        image.topic_ids.get(topic.name)
        for topic, n in times.items()
        if topic.name is not None and topic.topic_id is None and n == 1
    }


def _named(request: ControllerRequest) -> list[_Named]:
    if request.version < 6:
        return [_Named(name, None) for name in request.body.topic_names]
    return [
        _Named(topic.name, None if topic.topic_id is None else topic.topic_id.bytes)
        for topic in request.body.topics
    ]


def _judged(named: list[_Named]) -> list[_Named]:
    """Those that get an answer: each once, but all that say neither or both."""
    told_apart = ((topic, index if topic.malformed else None) for index, topic in enumerate(named))
    return [topic for topic, _ in dict.fromkeys(told_apart)]


def _check_named(topic: _Named, times: int) -> None:
    if topic.name is None and topic.topic_id is None:
        raise KafkaError(ErrorCode.invalid_request, "Neither topic name nor id were specified.")
    if topic.name is not None and topic.topic_id is not None:
        raise KafkaError(
            ErrorCode.invalid_request, "You may not specify both topic name and topic id."
        )
    if times > 1:
        what = "id" if topic.name is None else "name"
        raise KafkaError(ErrorCode.invalid_request, f"Duplicate topic {what}.")


def _found(topic: _Named, image: MetadataImage) -> bytes:
    topic_id = topic.topic_id if topic.name is None else image.topic_ids.get(topic.name)
    if topic_id is not None and topic_id in image.topics:
        return topic_id
    if topic.name is None:
        raise KafkaError(ErrorCode.unknown_topic_id, "This server does not host this topic ID.")
    raise KafkaError(
        ErrorCode.unknown_topic_or_partition, "This server does not host this topic-partition."
    )


def _disabled(version: int) -> KafkaError:
    if version < 3:
        return KafkaError(ErrorCode.invalid_request, "Topic deletion is disabled.")
    return KafkaError(ErrorCode.topic_deletion_disabled, "Topic deletion is disabled.")


def _failure(topic: _Named, error: KafkaError) -> Mapping[str, Any]:
    return {"name": topic.name, "topic_id": topic.topic_id, **refused(error)}
