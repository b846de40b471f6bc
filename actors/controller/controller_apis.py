"""ControllerApis: the table of what the controller answers for clients.

A request arrives in an envelope: the client's own bytes, forwarded by a gateway in the
client's name. What is not in the table, or not in that version, is UNSUPPORTED_VERSION,
and bytes that are no request INVALID_REQUEST: the gateway then closes the connection.
"""

from __future__ import annotations

import logging
from types import ModuleType
from typing import NamedTuple

from mobula.actors.controller.core import ControllerCore
from mobula.actors.controller.handlers import (
    alter_configs,
    create_partitions,
    create_topics,
    delete_topics,
    incremental_alter_configs,
)
from mobula.actors.controller.messages import Envelope, Enveloped
from mobula.actors.controller.outcome import Outcome
from mobula.actors.controller.request import ControllerHandler, ControllerRequest
from mobula.protocol.api import Api
from mobula.protocol.errors import DecodeError, ErrorCode, KafkaError
from mobula.protocol.headers import parse_request_header
from mobula.protocol.messages import build_response, decode_request, encode

log = logging.getLogger(__name__)

_HANDLERS: tuple[ModuleType, ...] = (
    create_topics,
    delete_topics,
    create_partitions,
    alter_configs,
    incremental_alter_configs,
)

CONTROLLER_APIS: dict[int, tuple[Api, ControllerHandler]] = {
    module.API.key: (module.API, module.handle) for module in _HANDLERS
}


class Answer(NamedTuple):
    message: Enveloped
    body: bytes = b""


class ControllerApis:
    def __init__(self, core: ControllerCore) -> None:
        self._core = core

    def handle(self, envelope: Envelope, frame: memoryview) -> Outcome[Answer]:
        """The records to commit, and the response body that may leave after that."""
        try:
            return self._handle(envelope, frame)
        except DecodeError as error:
            log.warning("forwarded request refused client=%s: %s", envelope.client_address, error)
            return _failed(ErrorCode.invalid_request)
        except KafkaError as error:
            return _failed(error.code)
        except Exception:
            log.exception("bug: forwarded request failed client=%s", envelope.client_address)
            return _failed(ErrorCode.unknown_server_error)

    def _handle(self, envelope: Envelope, frame: memoryview) -> Outcome[Answer]:
        header = parse_request_header(frame)
        key, version = header.api_key, header.api_version
        entry = CONTROLLER_APIS.get(key)
        if entry is None or version not in entry[0].served:
            return _failed(ErrorCode.unsupported_version)
        request = ControllerRequest(
            version=version,
            body=decode_request(key, version, frame[header.body_offset :]),
            principal=envelope.principal,
            client_address=envelope.client_address,
            listener=envelope.listener,
        )
        outcome = entry[1](request, self._core)
        # Encoded before anything is committed: a response that cannot be told changes nothing.
        body = encode(build_response(key, version, outcome.response))
        return Outcome(outcome.records, Answer(Enveloped(ErrorCode.none), body))


def _failed(code: ErrorCode) -> Outcome[Answer]:
    return Outcome([], Answer(Enveloped(code)))
