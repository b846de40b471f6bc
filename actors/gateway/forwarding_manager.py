"""ForwardingManager: admin requests go to the controller in an envelope, in their caller's name.

A controller that cannot be reached, or is not the active one, is asked again until the
request's own timeout.

Invariant: a forwarded request gets the controller's response or one error response.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from mobula.actors.controller.messages import ENVELOPE, Envelope, Enveloped
from mobula.actors.gateway.request import Request, RequestContext
from mobula.actors.gateway.request_handler_helper import respond_with_error
from mobula.actors.link.interface import Buffer, LinkError
from mobula.actors.runtime import Runtime
from mobula.actors.spec import CONTROLLER_NAME
from mobula.protocol.api import Api
from mobula.protocol.errors import ErrorCode
from mobula.protocol.messages import decode_request

if TYPE_CHECKING:
    import asyncio

    from mobula.actors.gateway.services import Services

log = logging.getLogger(__name__)

_LONGEST_MS: Final = 60_000
_SHORTEST_MS: Final = 1_000
"""A client that asks not to wait still has to be told that its request arrived."""
_RETRY_AFTER_S: Final = 0.05
_CLOSES_CONNECTION: Final = (ErrorCode.unsupported_version, ErrorCode.invalid_request)
"""Not said about what was asked for, but about the bytes."""


class Forwarded:
    """The handler of an API that the controller alone answers."""

    def __init__(self, api: Api) -> None:
        self.API = api

    def handle(self, request: Request, services: Services) -> None:
        services.forwarding.forward(request)


class ForwardingManager:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def forward(self, request: Request) -> None:
        """Ends the request with the controller's answer."""
        header = request.header
        asked = decode_request(header.api_key, header.api_version, request.body)
        timeout = getattr(asked, "timeout", None)
        timeout_ms = _LONGEST_MS if timeout is None else int(timeout.total_seconds() * 1000)
        envelope = self.send(
            request.frame,
            request.context,
            timeout_ms,
            lambda body: request.resume(request.respond, body),
            lambda code: request.resume(_fail, request, code),
        )
        request.on_abandoned = envelope.cancel

    def send(
        self,
        frame: Buffer,
        context: RequestContext,
        timeout_ms: int,
        on_response: Callable[[memoryview], None],
        on_error: Callable[[ErrorCode], None],
    ) -> InEnvelope:
        """Send a request (header and body). One of the callbacks runs once, never inside
        this call; none after the returned envelope was cancelled."""
        timeout_ms = max(_SHORTEST_MS, min(timeout_ms, _LONGEST_MS))
        envelope = InEnvelope(
            self._runtime,
            frame=frame,
            context=context,
            timeout_ms=timeout_ms,
            on_response=on_response,
            on_error=on_error,
        )
        envelope.send()
        return envelope


class InEnvelope:
    """One request on its way to the controller, however often it has to be sent."""

    def __init__(
        self,
        runtime: Runtime,
        *,
        frame: Buffer,
        context: RequestContext,
        timeout_ms: int,
        on_response: Callable[[memoryview], None],
        on_error: Callable[[ErrorCode], None],
    ) -> None:
        self._runtime = runtime
        self._frame = frame
        self._context = context
        self._deadline_ms = runtime.clock.monotonic_ms() + timeout_ms
        self._on_response = on_response
        self._on_error = on_error
        self._call: int | None = None
        self._retry: asyncio.TimerHandle | None = None

    def send(self) -> None:
        self._retry = None
        left_ms = self._deadline_ms - self._runtime.clock.monotonic_ms()
        if left_ms <= 0:
            self._on_error(ErrorCode.request_timed_out)
            return
        context = self._context
        self._call = self._runtime.link(CONTROLLER_NAME).call(
            ENVELOPE,
            Envelope(context.principal, context.client_address, context.listener, left_ms),
            self._answered,
            self._unanswered,
            bulk=[self._frame],
            timeout_ms=left_ms,
        )

    def cancel(self) -> None:
        if self._retry is not None:
            self._retry.cancel()
        if self._call is not None:
            self._runtime.link(CONTROLLER_NAME).cancel(self._call)

    def _answered(self, reply: Enveloped, body: memoryview) -> None:
        self._call = None
        if reply.error_code == ErrorCode.none:
            self._on_response(body)
        elif reply.error_code == ErrorCode.not_controller:
            self._again()
        else:
            self._on_error(ErrorCode(reply.error_code))

    def _unanswered(self, error: LinkError) -> None:
        self._call = None
        log.info("controller did not answer reason=%s", error)
        self._again()

    def _again(self) -> None:
        self._retry = self._runtime.loop.call_later(_RETRY_AFTER_S, self.send)


def _fail(request: Request, code: ErrorCode) -> None:
    if code in _CLOSES_CONNECTION:
        request.close_connection(f"the controller refused the request: {code.name}")
    else:
        respond_with_error(request, code, None)
