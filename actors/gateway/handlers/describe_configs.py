"""DescribeConfigs (key 32, v1-4).

Behaviour: every key of a topic or a broker with its value and where that comes from,
defaults included, so that a tool can read, change and write back. A broker describes
itself alone; the broker "" is what was changed for all of them. One bad resource never
fails the rest; one that is named twice is described once, with the keys of both.
Versions: v1 has sources and synonyms; v3 types and documentation (KIP-569); v4 is
flexible.
"""

from __future__ import annotations

from typing import Any

from mobula.actors.config.describe import (
    Entry,
    describe_all_brokers,
    describe_broker,
    describe_topic,
)
from mobula.actors.gateway.request import Request
from mobula.actors.gateway.services import Services
from mobula.actors.metadata.broker_name import broker_id_of
from mobula.actors.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE
from mobula.actors.metadata.topic_name import topic_name_problem
from mobula.protocol.api import Api, ApiKey
from mobula.protocol.errors import ErrorCode, KafkaError
from mobula.protocol.messages import build_response, decode_request, encode

API = Api(ApiKey.DESCRIBE_CONFIGS, range(1, 5))


def handle(request: Request, services: Services) -> None:
    version = request.header.api_version
    asked = decode_request(API.key, version, request.body)
    synonyms = asked.include_synonyms
    documentation = getattr(asked, "include_documentation", False)
    results = []
    for resource, keys in _keys_by_resource(asked.resources).items():
        try:
            entries = _describe(*resource, services)
        except KafkaError as error:
            results.append(_result(resource, error.code, error.detail, []))
            continue
        configs = [
            _config(entry, synonyms, documentation)
            for entry in entries
            if keys is None or entry.name in keys
        ]
        results.append(_result(resource, ErrorCode.none, "", configs))
    request.respond(encode(build_response(API.key, version, {"results": results})))


def _keys_by_resource(resources: Any) -> dict[tuple[int, str], set[str] | None]:
    """By type and name; None asks for every key, and so does naming none at all.

    Each resource once: a few bytes of the request are thousands in the response.
    """
    wanted: dict[tuple[int, str], set[str] | None] = {}
    for resource in resources:
        name = (resource.resource_type, resource.resource_name)
        keys = wanted.setdefault(name, set())
        if keys is None or not resource.configuration_keys:
            wanted[name] = None
        else:
            keys.update(resource.configuration_keys)
    return wanted


def _describe(resource_type: int, name: str, services: Services) -> list[Entry]:
    if resource_type == TOPIC_RESOURCE:
        return _describe_topic(name, services)
    if resource_type == BROKER_RESOURCE:
        return _describe_broker(name, services)
    raise KafkaError(
        ErrorCode.invalid_request,
        f"resources of type {resource_type} have no configuration here",
    )


def _describe_topic(name: str, services: Services) -> list[Entry]:
    problem = topic_name_problem(name)
    if problem is not None:
        raise KafkaError(ErrorCode.invalid_topic_exception, problem)
    if services.image.topic(name) is None:
        raise KafkaError(ErrorCode.unknown_topic_or_partition, f"there is no topic {name}")
    return describe_topic(services.image, name, services.config, services.broker_id)


def _describe_broker(name: str, services: Services) -> list[Entry]:
    if not name:
        return describe_all_brokers(services.image)
    broker_id = broker_id_of(name)
    if broker_id is None:
        raise KafkaError(
            ErrorCode.invalid_request, f"Broker id must be an integer, but it is: {name}"
        )
    if broker_id != services.broker_id:
        raise KafkaError(
            ErrorCode.invalid_request,
            f"Unexpected broker id, expected {services.broker_id} or empty string, but received "
            f"{name}",
        )
    number, folder = str(services.broker_id), services.runtime.spec.data_dir
    facts = {"node.id": number, "broker.id": number, "log.dir": folder, "log.dirs": folder}
    return describe_broker(services.image, services.config, services.broker_id, facts)


def _result(
    resource: tuple[int, str],
    code: ErrorCode,
    message: str | None,
    configs: list[dict[str, Any]],
) -> dict[str, Any]:
    resource_type, resource_name = resource
    return {
        "error_code": code,
        "error_message": message,
        "resource_type": resource_type,
        "resource_name": resource_name,
        "configs": configs,
    }


def _config(entry: Entry, synonyms: bool, documentation: bool) -> dict[str, Any]:
    return {
        "name": entry.name,
        "value": entry.value,
        "read_only": entry.read_only,
        "config_source": entry.source,
        "is_sensitive": False,
        "config_type": entry.type,
        "documentation": entry.documentation if documentation else None,
        "synonyms": [
            {"name": origin.name, "value": origin.value, "source": origin.source}
            for origin in (entry.synonyms if synonyms else ())
        ],
    }
