from __future__ import annotations

from collections.abc import Callable

import pytest

from mobula.actors.gateway.kafka_apis import HANDLERS, KafkaApis
from mobula.actors.gateway.request import Request
from mobula.actors.gateway.services import Services
from mobula.protocol.api import Api, ApiKey
from mobula.protocol.errors import DecodeError, ErrorCode, KafkaError
from mobula.protocol.messages import build_request, decode_response, encode

from .fakes import FakeRuntime, FakeSink, request_of, services_of

SERVED = {
    ApiKey.PRODUCE: (0, 13),
    ApiKey.FETCH: (4, 18),
    ApiKey.LIST_OFFSETS: (1, 11),
    ApiKey.METADATA: (0, 13),
    ApiKey.OFFSET_COMMIT: (2, 10),
    ApiKey.OFFSET_FETCH: (1, 10),
    ApiKey.FIND_COORDINATOR: (0, 6),
    ApiKey.JOIN_GROUP: (0, 9),
    ApiKey.HEARTBEAT: (0, 4),
    ApiKey.LEAVE_GROUP: (0, 5),
    ApiKey.SYNC_GROUP: (0, 5),
    ApiKey.DESCRIBE_GROUPS: (0, 6),
    ApiKey.LIST_GROUPS: (0, 5),
    ApiKey.API_VERSIONS: (0, 4),
    ApiKey.CREATE_TOPICS: (2, 7),
    ApiKey.DELETE_TOPICS: (1, 6),
    ApiKey.DELETE_RECORDS: (0, 2),
    ApiKey.INIT_PRODUCER_ID: (0, 5),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (2, 4),
    ApiKey.DESCRIBE_CONFIGS: (1, 4),
    ApiKey.ALTER_CONFIGS: (0, 2),
    ApiKey.DESCRIBE_LOG_DIRS: (1, 4),
    ApiKey.CREATE_PARTITIONS: (0, 3),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (0, 1),
    ApiKey.DESCRIBE_CLUSTER: (0, 2),
    ApiKey.DELETE_GROUPS: (0, 2),
    ApiKey.OFFSET_DELETE: (0, 0),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: (0, 0),
}


def test_the_table_holds_what_clients_are_promised_and_nothing_else() -> None:
    table = {h.API.key: (h.API.versions[0], h.API.versions[-1]) for h in HANDLERS}
    assert table == SERVED


def test_only_old_produce_is_advertised_without_being_served() -> None:
    different = [h.API.key for h in HANDLERS if h.API.served != h.API.versions]
    assert different == [ApiKey.PRODUCE]


class Raising:
    API = Api(ApiKey.INIT_PRODUCER_ID, range(6))

    def __init__(self, error: Exception) -> None:
        self._error = error

    @property
    def handle(self) -> Callable[[Request, Services], None]:
        def raising(request: Request, services: Services) -> None:
            raise self._error

        return raising


def request(sink: FakeSink) -> Request:
    body = encode(build_request(ApiKey.INIT_PRODUCER_ID, 4, {"transactional_id": None}))
    return request_of(ApiKey.INIT_PRODUCER_ID, 4, body, sink)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (KafkaError(ErrorCode.not_coordinator), ErrorCode.not_coordinator),
        (RuntimeError("a bug"), ErrorCode.unknown_server_error),
    ],
)
@pytest.mark.parametrize("stage", ["first", "later"])
def test_what_any_stage_raises_ends_the_request(
    error: Exception, code: ErrorCode, stage: str
) -> None:
    sink = FakeSink()
    apis = KafkaApis(services_of(FakeRuntime()), [Raising(error)])
    asked = request(sink)
    if stage == "first":
        apis.handle(asked)
    else:
        apis.resume(asked, Raising(error).handle, (asked, services_of(FakeRuntime())))
    (body,) = sink.sent
    assert decode_response(ApiKey.INIT_PRODUCER_ID, 4, body).error_code == code


def test_a_request_that_cannot_be_read_closes_its_connection() -> None:
    sink = FakeSink()
    apis = KafkaApis(services_of(FakeRuntime()), [Raising(DecodeError("bad"))])
    apis.handle(request(sink))
    assert len(sink.closed) == 1
