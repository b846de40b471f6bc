"""InitProducerId (key 22, v0-5).

Behaviour: an idempotent producer gets a fresh id with epoch 0, whatever it had before; it
bumps its epoch by itself. A transactional id is refused with UNSUPPORTED_VERSION: there is
no transaction coordinator yet. Every client takes that code as final and names it, where
INVALID_REQUEST reads like a bug of the client and an authorization code like a missing
right.
Versions: v3 brings the producer's former id and epoch (KIP-360), which must be both there
or both not; v5 changed only transactions.
"""

from __future__ import annotations

from mobula.actors.gateway.request import Request
from mobula.actors.gateway.services import Services
from mobula.protocol.api import Api, ApiKey
from mobula.protocol.errors import ErrorCode, KafkaError
from mobula.protocol.messages import build_response, decode_request, encode

API = Api(ApiKey.INIT_PRODUCER_ID, range(6))

_NONE = -1


def handle(request: Request, services: Services) -> None:
    asked = decode_request(API.key, request.header.api_version, request.body)
    if asked.transactional_id is not None:
        if not asked.transactional_id:
            raise KafkaError(ErrorCode.invalid_request, "an empty transactional id")
        raise KafkaError(ErrorCode.unsupported_version, "transactions are not supported yet")
    if (getattr(asked, "producer_id", _NONE) == _NONE) != (
        getattr(asked, "producer_epoch", _NONE) == _NONE
    ):
        raise KafkaError(ErrorCode.invalid_request, "a producer id without epoch, or the reverse")
    ids = services.producer_ids
    producer_id = ids.take()
    if producer_id is not None:
        _answer(request, producer_id)
        return
    waiter = ids.wait(lambda given: request.resume(_answer, request, given))
    request.on_abandoned = lambda: ids.forget(waiter)


def _answer(request: Request, producer_id: int | None) -> None:
    if producer_id is None:
        # What Kafka says while it has no block: clients try again.
        raise KafkaError(ErrorCode.coordinator_load_in_progress)
    tree = {"producer_id": producer_id, "producer_epoch": 0}
    request.respond(encode(build_response(API.key, request.header.api_version, tree)))
