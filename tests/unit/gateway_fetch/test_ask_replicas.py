"""One question that concerns several replica actors."""

from __future__ import annotations

import msgspec

from mobula.actors.gateway.ask_replicas import ask_replicas
from mobula.actors.replica.messages import (
    EPOCH_END_OFFSETS,
    EpochEndOffsets,
    EpochEndsFound,
    PartitionEpoch,
    PartitionEpochEnd,
)
from mobula.actors.spec import replica_name
from mobula.protocol.errors import ErrorCode
from tests.unit.gateway.fakes import (
    ORDERS,
    FakeLink,
    FakeRuntime,
    FakeSink,
    broker,
    cluster_image,
    request_of,
    services_of,
)


class Asked:
    def __init__(self, partitions: int) -> None:
        self.runtime = FakeRuntime()
        two_actors = msgspec.structs.replace(broker(0), num_replica_actors=2)
        services = services_of(self.runtime, cluster_image(two_actors))
        self.request = request_of(23, 4, b"", FakeSink())
        self.answers: list[list[PartitionEpochEnd]] = []
        ask_replicas(
            self.request,
            services,
            EPOCH_END_OFFSETS,
            [PartitionEpoch(ORDERS, index, -1, 0) for index in range(partitions)],
            message=EpochEndOffsets,
            failed=PartitionEpochEnd,
            on_done=self.answers.append,
        )

    def link(self, index: int) -> FakeLink:
        return self.runtime.links[replica_name(0, index)]


def reply(link: FakeLink) -> None:
    parts = link.last.message.parts
    link.last.reply(EpochEndsFound([PartitionEpochEnd(0, 1, part.partition) for part in parts]))


def test_each_actor_is_asked_once_and_answers_come_in_the_order_of_the_question() -> None:
    asked = Asked(5)
    first, second = asked.link(0), asked.link(1)
    assert len(first.calls) == len(second.calls) == 1
    assert len(first.last.message.parts) + len(second.last.message.parts) == 5
    reply(second)
    assert asked.answers == []
    reply(first)
    (answers,) = asked.answers
    assert [answer.end_offset for answer in answers] == [0, 1, 2, 3, 4]
    assert asked.request.on_abandoned is None


def test_an_actor_that_does_not_answer_fails_its_own_partitions_alone() -> None:
    asked = Asked(4)
    asked.link(0).last.fail()
    reply(asked.link(1))
    (answers,) = asked.answers
    assert sorted({answer.error_code for answer in answers}) == [
        0,
        ErrorCode.not_leader_or_follower,
    ]


def test_a_client_that_is_gone_takes_every_question_back() -> None:
    asked = Asked(4)
    assert asked.request.on_abandoned is not None
    asked.request.on_abandoned()
    assert asked.link(0).last.cancelled
    assert asked.link(1).last.cancelled


def test_nothing_to_ask_is_answered_at_once() -> None:
    assert Asked(0).answers == [[]]
