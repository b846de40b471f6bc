from __future__ import annotations

import struct
from typing import Any

import pytest

from mobula.actors.controller.messages import ENVELOPE, Enveloped
from mobula.actors.gateway.forwarding_manager import Forwarded
from mobula.actors.spec import CONTROLLER_NAME
from mobula.protocol.api import Api, ApiKey
from mobula.protocol.errors import DecodeError, ErrorCode
from mobula.protocol.headers import RequestHeader
from mobula.protocol.messages import build_request, decode_response, encode

from .fakes import CLIENT, LISTENER, FakeRuntime, FakeSink, request_of, services_of

HANDLER = Forwarded(Api(ApiKey.CREATE_TOPICS, range(2, 8)))
TOPICS = [
    {
        "name": name,
        "num_partitions": 1,
        "replication_factor": 1,
        "assignments": [],
        "configs": [],
    }
    for name in ("a", "b")
]


class Gateway:
    def __init__(self, timeout_ms: int = 5000) -> None:
        self.runtime = FakeRuntime()
        self.services = services_of(self.runtime)
        self.sink = FakeSink()
        tree = {"topics": TOPICS, "timeout": timeout_ms, "validate_only": False}
        self.body = encode(build_request(ApiKey.CREATE_TOPICS, 7, tree))
        self.request = request_of(ApiKey.CREATE_TOPICS, 7, self.body, self.sink)
        HANDLER.handle(self.request, self.services)

    @property
    def controller(self) -> Any:
        return self.runtime.link(CONTROLLER_NAME)

    def codes(self) -> dict[str, str]:
        (body,) = self.sink.sent
        answer = decode_response(ApiKey.CREATE_TOPICS, 7, body)
        return {topic.name: topic.error_code.name for topic in answer.topics}


def test_the_controllers_answer_is_the_clients_answer() -> None:
    gateway = Gateway()
    call = gateway.controller.last
    assert call.method is ENVELOPE
    assert call.bulk == [gateway.body], "the client's own bytes"
    envelope = call.message
    assert (envelope.principal, envelope.client_address) == ("User:ANONYMOUS", CLIENT)
    assert envelope.listener == LISTENER
    assert envelope.timeout_ms == call.timeout_ms == 5000
    call.reply(Enveloped(0), b"the controller's response")
    assert gateway.sink.sent == [b"the controller's response"]


@pytest.mark.parametrize("cause", ["link", "not_controller"])
def test_a_controller_that_is_away_is_asked_again_within_the_timeout(cause: str) -> None:
    gateway = Gateway()
    if cause == "link":
        gateway.controller.last.fail()
    else:
        gateway.controller.last.reply(Enveloped(int(ErrorCode.not_controller)))
    assert not gateway.sink.endings
    gateway.runtime.loop.advance(100)
    assert len(gateway.controller.calls) == 2
    assert gateway.controller.last.timeout_ms == 4950
    gateway.controller.last.reply(Enveloped(0), b"done")
    assert gateway.sink.sent == [b"done"]


def test_a_controller_that_stays_away_ends_in_a_timeout_for_each_topic() -> None:
    gateway = Gateway(timeout_ms=2000)
    for _ in range(100):
        if gateway.sink.sent:
            break
        gateway.controller.last.fail()
        gateway.runtime.loop.advance(50)
    assert gateway.codes() == {"a": "request_timed_out", "b": "request_timed_out"}
    assert gateway.runtime.clock.ms - 1_000_000 == pytest.approx(2000, abs=100)


def test_a_client_that_does_not_want_to_wait_still_reaches_the_controller() -> None:
    assert Gateway(timeout_ms=0).controller.last.timeout_ms == 1000


def test_bytes_that_the_controller_does_not_understand_close_the_connection() -> None:
    gateway = Gateway()
    gateway.controller.last.reply(Enveloped(int(ErrorCode.unsupported_version)))
    assert len(gateway.sink.closed) == 1


def test_other_codes_are_the_answer_for_each_topic() -> None:
    gateway = Gateway()
    gateway.controller.last.reply(Enveloped(int(ErrorCode.unknown_server_error)))
    assert gateway.codes() == {"a": "unknown_server_error", "b": "unknown_server_error"}


def test_a_client_that_left_cancels_its_envelope() -> None:
    gateway = Gateway()
    gateway.request.ended = True
    assert gateway.request.on_abandoned is not None
    gateway.request.on_abandoned()
    assert gateway.controller.last.cancelled
    gateway = Gateway()
    gateway.controller.last.fail()
    gateway.request.ended = True
    assert gateway.request.on_abandoned is not None
    gateway.request.on_abandoned()
    gateway.runtime.loop.advance(1000)
    assert len(gateway.controller.calls) == 1


def test_garbage_is_not_forwarded() -> None:
    runtime = FakeRuntime()
    request = request_of(ApiKey.CREATE_TOPICS, 7, struct.pack(">q", -5), FakeSink())
    assert isinstance(request.header, RequestHeader)
    with pytest.raises(DecodeError):
        HANDLER.handle(request, services_of(runtime))
    assert not runtime.links
