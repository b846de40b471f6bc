"""Requests about groups go on to the coordinators of this broker, as their client sent them.

Invariant: such a request gets the coordinator's response, or one error response: a client
whose coordinator is away looks for another.
"""

from __future__ import annotations

import logging
from typing import Final

from mobula.actors.coordinator.messages import COORDINATE, Coordinate, Coordinated
from mobula.actors.gateway.request import Request
from mobula.actors.gateway.request_handler_helper import respond_with_error
from mobula.actors.gateway.services import Services
from mobula.actors.link.interface import LinkError
from mobula.actors.spec import broker_name
from mobula.protocol.api import Api, ApiKey
from mobula.protocol.errors import ErrorCode

log = logging.getLogger(__name__)

_TIMEOUT_MS: Final = 30_000
_LONGEST_MS: Final = 2**31 - 1
_MAY_WAIT: Final = (ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP)
"""For a rebalance, whose end is the coordinator's to see to; when it dies its link breaks."""


class ForCoordinator:
    """The handler of an API that the coordinators alone answer."""

    def __init__(self, api: Api) -> None:
        self.API = api

    def handle(self, request: Request, services: Services) -> None:
        _Asking(request, services).send()


class _Asking:
    def __init__(self, request: Request, services: Services) -> None:
        self._request = request
        self._link = services.runtime.link(broker_name(services.broker_id))

    def send(self) -> None:
        request = self._request
        context = request.context
        handle = self._link.call(
            COORDINATE,
            Coordinate(context.principal, context.client_address, context.listener),
            self._answered,
            self._unanswered,
            bulk=[request.frame],
            timeout_ms=_LONGEST_MS if request.header.api_key in _MAY_WAIT else _TIMEOUT_MS,
        )
        request.on_abandoned = lambda: self._link.cancel(handle)

    def _answered(self, reply: Coordinated, body: memoryview) -> None:
        if reply.error_code:
            self._request.resume(self._fail, ErrorCode(reply.error_code), reply.detail)
        else:
            self._request.resume(self._request.respond, body)

    def _unanswered(self, error: LinkError) -> None:
        log.info("coordinator did not answer reason=%s", error)
        self._request.resume(self._fail, ErrorCode.coordinator_not_available, None)

    def _fail(self, code: ErrorCode, detail: str | None) -> None:
        if code is ErrorCode.invalid_request:
            self._request.close_connection(f"the coordinator refused the request: {detail}")
        else:
            respond_with_error(self._request, code, detail)
