from __future__ import annotations

from typing import Any

import pytest

from mobula.actors.gateway.handlers import list_offsets
from mobula.actors.replica.messages import (
    OFFSETS_FOR_TIMES,
    OffsetsFound,
    PartitionOffset,
    PartitionTime,
)
from mobula.actors.rows import Role
from mobula.protocol.api import ApiKey
from mobula.protocol.errors import ErrorCode
from mobula.protocol.messages import build_request, decode_response, encode
from tests.unit.gateway.fakes import ORDERS, FakeSink, request_of
from tests.unit.gateway_fetch.support import EPOCH, Broker

LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3


class Listing:
    def __init__(
        self, broker: Broker, *times: tuple[int, int], version: int = 11, **fields: Any
    ) -> None:
        """`times`: (partition, timestamp) of `orders`."""
        epoch = fields.pop("epoch", -1)
        topic = fields.pop("topic", "orders")
        tree = {
            "replica_id": -1,
            "topics": [
                {
                    "name": topic,
                    "partitions": [
                        {
                            "partition_index": index,
                            "timestamp": timestamp,
                            "current_leader_epoch": epoch,
                        }
                        for index, timestamp in times
                    ],
                }
            ],
            **fields,
        }
        self.version = version
        self.sink = FakeSink()
        body = encode(build_request(ApiKey.LIST_OFFSETS, version, tree))
        self.request = request_of(ApiKey.LIST_OFFSETS, version, body, self.sink)
        list_offsets.handle(self.request, broker.services)

    @property
    def partitions(self) -> tuple[Any, ...]:
        (body,) = self.sink.sent
        response = decode_response(ApiKey.LIST_OFFSETS, self.version, body)
        (topic,) = response.topics
        found: tuple[Any, ...] = topic.partitions
        return found

    @property
    def only(self) -> Any:
        (part,) = self.partitions
        return part


@pytest.fixture
def filled(broker: Broker) -> Broker:
    for _ in range(5):
        broker.append(0)
    broker.logs[0].advance_log_start(2)
    broker.publish(0, high_watermark=4)
    return broker


@pytest.mark.parametrize("version", list_offsets.API.versions)
def test_latest_and_earliest_come_straight_from_the_row(filled: Broker, version: int) -> None:
    latest = Listing(filled, (0, LATEST), version=version).only
    assert (latest.error_code, latest.offset, latest.timestamp) == (ErrorCode.none, 4, -1)
    earliest = Listing(filled, (0, EARLIEST), version=version).only
    assert (earliest.error_code, earliest.offset, earliest.timestamp) == (ErrorCode.none, 2, -1)
    if version >= 4:
        assert latest.leader_epoch == earliest.leader_epoch == EPOCH
    assert filled.replica.calls == []


def test_read_committed_sees_the_last_stable_offset(filled: Broker) -> None:
    filled.publish(0, last_stable_offset=3)
    assert Listing(filled, (0, LATEST), isolation_level=1).only.offset == 3
    assert Listing(filled, (0, LATEST), isolation_level=0).only.offset == 5


def test_whoever_is_no_consumer_sees_the_log_end(filled: Broker) -> None:
    assert Listing(filled, (0, LATEST), replica_id=-2).only.offset == 5
    filled.publish(0, role=Role.FOLLOWER)
    assert Listing(filled, (0, LATEST), replica_id=-2).only.offset == 5
    assert Listing(filled, (0, LATEST), replica_id=1).only.error_code is (
        ErrorCode.not_leader_or_follower
    )


def test_the_epoch_of_an_earliest_offset_of_an_older_epoch_is_not_claimed(filled: Broker) -> None:
    filled.publish(0, epoch_start_offset=3, high_watermark=4)
    assert Listing(filled, (0, EARLIEST)).only.leader_epoch == -1


def test_a_new_leader_does_not_know_the_latest_offset_yet(filled: Broker) -> None:
    filled.publish(0, high_watermark=4, epoch_start_offset=5)
    assert Listing(filled, (0, LATEST)).only.error_code is ErrorCode.offset_not_available
    old = Listing(filled, (0, LATEST), version=4).only
    assert old.error_code is ErrorCode.leader_not_available
    assert Listing(filled, (0, EARLIEST)).only.offset == 2


def test_a_time_is_looked_up_by_the_replica_actor(filled: Broker) -> None:
    listing = Listing(filled, (0, 1234), (1, LATEST), isolation_level=1, epoch=EPOCH)
    call = filled.replica.last
    assert call.method is OFFSETS_FOR_TIMES
    assert call.message.parts == [PartitionTime(ORDERS, 0, EPOCH, 1234, 1, 11)]
    call.reply(OffsetsFound([PartitionOffset(0, 1300, 3, 2)]))
    found, latest = listing.partitions
    assert (found.timestamp, found.offset, found.leader_epoch) == (1300, 3, 2)
    assert latest.offset == 0


def test_the_largest_timestamp_is_looked_up_too(filled: Broker) -> None:
    listing = Listing(filled, (0, MAX_TIMESTAMP))
    filled.replica.last.reply(OffsetsFound([PartitionOffset(0)]))
    assert (listing.only.timestamp, listing.only.offset) == (-1, -1)


def test_with_tiering_off_nothing_is_tiered(filled: Broker) -> None:
    local, tiered, pending = (Listing(filled, (0, special)).only for special in (-4, -5, -6))
    assert local.offset == 2
    for part in (tiered, pending):
        assert part.error_code is ErrorCode.none
        assert (part.offset, part.timestamp, part.leader_epoch) == (-1, -1, -1)


@pytest.mark.parametrize(
    ("timestamp", "version"), [(-3, 6), (-4, 7), (-5, 8), (-6, 10), (-7, 11), (-100, 11)]
)
def test_special_times_are_unsupported_before_their_version(
    filled: Broker, timestamp: int, version: int
) -> None:
    part = Listing(filled, (0, timestamp), version=version).only
    assert part.error_code is ErrorCode.unsupported_version
    assert (part.offset, part.timestamp) == (-1, -1)


def test_a_partition_asked_for_twice_is_an_invalid_request(filled: Broker) -> None:
    duplicate, other = Listing(filled, (0, LATEST), (1, LATEST), (0, EARLIEST)).partitions
    assert duplicate.error_code is ErrorCode.invalid_request
    assert other.error_code is ErrorCode.none


def test_who_leads_is_checked_first(filled: Broker) -> None:
    unknown, elsewhere = Listing(filled, (9, LATEST), (2, LATEST)).partitions
    assert unknown.error_code is ErrorCode.unknown_topic_or_partition
    assert elsewhere.error_code is ErrorCode.not_leader_or_follower
    nothing = Listing(filled, (0, LATEST), topic="nothing").only
    assert nothing.error_code is ErrorCode.unknown_topic_or_partition
    fenced = Listing(filled, (0, LATEST), epoch=EPOCH - 1).only
    assert fenced.error_code is ErrorCode.fenced_leader_epoch
    newer = Listing(filled, (0, 55), epoch=EPOCH + 1).only
    assert newer.error_code is ErrorCode.unknown_leader_epoch
    filled.publish(0, role=Role.OFFLINE)
    assert Listing(filled, (0, LATEST)).only.error_code is ErrorCode.kafka_storage_error
    assert filled.replica.calls == []


def test_a_dead_replica_actor_is_not_leader(filled: Broker) -> None:
    listing = Listing(filled, (0, 1234), (1, LATEST))
    filled.replica.last.fail()
    failed, latest = listing.partitions
    assert failed.error_code is ErrorCode.not_leader_or_follower
    assert latest.error_code is ErrorCode.none


def test_a_connection_lost_meanwhile_takes_the_question_back(filled: Broker) -> None:
    listing = Listing(filled, (0, 1234))
    assert listing.request.on_abandoned is not None
    listing.request.on_abandoned()
    assert filled.replica.last.cancelled
