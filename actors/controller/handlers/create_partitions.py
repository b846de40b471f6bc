"""CreatePartitions (key 37, v0-3).

Behaviour: each topic is judged for itself; the count is what the topic should have, and
must be more than it has. A null assignment leaves the placement to the controller.
Versions: v3 differs only in quotas (KIP-599).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from mobula.actors.controller.core import ControllerCore
from mobula.actors.controller.outcome import Outcome
from mobula.actors.controller.request import (
    SUCCEEDED,
    ControllerRequest,
    ResponseTree,
    refused,
)
from mobula.actors.controller.topics import MAX_NEW_PARTITIONS
from mobula.actors.metadata.records import Record
from mobula.protocol.api import Api, ApiKey
from mobula.protocol.errors import ErrorCode, KafkaError

API = Api(ApiKey.CREATE_PARTITIONS, range(4))


def handle(request: ControllerRequest, controller: ControllerCore) -> Outcome[ResponseTree]:
    body = request.body
    times = Counter(topic.name for topic in body.topics)
    records: list[Record] = []
    results: list[Mapping[str, Any]] = []
    for topic in {topic.name: topic for topic in body.topics}.values():
        try:
            if times[topic.name] > 1:
                raise KafkaError(ErrorCode.invalid_request, "Duplicate topic name.")
            records += controller.topics.add_partitions(
                topic.name,
                topic.count,
                None
                if topic.assignments is None
                else [assignment.broker_ids or () for assignment in topic.assignments],
                MAX_NEW_PARTITIONS - len(records),
            )
        except KafkaError as error:
            results.append({"name": topic.name, **refused(error)})
            continue
        results.append({"name": topic.name, **SUCCEEDED})
    return Outcome([] if body.validate_only else records, {"results": results})
