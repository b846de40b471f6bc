"""DescribeCluster (key 60, v0-2).

Behaviour: the brokers as this request's listener reaches them. Clients cannot talk to the
controller; any broker forwards to it, so one that lives is named in its place.
Versions: v1 asks for brokers or controllers (KIP-919), and only brokers are here; v2 can
include fenced brokers (KIP-1073).
"""

from __future__ import annotations

from typing import Any

from mobula.actors.authorized_operations import ALL_ON_CLUSTER, NOT_ASKED
from mobula.actors.gateway.request import Request
from mobula.actors.gateway.services import Services
from mobula.actors.metadata.records import BrokerRegistered
from mobula.protocol.api import Api, ApiKey
from mobula.protocol.errors import ErrorCode
from mobula.protocol.messages import build_response, decode_request, encode

API = Api(ApiKey.DESCRIBE_CLUSTER, range(3))

_BROKERS = 1
_CONTROLLERS = 2


def handle(request: Request, services: Services) -> None:
    version = request.header.api_version
    asked = decode_request(API.key, version, request.body)
    endpoint_type = getattr(asked, "endpoint_type", _BROKERS)
    if endpoint_type == _BROKERS:
        tree = _describe(asked, request.context.listener, services)
    else:
        tree = _refuse(endpoint_type)
    request.respond(encode(build_response(API.key, version, tree)))


def _describe(asked: Any, listener: str, services: Services) -> dict[str, Any]:
    image = services.image
    fenced_too = getattr(asked, "include_fenced_brokers", False)
    live = {broker.broker_id for broker in image.live_brokers()}
    own = services.broker_id
    listed = [
        entry
        for broker in sorted(image.brokers.values(), key=lambda broker: broker.broker_id)
        if (fenced_too or not broker.fenced) and (entry := _broker(broker, listener)) is not None
    ]
    all_operations = asked.include_cluster_authorized_operations
    return {
        "endpoint_type": _BROKERS,
        "cluster_id": image.cluster_id,
        "controller_id": own if own in live else min(live, default=-1),
        "brokers": listed,
        "cluster_authorized_operations": ALL_ON_CLUSTER if all_operations else NOT_ASKED,
    }


def _broker(broker: BrokerRegistered, listener: str) -> dict[str, Any] | None:
    """None when clients of this listener cannot reach it."""
    for endpoint in broker.endpoints:
        if endpoint.listener == listener:
            return {
                "broker_id": broker.broker_id,
                "host": endpoint.host,
                "port": endpoint.port,
                "rack": broker.rack,
                "is_fenced": broker.fenced,
            }
    return None


def _refuse(endpoint_type: int) -> dict[str, Any]:
    if endpoint_type == _CONTROLLERS:
        code = ErrorCode.mismatched_endpoint_type
        message = (
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of "
            "type CONTROLLER"
        )
    else:
        code = ErrorCode.unsupported_endpoint_type
        message = f"Unsupported endpoint type {endpoint_type}"
    return {"error_code": code, "error_message": message}
