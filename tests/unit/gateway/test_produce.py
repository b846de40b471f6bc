from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pytest

from mobula.actors.gateway.awaited_acks import PATIENCE_MS
from mobula.actors.gateway.handlers import produce
from mobula.actors.gateway.request import Request
from mobula.actors.gateway.request_handler_helper import handle_error
from mobula.actors.metadata.image import TOPIC_RESOURCE
from mobula.actors.metadata.records import ConfigChanged, TopicCreated
from mobula.actors.purgatory.messages import (
    WATCH_PRODUCE,
    Cause,
    Change,
    PartitionsChanged,
    ProduceDone,
    ProducePart,
    WatchProduce,
)
from mobula.actors.replica.messages import APPEND, Appended, Origin, PartitionAppended
from mobula.actors.rows import Role, Row, RowsWriter
from mobula.actors.spec import (
    dedicated_replica_name,
    purgatory_name,
    replica_name,
    rows_path,
)
from mobula.protocol.api import ApiKey
from mobula.protocol.errors import DecodeError, ErrorCode, KafkaError
from mobula.protocol.messages import build_request, decode_response, encode

from .fakes import (
    BROKER_ID,
    EVENTS,
    ORDERS,
    FakeReply,
    FakeRuntime,
    FakeSink,
    batch,
    cluster_image,
    partition,
    request_of,
    services_of,
)

REPLICA = replica_name(BROKER_ID, 0)
PURGATORY = purgatory_name(BROKER_ID)


class Gateway:
    def __init__(self, *records: Any, run_dir: str = "/nowhere") -> None:
        self.runtime = FakeRuntime(run_dir=run_dir)
        self.services = services_of(self.runtime, cluster_image(*records))
        self.sink = FakeSink()
        self.version = 12

    @property
    def replica(self) -> Any:
        return self.runtime.link(REPLICA)

    @property
    def purgatory(self) -> Any:
        return self.runtime.link(PURGATORY)

    def send(
        self,
        topics: dict[str | bytes, dict[int, bytes | None]],
        *,
        acks: int = -1,
        timeout_ms: int = 5000,
        version: int = 12,
        transactional_id: str | None = None,
    ) -> Request:
        self.version = version
        tree = {
            "transactional_id": transactional_id,
            "acks": acks,
            "timeout": timeout_ms,
            "topic_data": [
                {
                    **({"topic_id": topic} if version >= 13 else {"name": topic}),
                    "partition_data": [
                        {"index": index, "records": records}
                        for index, records in partitions.items()
                    ],
                }
                for topic, partitions in topics.items()
            ],
        }
        body = encode(build_request(ApiKey.PRODUCE, version, tree))
        request = request_of(ApiKey.PRODUCE, version, body, self.sink)
        try:
            produce.handle(request, self.services)
        except (KafkaError, DecodeError) as error:
            handle_error(request, error)
        return request

    def response(self) -> Any:
        (body,) = self.sink.sent
        return decode_response(ApiKey.PRODUCE, self.version, body)

    def codes(self) -> dict[tuple[Any, int], str]:
        return {
            (getattr(topic, "name", None) or topic.topic_id.bytes, part.index): part.error_code.name
            for topic in self.response().responses
            for part in topic.partition_responses
        }


def appended(base_offset: int = 10, required_offset: int = 11) -> PartitionAppended:
    return PartitionAppended(0, base_offset, -1, 0, required_offset, 3)


def test_acks_all_is_answered_when_the_purgatory_says_so() -> None:
    gateway = Gateway()
    records = batch(records=3)
    request = gateway.send({"orders": {0: records}})
    call = gateway.replica.last
    assert call.method is APPEND
    assert call.message.acks == -1
    assert call.message.origin == Origin.CLIENT
    assert [(p.topic_id, p.partition, p.length) for p in call.message.parts] == [
        (ORDERS, 0, len(records))
    ]
    assert call.bulk == [records]
    assert request.holds_worker

    call.reply(Appended([appended()]))
    assert gateway.sink.released == 1
    assert gateway.sink.local_dones == 1
    watch = gateway.purgatory.last
    assert watch.method is WATCH_PRODUCE
    assert watch.message.timeout_ms == 5000
    assert watch.message.parts == [ProducePart(ORDERS, 0, 3, 11)]
    assert not gateway.sink.sent

    watch.reply(ProduceDone([0]))
    (topic,) = gateway.response().responses
    (part,) = topic.partition_responses
    assert (topic.name, part.index, part.error_code) == ("orders", 0, ErrorCode.none)
    assert part.base_offset == 10


def test_acks_one_is_answered_when_the_leader_has_it() -> None:
    gateway = Gateway()
    gateway.send({"orders": {0: batch()}}, acks=1)
    gateway.replica.last.reply(Appended([appended(required_offset=-1)]))
    assert gateway.codes() == {("orders", 0): "none"}
    assert not gateway.purgatory.calls


def test_acks_zero_gets_no_response() -> None:
    gateway = Gateway()
    gateway.send({"orders": {0: batch()}}, acks=0)
    gateway.replica.last.reply(Appended([appended(required_offset=-1)]))
    assert gateway.sink.no_ops == 1
    assert gateway.sink.endings == 1


def test_an_error_with_acks_zero_closes_the_connection_after_the_good_partitions_are_written() -> (
    None
):
    gateway = Gateway()
    gateway.send({"orders": {0: batch(), 99: batch()}}, acks=0)
    assert not gateway.sink.closed
    gateway.replica.last.reply(Appended([appended(required_offset=-1)]))
    (reason,) = gateway.sink.closed
    assert "unknown_topic_or_partition" in reason


def test_acks_all_with_nothing_to_wait_for_is_answered_at_once() -> None:
    gateway = Gateway()
    gateway.send({"orders": {0: batch()}})
    gateway.replica.last.reply(Appended([appended(required_offset=-1)]))
    assert gateway.codes() == {("orders", 0): "none"}
    assert not gateway.purgatory.calls


def test_one_bad_partition_never_fails_the_others() -> None:
    gateway = Gateway()
    torn = bytearray(batch())
    torn[-1] ^= 0xFF
    gateway.send(
        {
            "orders": {0: batch(), 1: bytes(torn), 2: batch(), 7: batch()},
            "nothing": {0: batch()},
        },
        acks=1,
    )
    call = gateway.replica.last
    assert [p.partition for p in call.message.parts] == [0]
    call.reply(Appended([appended(required_offset=-1)]))
    assert gateway.codes() == {
        ("orders", 0): "none",
        ("orders", 1): "corrupt_message",
        ("orders", 2): "not_leader_or_follower",
        ("orders", 7): "unknown_topic_or_partition",
        ("nothing", 0): "unknown_topic_or_partition",
    }


@pytest.mark.parametrize(
    ("records", "code"),
    [
        (None, "invalid_record"),
        (b"", "invalid_record"),
        (batch() + batch(), "invalid_record"),
        (batch(magic=1), "invalid_record"),
        (batch(attributes=0x20), "invalid_record"),
        (batch(attributes=0x10, producer_id=5), "unsupported_version"),
    ],
    ids=["null", "none", "two batches", "magic 1", "a control batch", "a transactional batch"],
)
def test_records_are_refused_before_anything_is_appended(records: Any, code: str) -> None:
    gateway = Gateway()
    gateway.send({"orders": {0: records}})
    assert gateway.codes() == {("orders", 0): code}
    assert not gateway.replica.calls


@pytest.mark.parametrize(("version", "code"), [(6, "unsupported_compression_type"), (7, None)])
def test_zstd_needs_produce_7(version: int, code: str | None) -> None:
    gateway = Gateway()
    gateway.send({"orders": {0: batch(attributes=4)}}, version=version)
    if code is None:
        assert len(gateway.replica.calls) == 1
    else:
        assert gateway.codes() == {("orders", 0): code}


def test_internal_topics_are_not_for_clients() -> None:
    gateway = Gateway(TopicCreated(EVENTS, "__consumer_offsets"), partition(EVENTS, 0))
    gateway.send({"__consumer_offsets": {0: batch()}, "__transaction_state": {0: batch()}})
    assert set(gateway.codes().values()) == {"invalid_topic_exception"}


@pytest.mark.parametrize("acks", [2, -2, 100])
def test_other_acks_are_refused(acks: int) -> None:
    gateway = Gateway()
    gateway.send({"orders": {0: batch(), 1: batch()}}, acks=acks)
    assert set(gateway.codes().values()) == {"invalid_required_acks"}


def test_a_transactional_id_is_refused_with_a_code_that_clients_take_as_final() -> None:
    gateway = Gateway()
    gateway.send({"orders": {0: batch()}}, transactional_id="tx")
    assert gateway.codes() == {("orders", 0): "unsupported_version"}
    assert not ErrorCode.unsupported_version.retriable


def test_a_request_without_partitions_is_answered_at_once() -> None:
    gateway = Gateway()
    gateway.send({}, acks=1)
    assert gateway.codes() == {}
    gateway = Gateway()
    gateway.send({}, acks=0)
    assert gateway.sink.no_ops == 1


@pytest.mark.parametrize("version", range(3, 14))
def test_every_served_version_is_answered_in_its_own_shape(version: int) -> None:
    gateway = Gateway()
    topic: Any = ORDERS if version >= 13 else "orders"
    gateway.send({topic: {0: batch(), 2: batch()}}, acks=1, version=version)
    gateway.replica.last.reply(Appended([appended(42, -1)]))
    assert gateway.codes() == {(topic, 0): "none", (topic, 2): "not_leader_or_follower"}
    assert gateway.response().responses[0].partition_responses[0].base_offset == 42


def test_leadership_errors_carry_the_current_leader_from_v10() -> None:
    gateway = Gateway()
    gateway.send({"orders": {2: batch()}}, version=10)
    response = gateway.response()
    (part,) = response.responses[0].partition_responses
    assert (part.current_leader.leader_id, part.current_leader.leader_epoch) == (1, 5)
    (endpoint,) = response.node_endpoints
    assert (endpoint.node_id, endpoint.host, endpoint.port, endpoint.rack) == (
        1,
        "host-1",
        9093,
        "b",
    )


def test_an_unknown_topic_id_has_its_own_code() -> None:
    gateway = Gateway()
    gateway.send({b"x" * 16: {0: batch()}}, version=13)
    assert gateway.codes() == {(b"x" * 16, 0): "unknown_topic_id"}


def test_a_broken_link_to_the_replica_actor_means_not_leader() -> None:
    gateway = Gateway()
    gateway.send({"orders": {0: batch(), 1: batch()}})
    gateway.replica.last.fail()
    assert set(gateway.codes().values()) == {"not_leader_or_follower"}


def test_errors_of_the_replica_actor_reach_the_client_in_its_version() -> None:
    answers = Appended(
        [
            PartitionAppended(int(ErrorCode.kafka_storage_error)),
            PartitionAppended(int(ErrorCode.not_enough_replicas), detail="ISR is too small"),
        ]
    )
    for version, storage in ((3, "not_leader_or_follower"), (8, "kafka_storage_error")):
        gateway = Gateway()
        gateway.send({"orders": {0: batch(), 1: batch()}}, version=version)
        gateway.replica.last.reply(answers)
        assert gateway.codes() == {("orders", 0): storage, ("orders", 1): "not_enough_replicas"}
    assert gateway.response().responses[0].partition_responses[1].error_message == (
        "ISR is too small"
    )


def test_the_records_that_keep_a_batch_out_are_named_from_v8() -> None:
    errors = ((1, "no key"), (4, "no key"))
    refused = PartitionAppended(
        int(ErrorCode.invalid_record), detail="no key", record_errors=errors
    )
    for version in (7, 8, 12):
        gateway = Gateway()
        gateway.send({"orders": {0: batch()}}, version=version)
        gateway.replica.last.reply(Appended([refused]))
        assert gateway.codes() == {("orders", 0): "invalid_record"}
        if version >= 8:
            answer = gateway.response().responses[0].partition_responses[0]
            named = [(e.batch_index, e.batch_index_error_message) for e in answer.record_errors]
            assert tuple(named) == errors


def test_each_replica_actor_gets_one_append_and_the_answers_are_merged_in_order() -> None:
    gateway = Gateway(
        TopicCreated(EVENTS, "events"),
        partition(EVENTS, 0),
        ConfigChanged(TOPIC_RESOURCE, "events", "replica.actor", "dedicated"),
    )
    gateway.send({"events": {0: batch()}, "orders": {0: batch(), 1: batch()}})
    other = gateway.runtime.link(dedicated_replica_name(BROKER_ID, EVENTS, 0))
    assert len(gateway.replica.calls) == len(other.calls) == 1
    gateway.replica.last.reply(Appended([appended(1), appended(2)]))
    assert not gateway.purgatory.calls
    other.last.reply(Appended([appended(3)]))
    watch = gateway.purgatory.last
    assert [part.topic_id for part in watch.message.parts] == [ORDERS, ORDERS, EVENTS]
    watch.reply(ProduceDone([0, int(ErrorCode.request_timed_out), 0]))
    assert gateway.codes() == {
        ("events", 0): "none",
        ("orders", 0): "none",
        ("orders", 1): "request_timed_out",
    }
    assert [topic.name for topic in gateway.response().responses] == ["events", "orders"]


def test_on_expiry_only_the_partitions_still_pending_say_so() -> None:
    gateway = Gateway()
    gateway.send({"orders": {0: batch(), 1: batch()}})
    gateway.replica.last.reply(Appended([appended(5, 6), appended(9, -1)]))
    watch = gateway.purgatory.last
    assert [part.partition for part in watch.message.parts] == [0]
    watch.reply(ProduceDone([int(ErrorCode.request_timed_out)]))
    assert gateway.codes() == {("orders", 0): "request_timed_out", ("orders", 1): "none"}


def row(high_watermark: int, *, epoch: int = 3, role: Role = Role.LEADER) -> Row:
    return Row(ORDERS, 0, role, epoch, 0, 0, 0, high_watermark, *([0] * 9))


class Published:
    """The rows of the replica actor, and its word that they moved."""

    def __init__(self, folder: Any) -> None:
        self._writer = RowsWriter(rows_path(str(folder), REPLICA), 1)
        self._slots: dict[int, int] = {}
        self.gateway = Gateway(run_dir=str(folder))

    def publish(self, high_watermark: int, partition: int = 0, **more: Any) -> None:
        fresh = row(high_watermark, **more)._replace(partition=partition)
        if partition in self._slots:
            self._writer.publish(self._slots[partition], fresh)
        else:
            self._slots[partition] = self._writer.allocate(fresh)

    def moved(self, high_watermark: int, partition: int = 0, **more: Any) -> None:
        self.publish(high_watermark, partition, **more)
        change = Change(ORDERS, partition, int(Cause.HIGH_WATERMARK))
        self.gateway.services.awaited_acks.changed(
            PartitionsChanged(REPLICA, [change]), memoryview(b""), FakeReply()
        )

    def close(self) -> None:
        self._writer.close()


@pytest.fixture
def published(tmp_path: Any) -> Iterator[Published]:
    made = Published(tmp_path)
    made.publish(10)
    made.publish(10, partition=1)
    yield made
    made.close()


def test_acks_all_is_answered_when_the_replica_says_that_the_high_watermark_moved(
    published: Published,
) -> None:
    gateway = published.gateway
    gateway.send({"orders": {0: batch()}})
    gateway.replica.last.reply(Appended([appended(10, 12)]))
    published.moved(11)
    assert not gateway.sink.sent
    published.moved(12)
    assert gateway.codes() == {("orders", 0): "none"}
    assert not gateway.purgatory.calls
    assert len(gateway.services.awaited_acks) == 0


def test_a_high_watermark_that_moved_before_the_append_was_answered_is_seen(
    published: Published,
) -> None:
    gateway = published.gateway
    gateway.send({"orders": {0: batch()}})
    published.moved(11)
    gateway.replica.last.reply(Appended([appended(10, 11)]))
    assert gateway.codes() == {("orders", 0): "none"}


def test_a_produce_waits_for_all_its_partitions_whichever_comes_first(
    published: Published,
) -> None:
    gateway = published.gateway
    gateway.send({"orders": {0: batch(), 1: batch()}})
    gateway.replica.last.reply(Appended([appended(10, 11), appended(10, 11)]))
    published.moved(11, partition=1)
    assert not gateway.sink.sent
    published.moved(11, partition=0)
    assert gateway.codes() == {("orders", 0): "none", ("orders", 1): "none"}


def test_what_takes_longer_goes_to_the_purgatory_with_the_time_that_is_left(
    published: Published,
) -> None:
    gateway = published.gateway
    gateway.send({"orders": {0: batch()}}, timeout_ms=1000)
    gateway.replica.last.reply(Appended([appended(10, 11)]))
    gateway.runtime.loop.advance(2 * PATIENCE_MS)
    (watch,) = gateway.purgatory.calls
    assert watch.message == WatchProduce(1000 - 2 * PATIENCE_MS, [ProducePart(ORDERS, 0, 3, 11)])
    assert len(gateway.services.awaited_acks) == 0


def test_what_may_not_wait_long_goes_to_the_purgatory_at_once(published: Published) -> None:
    gateway = published.gateway
    gateway.send({"orders": {0: batch()}}, timeout_ms=PATIENCE_MS)
    gateway.replica.last.reply(Appended([appended(10, 11)]))
    assert gateway.purgatory.last.message.timeout_ms == PATIENCE_MS


@pytest.mark.parametrize(
    "lost", [{"role": Role.FOLLOWER}, {"role": Role.OFFLINE}, {"epoch": 4}], ids=str
)
def test_a_lost_leadership_is_for_the_purgatory_to_say_at_once(
    published: Published, lost: dict[str, Any]
) -> None:
    gateway = published.gateway
    gateway.send({"orders": {0: batch()}})
    gateway.replica.last.reply(Appended([appended(10, 11)]))
    published.moved(10, **lost)
    assert gateway.purgatory.last.method is WATCH_PRODUCE


def test_a_request_that_is_abandoned_while_it_waits_leaves_nothing(published: Published) -> None:
    gateway = published.gateway
    request = gateway.send({"orders": {0: batch()}})
    gateway.replica.last.reply(Appended([appended(10, 11)]))
    request.ended = True
    assert request.on_abandoned is not None
    request.on_abandoned()
    gateway.runtime.loop.advance(2 * PATIENCE_MS)
    assert len(gateway.services.awaited_acks) == 0
    assert not gateway.purgatory.calls


def in_the_purgatory(published: Published, timeout_ms: int = 1000) -> Gateway:
    gateway = published.gateway
    gateway.send({"orders": {0: batch()}}, timeout_ms=timeout_ms)
    gateway.replica.last.reply(Appended([appended(10, 11)]))
    gateway.runtime.loop.advance(2 * PATIENCE_MS)
    return gateway


def test_a_lost_purgatory_is_made_up_for_by_the_published_row(published: Published) -> None:
    gateway = in_the_purgatory(published)
    published.publish(11)
    gateway.purgatory.last.fail()
    assert gateway.codes() == {("orders", 0): "none"}


def test_a_lost_purgatory_is_asked_again_for_what_still_waits(published: Published) -> None:
    gateway = in_the_purgatory(published)
    gateway.purgatory.last.fail()
    gateway.runtime.loop.advance(100)
    assert len(gateway.purgatory.calls) == 2
    assert gateway.purgatory.last.message.timeout_ms == 950 - 2 * PATIENCE_MS
    gateway.purgatory.last.reply(ProduceDone([0]))
    assert gateway.codes() == {("orders", 0): "none"}


def test_a_purgatory_lost_for_good_ends_in_a_timeout_at_the_deadline() -> None:
    gateway = Gateway()
    gateway.send({"orders": {0: batch()}}, timeout_ms=1000)
    gateway.replica.last.reply(Appended([appended(10, 11)]))
    gateway.runtime.clock.ms += 1000
    gateway.purgatory.last.fail()
    assert gateway.codes() == {("orders", 0): "request_timed_out"}


def test_an_abandoned_request_leaves_the_purgatory() -> None:
    gateway = Gateway()
    request = gateway.send({"orders": {0: batch()}})
    assert request.on_abandoned is None
    gateway.replica.last.reply(Appended([appended()]))
    request.ended = True
    assert request.on_abandoned is not None
    request.on_abandoned()
    assert gateway.purgatory.last.cancelled
    assert gateway.sink.endings == 0


def test_an_append_that_comes_back_for_an_abandoned_request_is_ignored() -> None:
    gateway = Gateway()
    request = gateway.send({"orders": {0: batch()}})
    request.ended = True
    gateway.replica.last.reply(Appended([appended()]))
    assert not gateway.purgatory.calls


def test_a_route_is_looked_up_anew_when_metadata_changed() -> None:
    gateway = Gateway()
    gateway.send({"orders": {0: batch()}})
    gateway.services.image.replay(partition(ORDERS, 0, leader=2, epoch=4))
    gateway.send({"orders": {0: batch()}})
    assert gateway.codes() == {("orders", 0): "not_leader_or_follower"}
    assert len(gateway.replica.calls) == 1


def test_bytes_that_are_no_produce_request_close_the_connection() -> None:
    gateway = Gateway()
    request = request_of(ApiKey.PRODUCE, 9, struct.pack(">q", -1), gateway.sink)
    with pytest.raises(DecodeError):
        produce.handle(request, gateway.services)
