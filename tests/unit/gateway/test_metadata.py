from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from mobula.actors.controller.messages import ENVELOPE, Enveloped
from mobula.actors.gateway.handlers import metadata
from mobula.actors.gateway.request import Request
from mobula.actors.gateway.request_handler_helper import handle_error
from mobula.actors.metadata.records import BrokerStateChanged, TopicCreated
from mobula.actors.spec import CONTROLLER_NAME
from mobula.protocol.api import ApiKey
from mobula.protocol.errors import ErrorCode, KafkaError
from mobula.protocol.headers import parse_request_header
from mobula.protocol.messages import (
    build_request,
    build_response,
    decode_request,
    decode_response,
    encode,
)

from .fakes import (
    EVENTS,
    ORDERS,
    FakeRuntime,
    FakeSink,
    broker,
    cluster_image,
    partition,
    request_of,
    services_of,
)

NO_ID = bytes(16)


class Gateway:
    def __init__(self, *records: Any, **config: str) -> None:
        self.runtime = FakeRuntime()
        self.services = services_of(self.runtime, cluster_image(*records), **config)
        self.sink = FakeSink()

    @property
    def controller(self) -> Any:
        return self.runtime.link(CONTROLLER_NAME)

    def ask(self, topics: Any, version: int = 12, **fields: Any) -> Any:
        body = encode(build_request(ApiKey.METADATA, version, {"topics": topics, **fields}))
        request = request_of(ApiKey.METADATA, version, body, self.sink)
        self.handle(request)
        return decode_response(ApiKey.METADATA, version, self.sink.sent[-1])

    def handle(self, request: Request) -> None:
        try:
            metadata.handle(request, self.services)
        except KafkaError as error:
            handle_error(request, error)


def named(*names: str) -> list[dict[str, Any]]:
    return [{"name": name, "topic_id": NO_ID} for name in names]


@pytest.mark.parametrize("version", range(14))
def test_a_topic_is_described_in_every_version(version: int) -> None:
    answer = Gateway().ask(named("orders"), version)
    assert [(b.node_id, b.host, b.port) for b in answer.brokers] == [
        (0, "host-0", 9092),
        (1, "host-1", 9093),
        (2, "host-2", 9094),
    ]
    (topic,) = answer.topics
    assert (topic.name, topic.error_code) == ("orders", ErrorCode.none)
    assert [(p.partition_index, p.leader_id) for p in topic.partitions] == [(0, 0), (1, 0), (2, 1)]
    assert topic.partitions[0].replica_nodes == (0, 1, 2)
    if version >= 1:
        assert answer.brokers[0].rack == "a"
        assert answer.controller_id in {0, 1, 2}
    if version >= 2:
        assert answer.cluster_id == "cluster-id"
    if version >= 7:
        assert topic.partitions[2].leader_epoch == 5
    if version >= 8:
        assert topic.topic_authorized_operations == -(2**31)
    if version >= 10:
        assert topic.topic_id.bytes == ORDERS


def test_all_topics_are_asked_for_by_an_empty_list_in_v0_and_by_null_later() -> None:
    events = (TopicCreated(EVENTS, "events"), partition(EVENTS, 0))
    gateway = Gateway(*events)
    assert {topic.name for topic in gateway.ask([], 0).topics} == {"orders", "events"}
    for version in range(1, 14):
        assert gateway.ask([], version).topics == ()
        assert {t.name for t in gateway.ask(None, version).topics} == {"orders", "events"}


def test_topics_are_looked_up_by_id_from_v12() -> None:
    gateway = Gateway()
    asked = [{"name": None, "topic_id": ORDERS}, {"name": None, "topic_id": b"?" * 16}]
    known, unknown = gateway.ask(asked, 12).topics
    assert (known.name, known.error_code) == ("orders", ErrorCode.none)
    assert (unknown.name, unknown.error_code) == (None, ErrorCode.unknown_topic_id)
    assert unknown.topic_id == UUID(bytes=b"?" * 16)
    assert not gateway.controller.calls


@pytest.mark.parametrize("version", [10, 11])
def test_ids_are_not_looked_up_before_v12(version: int) -> None:
    (topic,) = Gateway().ask([{"name": "orders", "topic_id": ORDERS}], version).topics
    assert topic.error_code == ErrorCode.invalid_request


@pytest.mark.parametrize("name", ["no spaces", "", ".", "x" * 250, "ümlaut"])
def test_a_name_no_topic_can_have_is_an_invalid_topic(name: str) -> None:
    gateway = Gateway()
    (topic,) = gateway.ask(named(name)).topics
    assert topic.error_code == ErrorCode.invalid_topic_exception
    assert not gateway.controller.calls


def test_a_missing_topic_is_created_and_the_client_asks_again() -> None:
    gateway = Gateway()
    (topic,) = gateway.ask(named("new"), allow_auto_topic_creation=True).topics
    assert topic.error_code == ErrorCode.unknown_topic_or_partition
    call = gateway.controller.last
    assert call.method is ENVELOPE
    (frame,) = call.bulk
    header = parse_request_header(memoryview(frame))
    assert header.api_key == ApiKey.CREATE_TOPICS
    creation = decode_request(
        header.api_key, header.api_version, memoryview(frame)[header.body_offset :]
    )
    (wanted,) = creation.topics
    assert (wanted.name, wanted.num_partitions, wanted.replication_factor) == ("new", -1, -1)

    gateway.ask(named("new"))
    assert len(gateway.controller.calls) == 1, "one creation at a time"
    result = {"topics": [{"name": "new", "error_code": int(ErrorCode.none)}]}
    body = encode(build_response(ApiKey.CREATE_TOPICS, header.api_version, result))
    call.reply(Enveloped(0), body)
    gateway.ask(named("new"))
    assert len(gateway.controller.calls) == 2


def test_a_creation_that_failed_is_tried_again_on_the_next_request() -> None:
    gateway = Gateway()
    gateway.ask(named("new"))
    gateway.controller.last.reply(Enveloped(int(ErrorCode.invalid_request)))
    gateway.ask(named("new"))
    assert len(gateway.controller.calls) == 2


def test_nothing_is_created_where_client_or_configuration_forbid_it() -> None:
    gateway = Gateway()
    gateway.ask(named("new"), 4, allow_auto_topic_creation=False)
    gateway.ask(named("__consumer_offsets"))
    assert not gateway.controller.calls
    gateway = Gateway(auto_create_topics_enable="false")
    (topic,) = gateway.ask(named("new")).topics
    assert topic.error_code == ErrorCode.unknown_topic_or_partition
    assert not gateway.controller.calls


def test_a_partition_without_leader_says_so() -> None:
    gateway = Gateway(partition(ORDERS, 0, leader=-1, isr=(2,)))
    part = gateway.ask(named("orders")).topics[0].partitions[0]
    assert (part.error_code, part.leader_id) == (ErrorCode.leader_not_available, -1)


def test_replicas_on_fenced_brokers_are_offline() -> None:
    gateway = Gateway(BrokerStateChanged(1, 1, True, False))
    answer = gateway.ask(named("orders"))
    assert [b.node_id for b in answer.brokers] == [0, 2]
    parts = answer.topics[0].partitions
    assert parts[0].offline_replicas == (1,)
    assert parts[2].error_code == ErrorCode.leader_not_available


def test_v0_leaves_out_replicas_that_are_away() -> None:
    gateway = Gateway(BrokerStateChanged(2, 1, True, False))
    part = gateway.ask(named("orders"), 0).topics[0].partitions[0]
    assert (part.error_code, part.replica_nodes) == (ErrorCode.replica_not_available, (0, 1))


@pytest.mark.parametrize(
    ("version", "code"), [(5, "leader_not_available"), (6, "listener_not_found")]
)
def test_a_leader_without_this_listener(version: int, code: str) -> None:
    gateway = Gateway(broker(1, listener="OTHER"))
    part = gateway.ask(named("orders"), version).topics[0].partitions[2]
    assert part.error_code.name == code


def test_operations_are_told_to_those_who_ask() -> None:
    answer = Gateway().ask(
        named("orders"),
        8,
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=True,
    )
    assert answer.topics[0].topic_authorized_operations > 0
    assert answer.cluster_authorized_operations > 0


def test_the_same_question_is_encoded_once_until_metadata_changes() -> None:
    gateway = Gateway()
    gateway.ask(named("orders"))
    gateway.ask(named("orders"))
    assert gateway.sink.sent[0] is not None
    first = gateway.services.metadata_responses.get(
        gateway.services.image, ("PLAINTEXT", 12, b"never asked")
    )
    assert first is None
    gateway.services.image.replay(partition(ORDERS, 0, leader=2, epoch=9))
    assert gateway.ask(named("orders")).topics[0].partitions[0].leader_id == 2


def test_a_topic_asked_for_twice_is_described_once() -> None:
    assert len(Gateway().ask(named("orders", "orders")).topics) == 1
