"""ApiVersions and InitProducerId, and the managers behind them."""

from __future__ import annotations

from typing import Any

import pytest

from mobula.actors.controller.messages import ALLOCATE_PRODUCER_IDS, ProducerIdBlock
from mobula.actors.gateway.api_version_manager import ApiVersionManager
from mobula.actors.gateway.handlers import api_versions, init_producer_id
from mobula.actors.gateway.request_handler_helper import handle_error
from mobula.actors.spec import CONTROLLER_NAME
from mobula.protocol.api import Api, ApiKey
from mobula.protocol.errors import ErrorCode, KafkaError
from mobula.protocol.messages import build_request, decode_response, encode

from .fakes import FakeRuntime, FakeSink, request_of, services_of

APIS = (
    Api(ApiKey.PRODUCE, range(14), served=range(3, 14)),
    Api(ApiKey.API_VERSIONS, range(5)),
    Api(ApiKey.METADATA, range(14)),
)


def test_what_is_advertised_is_what_handlers_declared() -> None:
    manager = ApiVersionManager(APIS)
    assert manager.advertised() == [(0, 0, 13), (3, 0, 13), (18, 0, 4)]


def test_advertised_and_served_differ_only_where_a_handler_says_so() -> None:
    manager = ApiVersionManager(APIS)
    assert not manager.is_enabled(0, 2)
    assert manager.is_enabled(0, 3)
    assert not manager.is_enabled(3, 14)
    assert not manager.is_enabled(3, -1)
    assert not manager.is_enabled(1, 4)
    assert not manager.is_enabled(-1, 0)
    assert manager.is_enabled(18, 99), "its handler answers any version"


def test_an_api_declared_twice_is_a_bug() -> None:
    with pytest.raises(ValueError, match="twice"):
        ApiVersionManager((*APIS, APIS[0]))


@pytest.mark.parametrize("version", range(5))
def test_api_versions_lists_what_is_served(version: int) -> None:
    sink, services = FakeSink(), services_of(FakeRuntime())
    services.versions = ApiVersionManager(APIS)
    tree = {"client_software_name": "test", "client_software_version": "1.0"}
    body = encode(build_request(ApiKey.API_VERSIONS, version, tree))
    api_versions.handle(request_of(ApiKey.API_VERSIONS, version, body, sink), services)
    answer = decode_response(ApiKey.API_VERSIONS, version, sink.sent[0])
    assert [(a.api_key, a.min_version, a.max_version) for a in answer.api_keys] == [
        (0, 0, 13),
        (3, 0, 13),
        (18, 0, 4),
    ]


@pytest.mark.parametrize("version", [5, 99, -1])
def test_an_api_versions_request_too_high_is_answered_in_v0_with_error_35(version: int) -> None:
    sink, services = FakeSink(), services_of(FakeRuntime())
    api_versions.handle(request_of(ApiKey.API_VERSIONS, version, b"\x00?", sink), services)
    answer = decode_response(ApiKey.API_VERSIONS, 0, sink.sent[0])
    assert answer.error_code == ErrorCode.unsupported_version
    (only,) = answer.api_keys
    assert (only.api_key, only.min_version, only.max_version) == (18, 0, 4)


def test_a_client_software_name_is_checked() -> None:
    sink, services = FakeSink(), services_of(FakeRuntime())
    tree = {"client_software_name": "-bad-", "client_software_version": "1.0"}
    body = encode(build_request(ApiKey.API_VERSIONS, 3, tree))
    request = request_of(ApiKey.API_VERSIONS, 3, body, sink)
    with pytest.raises(KafkaError) as raised:
        api_versions.handle(request, services)
    handle_error(request, raised.value)
    answer = decode_response(ApiKey.API_VERSIONS, 3, sink.sent[0])
    assert answer.error_code == ErrorCode.invalid_request


class Producers:
    def __init__(self) -> None:
        self.runtime = FakeRuntime()
        self.services = services_of(self.runtime)
        self.sink = FakeSink()

    @property
    def controller(self) -> Any:
        return self.runtime.link(CONTROLLER_NAME)

    def init(self, version: int = 4, **fields: Any) -> Any:
        tree = {"transactional_id": None, "transaction_timeout": 60_000, **fields}
        body = encode(build_request(ApiKey.INIT_PRODUCER_ID, version, tree))
        request = request_of(ApiKey.INIT_PRODUCER_ID, version, body, self.sink)
        try:
            init_producer_id.handle(request, self.services)
        except KafkaError as error:
            handle_error(request, error)
        return request

    def answers(self, version: int = 4) -> list[tuple[str, int, int]]:
        decoded = [decode_response(ApiKey.INIT_PRODUCER_ID, version, b) for b in self.sink.sent]
        return [(a.error_code.name, a.producer_id, a.producer_epoch) for a in decoded]


@pytest.mark.parametrize("version", range(6))
def test_an_idempotent_producer_gets_an_id_of_the_block(version: int) -> None:
    producers = Producers()
    producers.init(version)
    call = producers.controller.last
    assert call.method is ALLOCATE_PRODUCER_IDS
    call.reply(ProducerIdBlock(0, 4000, 1000))
    producers.init(version)
    assert producers.answers(version) == [("none", 4000, 0), ("none", 4001, 0)]
    assert len(producers.controller.calls) == 1


def test_the_next_block_is_asked_for_before_the_first_is_used_up() -> None:
    producers = Producers()
    producers.init()
    producers.controller.last.reply(ProducerIdBlock(0, 0, 20))
    for _ in range(18):
        producers.init()
    assert len(producers.controller.calls) == 2
    producers.init()
    producers.init()
    assert len(producers.answers()) == 20, "one waits"
    producers.controller.last.reply(ProducerIdBlock(0, 500, 20))
    given = [producer_id for _, producer_id, _ in producers.answers()]
    assert given == [*range(20), 500]


def test_producers_that_wait_are_told_to_try_again_when_no_block_comes() -> None:
    producers = Producers()
    producers.init()
    producers.init()
    producers.controller.last.fail("down")
    assert producers.answers() == [("coordinator_load_in_progress", -1, -1)] * 2
    producers.init()
    producers.controller.last.reply(ProducerIdBlock(int(ErrorCode.not_controller)))
    assert len(producers.answers()) == 3


def test_a_producer_that_left_takes_no_id() -> None:
    producers = Producers()
    gone = producers.init()
    producers.init()
    gone.ended = True
    gone.on_abandoned()
    producers.controller.last.reply(ProducerIdBlock(0, 0, 10))
    assert producers.answers() == [("none", 0, 0)]


def test_a_transactional_id_is_refused() -> None:
    producers = Producers()
    producers.init(transactional_id="tx")
    producers.init(transactional_id="")
    assert [code for code, _, _ in producers.answers()] == [
        "unsupported_version",
        "invalid_request",
    ]
    assert not producers.controller.calls


def test_a_former_id_and_epoch_come_together_or_not_at_all() -> None:
    producers = Producers()
    producers.init(producer_id=7)
    producers.init(producer_epoch=7)
    assert [code for code, _, _ in producers.answers()] == ["invalid_request"] * 2
    producers.init(producer_id=7, producer_epoch=3)
    producers.controller.last.reply(ProducerIdBlock(0, 90, 10))
    assert producers.answers()[-1] == ("none", 90, 0), "always a fresh id"
