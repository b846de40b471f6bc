from __future__ import annotations

from typing import Any

import pytest

from mobula.actors.gateway.handlers import offset_for_leader_epoch
from mobula.actors.replica.messages import (
    EPOCH_END_OFFSETS,
    EpochEndsFound,
    PartitionEpoch,
    PartitionEpochEnd,
)
from mobula.protocol.api import ApiKey
from mobula.protocol.errors import ErrorCode
from mobula.protocol.messages import build_request, decode_response, encode
from tests.unit.gateway.fakes import ORDERS, FakeSink, request_of
from tests.unit.gateway_fetch.support import EPOCH, Broker


class Asking:
    def __init__(
        self, broker: Broker, *epochs: tuple[int, int], version: int = 4, current: int = -1
    ) -> None:
        """`epochs`: (partition, epoch) of `orders`."""
        parts = [
            {"partition": index, "current_leader_epoch": current, "leader_epoch": epoch}
            for index, epoch in epochs
        ]
        tree = {"replica_id": -1, "topics": [{"topic": "orders", "partitions": parts}]}
        self.version = version
        self.sink = FakeSink()
        body = encode(build_request(ApiKey.OFFSET_FOR_LEADER_EPOCH, version, tree))
        request = request_of(ApiKey.OFFSET_FOR_LEADER_EPOCH, version, body, self.sink)
        offset_for_leader_epoch.handle(request, broker.services)

    @property
    def partitions(self) -> tuple[Any, ...]:
        (body,) = self.sink.sent
        response = decode_response(ApiKey.OFFSET_FOR_LEADER_EPOCH, self.version, body)
        (topic,) = response.topics
        found: tuple[Any, ...] = topic.partitions
        return found


@pytest.mark.parametrize("version", offset_for_leader_epoch.API.versions)
def test_the_replica_actor_knows_where_an_epoch_ends(broker: Broker, version: int) -> None:
    asking = Asking(broker, (0, 2), (1, 7), version=version, current=EPOCH)
    call = broker.replica.last
    assert call.method is EPOCH_END_OFFSETS
    assert call.message.parts == [
        PartitionEpoch(ORDERS, 0, EPOCH, 2),
        PartitionEpoch(ORDERS, 1, EPOCH, 7),
    ]
    call.reply(EpochEndsFound([PartitionEpochEnd(0, 2, 40), PartitionEpochEnd(0, -1, -1)]))
    first, second = asking.partitions
    assert (first.partition, first.leader_epoch, first.end_offset) == (0, 2, 40)
    assert (second.partition, second.leader_epoch, second.end_offset) == (1, -1, -1)


def test_one_bad_partition_never_fails_the_others(broker: Broker) -> None:
    asking = Asking(broker, (9, 2), (0, 2), (2, 2))
    broker.replica.last.reply(EpochEndsFound([PartitionEpochEnd(0, 2, 40)]))
    assert [part.error_code for part in asking.partitions] == [
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.none,
        ErrorCode.not_leader_or_follower,
    ]
    assert [part.partition for part in asking.partitions] == [9, 0, 2]


@pytest.mark.parametrize(
    ("current", "code"),
    [
        (EPOCH - 1, ErrorCode.fenced_leader_epoch),
        (-2, ErrorCode.fenced_leader_epoch),
        (EPOCH + 1, ErrorCode.unknown_leader_epoch),
    ],
)
def test_a_client_in_another_epoch_is_told_so(
    broker: Broker, current: int, code: ErrorCode
) -> None:
    (part,) = Asking(broker, (0, 2), current=current).partitions
    assert part.error_code is code
    assert broker.replica.calls == []


def test_a_dead_replica_actor_is_not_leader(broker: Broker) -> None:
    asking = Asking(broker, (0, 2))
    broker.replica.last.fail()
    (part,) = asking.partitions
    assert part.error_code is ErrorCode.not_leader_or_follower
    assert part.end_offset == -1
