from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mobula.actors.gateway.handlers import delete_records
from mobula.actors.metadata.records import ConfigChanged, TopicCreated
from mobula.actors.purgatory.messages import (
    WATCH_DELETE_RECORDS,
    DeleteDone,
    DeletePart,
    WatchDeleteRecords,
)
from mobula.actors.replica.messages import (
    DELETE_RECORDS,
    PartitionDelete,
    PartitionDeleted,
    RecordsDeleted,
)
from mobula.protocol.api import ApiKey
from mobula.protocol.errors import ErrorCode
from mobula.protocol.messages import build_request, decode_response, encode
from tests.unit.gateway.fakes import EVENTS, ORDERS, FakeSink, cluster_image, partition, request_of
from tests.unit.gateway_fetch.support import Broker

TIMED_OUT = int(ErrorCode.request_timed_out)


class Deleting:
    def __init__(
        self, broker: Broker, *offsets: tuple[int, int], version: int = 2, topic: str = "orders"
    ) -> None:
        """`offsets`: (partition, offset)."""
        parts = [{"partition_index": index, "offset": offset} for index, offset in offsets]
        tree = {"topics": [{"name": topic, "partitions": parts}], "timeout": 2000}
        self.version = version
        self.sink = FakeSink()
        body = encode(build_request(ApiKey.DELETE_RECORDS, version, tree))
        self.request = request_of(ApiKey.DELETE_RECORDS, version, body, self.sink)
        delete_records.handle(self.request, broker.services)

    @property
    def results(self) -> list[tuple[int, ErrorCode, int]]:
        (body,) = self.sink.sent
        response = decode_response(ApiKey.DELETE_RECORDS, self.version, body)
        (topic,) = response.topics
        return [
            (part.partition_index, part.error_code, part.low_watermark) for part in topic.partitions
        ]


def deleted(required: int, low: int) -> PartitionDeleted:
    return PartitionDeleted(0, required, low)


@pytest.mark.parametrize("version", delete_records.API.versions)
def test_records_deleted_from_every_replica_are_answered_at_once(
    broker: Broker, version: int
) -> None:
    deleting = Deleting(broker, (0, 5), (1, -1), version=version)
    call = broker.replica.last
    assert call.method is DELETE_RECORDS
    assert call.message.parts == [PartitionDelete(ORDERS, 0, 5), PartitionDelete(ORDERS, 1, -1)]
    call.reply(RecordsDeleted([deleted(5, 5), deleted(9, 9)]))
    assert deleting.results == [(0, ErrorCode.none, 5), (1, ErrorCode.none, 9)]
    assert broker.purgatory.calls == []


def test_of_a_partition_named_twice_the_last_offset_counts(broker: Broker) -> None:
    deleting = Deleting(broker, (0, 5), (1, 2), (0, 3))
    call = broker.replica.last
    assert call.message.parts == [PartitionDelete(ORDERS, 0, 3), PartitionDelete(ORDERS, 1, 2)]
    call.reply(RecordsDeleted([deleted(3, 3), deleted(2, 2)]))
    assert deleting.results == [(0, ErrorCode.none, 3), (1, ErrorCode.none, 2)]


def test_replicas_that_lag_are_waited_for_in_the_purgatory(broker: Broker) -> None:
    deleting = Deleting(broker, (0, 5), (1, 5))
    broker.runtime.clock.ms += 300
    broker.replica.last.reply(RecordsDeleted([deleted(5, 5), deleted(5, 2)]))
    call = broker.purgatory.last
    assert call.method is WATCH_DELETE_RECORDS
    assert call.message == WatchDeleteRecords(1700, [DeletePart(ORDERS, 1, 5)])
    assert not deleting.sink.sent
    call.reply(DeleteDone([0], [6]))
    assert deleting.results == [(0, ErrorCode.none, 5), (1, ErrorCode.none, 6)]


def test_a_wait_that_ends_says_how_far_the_replicas_had_come(broker: Broker) -> None:
    deleting = Deleting(broker, (0, 5))
    broker.replica.last.reply(RecordsDeleted([deleted(5, 2)]))
    broker.purgatory.last.reply(DeleteDone([TIMED_OUT], [-1]))
    assert deleting.results == [(0, ErrorCode.request_timed_out, 2)]


def test_a_dead_purgatory_is_a_wait_that_ended(broker: Broker) -> None:
    deleting = Deleting(broker, (0, 5))
    broker.replica.last.reply(RecordsDeleted([deleted(5, 2)]))
    broker.purgatory.last.fail()
    assert deleting.results == [(0, ErrorCode.request_timed_out, -1)]


def test_one_bad_partition_never_fails_the_others(broker: Broker) -> None:
    deleting = Deleting(broker, (9, 1), (2, 1), (0, 1), (1, 99))
    out_of_range = PartitionDeleted(int(ErrorCode.offset_out_of_range))
    broker.replica.last.reply(RecordsDeleted([deleted(1, 1), out_of_range]))
    assert deleting.results == [
        (9, ErrorCode.unknown_topic_or_partition, -1),
        (2, ErrorCode.not_leader_or_follower, -1),
        (0, ErrorCode.none, 1),
        (1, ErrorCode.offset_out_of_range, -1),
    ]


def test_a_dead_replica_actor_is_not_leader(broker: Broker) -> None:
    deleting = Deleting(broker, (0, 5))
    broker.replica.last.fail()
    assert deleting.results == [(0, ErrorCode.not_leader_or_follower, -1)]


def broker_with(tmp_path: Path, *records: Any) -> Broker:
    return Broker(tmp_path, cluster_image(*records))


def test_a_topic_that_is_only_compacted_keeps_its_records(tmp_path: Path) -> None:
    broker = broker_with(tmp_path, ConfigChanged(2, "orders", "cleanup.policy", "compact"))
    assert Deleting(broker, (0, 5)).results == [(0, ErrorCode.policy_violation, -1)]
    assert broker.replica.calls == []
    broker.close()


def test_a_topic_that_is_compacted_and_deleted_may_lose_records(tmp_path: Path) -> None:
    broker = broker_with(tmp_path, ConfigChanged(2, "orders", "cleanup.policy", "compact,delete"))
    deleting = Deleting(broker, (0, 5))
    broker.replica.last.reply(RecordsDeleted([deleted(5, 5)]))
    assert deleting.results == [(0, ErrorCode.none, 5)]
    broker.close()


def test_internal_topics_are_refused(tmp_path: Path) -> None:
    name = "__consumer_offsets"
    broker = broker_with(tmp_path, TopicCreated(EVENTS, name), partition(EVENTS, 0))
    deleting = Deleting(broker, (0, 5), topic=name)
    assert deleting.results == [(0, ErrorCode.invalid_topic_exception, -1)]
    broker.close()


def test_a_connection_lost_meanwhile_cancels_whichever_call_is_under_way(broker: Broker) -> None:
    first = Deleting(broker, (0, 5))
    assert first.request.on_abandoned is not None
    first.request.on_abandoned()
    assert broker.replica.last.cancelled
    second = Deleting(broker, (0, 5))
    broker.replica.last.reply(RecordsDeleted([deleted(5, 2)]))
    assert second.request.on_abandoned is not None
    second.request.on_abandoned()
    assert broker.purgatory.last.cancelled
