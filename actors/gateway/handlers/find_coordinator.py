"""FindCoordinator (key 10, v0-6).

Behaviour: a group's coordinator is the leader of its partition of an internal topic. The
topic is created when somebody first asks; until then, and while the partition has no leader,
COORDINATOR_NOT_AVAILABLE makes clients ask again.
Versions: v1 asks for transactions too, v4 for several keys (KIP-699), v6 for share groups,
which are not here.
"""

from __future__ import annotations

from typing import Any

from mobula.actors.coordinator.partitioner import GROUP_TOPIC, partition_for
from mobula.actors.gateway.request import Request, RequestContext
from mobula.actors.gateway.services import Services
from mobula.protocol.api import Api, ApiKey
from mobula.protocol.errors import ErrorCode, KafkaError
from mobula.protocol.messages import build_response, decode_request, encode

API = Api(ApiKey.FIND_COORDINATOR, range(7))

_GROUP = 0
_TRANSACTION = 1
_FIRST_WITH_KEYS = 4
_MALFORMED = (
    "This most likely occurs because of a request being malformed by the client library or the "
    "message was sent to an incompatible broker. See the broker logs for more details."
)
_NOBODY = {"node_id": -1, "host": "", "port": -1}


def handle(request: Request, services: Services) -> None:
    version = request.header.api_version
    asked = decode_request(API.key, version, request.body)
    kind = getattr(asked, "key_type", _GROUP)
    if version >= _FIRST_WITH_KEYS:
        found = [_find(services, kind, key, request.context) for key in asked.coordinator_keys]
        tree: dict[str, Any] = {"coordinators": found}
    else:
        tree = _find(services, kind, asked.key, request.context)
        del tree["key"]
        if tree["error_code"] is ErrorCode.none:
            # Kafka's word for it.
            tree["error_message"] = "NONE"
    request.respond(encode(build_response(API.key, version, tree)))


def _find(services: Services, kind: int, key: str, context: RequestContext) -> dict[str, Any]:
    try:
        where = _coordinator(services, kind, key, context)
    except KafkaError as error:
        detail = error.detail
        return {"key": key, **_NOBODY, "error_code": error.code, "error_message": detail}
    return {"key": key, **where, "error_code": ErrorCode.none, "error_message": ""}


def _coordinator(
    services: Services, kind: int, key: str, context: RequestContext
) -> dict[str, Any]:
    if kind == _TRANSACTION:
        raise KafkaError(ErrorCode.coordinator_not_available, "transactions are not supported yet")
    if kind != _GROUP:
        raise KafkaError(ErrorCode.invalid_request, _MALFORMED)
    image = services.image
    topic = image.topic(GROUP_TOPIC)
    if topic is None or not topic.partitions:
        services.auto_topic_creation.create([GROUP_TOPIC], context)
        raise KafkaError(ErrorCode.coordinator_not_available)
    leader = topic.partitions[partition_for(key, len(topic.partitions))].leader
    broker = image.brokers.get(leader)
    if broker is not None and not broker.fenced:
        for endpoint in broker.endpoints:
            if endpoint.listener == context.listener:
                return {"node_id": leader, "host": endpoint.host, "port": endpoint.port}
    raise KafkaError(ErrorCode.coordinator_not_available)
