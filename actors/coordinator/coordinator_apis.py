"""CoordinatorApis: the table of what a broker's coordinators answer.

A request arrives as a gateway had it from its client; gateways send on only what is in the
table. Bytes that are no request are INVALID_REQUEST: the gateway then closes the connection,
as it does for its own.
"""

from __future__ import annotations

import logging
from types import ModuleType

from mobula.actors.coordinator.handlers import (
    delete_groups,
    describe_groups,
    heartbeat,
    join_group,
    leave_group,
    list_groups,
    offset_commit,
    offset_delete,
    offset_fetch,
    sync_group,
)
from mobula.actors.coordinator.messages import Coordinate, Coordinated
from mobula.actors.coordinator.request import CoordinatorRequest
from mobula.actors.coordinator.services import CoordinatorServices
from mobula.actors.link.interface import Reply
from mobula.protocol.errors import DecodeError, ErrorCode, KafkaError
from mobula.protocol.headers import parse_request_header
from mobula.protocol.messages import decode_request

log = logging.getLogger(__name__)

HANDLERS: tuple[ModuleType, ...] = (
    join_group,
    sync_group,
    heartbeat,
    leave_group,
    offset_commit,
    offset_fetch,
    offset_delete,
    describe_groups,
    list_groups,
    delete_groups,
)


class CoordinatorApis:
    def __init__(self, services: CoordinatorServices) -> None:
        self._services = services
        self._handlers = {int(module.API.key): module.handle for module in HANDLERS}

    def handle(self, asked: Coordinate, frame: memoryview, reply: Reply) -> None:
        try:
            header = parse_request_header(frame)
            handler = self._handlers[header.api_key]
            body = decode_request(header.api_key, header.api_version, frame[header.body_offset :])
        except DecodeError as error:
            log.warning("request refused client=%s: %s", asked.client_address, error)
            reply(Coordinated(ErrorCode.invalid_request, str(error)))
            return
        request = CoordinatorRequest(header, body, asked, reply)
        try:
            handler(request, self._services)
        except KafkaError as error:
            request.fail(error)
        except Exception:
            log.exception("bug: request failed api=%d client=%s", request.key, asked.client_address)
            request.fail(KafkaError(ErrorCode.unknown_server_error))
