"""What AlterConfigs and IncrementalAlterConfigs share: one answer for each resource."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from mobula.actors.controller.configs import Resource
from mobula.actors.controller.outcome import Outcome
from mobula.actors.controller.request import SUCCEEDED, ResponseTree, refused
from mobula.actors.metadata.records import Record
from mobula.protocol.errors import ErrorCode, KafkaError


def alter_resources(
    body: Any, alter: Callable[[Resource, Any], list[Record]]
) -> Outcome[ResponseTree]:
    """Each resource is changed as a whole or answered with why not; others do not suffer."""
    times = Counter(_resource(entry) for entry in body.resources)
    records: list[Record] = []
    responses: list[Mapping[str, Any]] = []
    for entry in body.resources:
        resource = _resource(entry)
        named = {"resource_type": resource.type, "resource_name": resource.name}
        try:
            if times[resource] > 1:
                raise KafkaError(
                    ErrorCode.invalid_request, "Each resource must appear at most once."
                )
            records += alter(resource, entry.configs)
        except KafkaError as error:
            responses.append({**named, **refused(error)})
            continue
        responses.append({**named, **SUCCEEDED})
    return Outcome([] if body.validate_only else records, {"responses": responses})


def _resource(entry: Any) -> Resource:
    return Resource(entry.resource_type, entry.resource_name)
