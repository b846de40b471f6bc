"""The one funnel for what a handler raises, in its first stage or later.

KafkaError becomes the API's error response, DecodeError closes the connection, everything
else is a bug: logged with its traceback and answered UNKNOWN_SERVER_ERROR.

Invariant: after `handle_error` the request has ended.
"""

from __future__ import annotations

import logging

from mobula.actors.gateway.error_responses import error_response
from mobula.actors.gateway.request import Request
from mobula.protocol.errors import DecodeError, ErrorCode, KafkaError

log = logging.getLogger(__name__)


def handle_error(request: Request, error: Exception) -> None:
    if request.ended:
        log.error("an error after the response api=%d", request.header.api_key, exc_info=error)
    elif isinstance(error, KafkaError):
        respond_with_error(request, error.code, error.detail)
    elif isinstance(error, DecodeError):
        request.close_connection(f"malformed request: {error}")
    else:
        log.error(
            "request failed api=%d version=%d client=%s",
            request.header.api_key,
            request.header.api_version,
            request.context.client_address,
            exc_info=error,
        )
        respond_with_error(request, ErrorCode.unknown_server_error, None)


def respond_with_error(request: Request, code: ErrorCode, detail: str | None) -> None:
    """The whole request failed with this code."""
    header = request.header
    try:
        body = error_response(header.api_key, header.api_version, request.body, code, detail)
    except DecodeError as error:
        # Also when the request's bytes were given back before it failed.
        request.close_connection(f"{code.name} for a request that cannot be read: {error}")
        return
    except Exception:
        # What raises here would leave its request open and its worker busy for ever.
        log.exception("no error response could be made api=%d code=%s", header.api_key, code.name)
        body = None
    if body is None:
        request.close_connection(f"{code.name}, and no response can say so")
    else:
        request.respond(body)
