"""CreateTopics (key 19, v2-7).

Behaviour: each topic is judged for itself, so one bad topic never fails the rest; a name
that stands twice in a request is INVALID_REQUEST and not created. More partitions than a
commit may hold fail the whole request. `validate_only` answers the same and commits nothing.
Versions: v4 lets -1 stand for the defaults; v5 returns partitions, replication factor and
configs (KIP-525); v7 returns topic ids (KIP-516).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from mobula.actors.controller.core import ControllerCore
from mobula.actors.controller.outcome import Outcome
from mobula.actors.controller.request import (
    SUCCEEDED,
    ControllerRequest,
    ResponseTree,
    refused,
)
from mobula.actors.controller.topics import MAX_NEW_PARTITIONS, CreatedTopic, NewTopic
from mobula.actors.metadata.records import Record
from mobula.actors.metadata.topic_name import CLUSTER_METADATA_TOPIC, collision_key
from mobula.protocol.api import Api, ApiKey
from mobula.protocol.errors import ErrorCode, KafkaError

API = Api(ApiKey.CREATE_TOPICS, range(2, 8))


def handle(request: ControllerRequest, controller: ControllerCore) -> Outcome[ResponseTree]:
    body = request.body
    times = Counter(topic.name for topic in body.topics)
    once = [topic for topic in body.topics if times[topic.name] == 1]
    if _partitions(once, controller.config.integer("num.partitions")) > MAX_NEW_PARTITIONS:
        return Outcome([], {"topics": [_refused(topic.name, _TOO_MANY) for topic in body.topics]})
    taken = controller.topics.collision_keys()
    configs = _Configs(controller)
    records: list[Record] = []
    results: list[Mapping[str, Any]] = []
    for topic in once:
        try:
            _check_not_internal(topic.name)
            created = controller.topics.create(_wish(topic), taken)
        except KafkaError as error:
            results.append(_refused(topic.name, error))
            continue
        taken[collision_key(topic.name)] = topic.name
        records += created.records
        results.append(_result(topic.name, created, configs))
    twice = KafkaError(ErrorCode.invalid_request, "Duplicate topic name.")
    results += [_refused(name, twice) for name, n in times.items() if n > 1]
    return Outcome([] if body.validate_only else records, {"topics": results})


_TOO_MANY = KafkaError(
    ErrorCode.policy_violation, "Excessively large number of partitions per request."
)


def _partitions(topics: Iterable[Any], default: int) -> int:
    """How many are asked for in all, of topics that may yet be refused."""
    return sum(
        len(topic.assignments)
        or (default if topic.num_partitions == -1 else max(0, topic.num_partitions))
        for topic in topics
    )


def _refused(name: str, error: KafkaError) -> Mapping[str, Any]:
    return {"name": name, "configs": [], **refused(error)}


def _check_not_internal(name: str) -> None:
    if name == CLUSTER_METADATA_TOPIC:
        raise KafkaError(
            ErrorCode.invalid_request, f"Creation of internal topic {name} is prohibited."
        )


def _wish(topic: Any) -> NewTopic:
    return NewTopic(
        name=topic.name,
        num_partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments=[
            (assignment.partition_index, assignment.broker_ids or ())
            for assignment in topic.assignments or ()
        ],
        configs=[(config.name, config.value) for config in topic.configs or ()],
    )


class _Configs:
    """What topics have set, described once for all topics that have set the same."""

    def __init__(self, controller: ControllerCore) -> None:
        self._controller = controller
        self._known: dict[frozenset[tuple[str, str]], list[Mapping[str, Any]]] = {}

    def described(self, own: Mapping[str, str]) -> list[Mapping[str, Any]]:
        key = frozenset(own.items())
        if key not in self._known:
            self._known[key] = [
                {
                    "name": entry.name,
                    "value": entry.value,
                    "read_only": entry.read_only,
                    "config_source": entry.source,
                    "is_sensitive": False,
                }
                for entry in self._controller.configs.of_new_topic(own)
            ]
        return self._known[key]


def _result(name: str, created: CreatedTopic, configs: _Configs) -> Mapping[str, Any]:
    return {
        "name": name,
        "topic_id": created.topic_id,
        "num_partitions": created.num_partitions,
        "replication_factor": created.replication_factor,
        "configs": configs.described(created.configs),
        **SUCCEEDED,
    }
