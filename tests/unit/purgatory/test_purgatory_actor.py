"""The purgatory actor on real rows, with fake links and a fake loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from mobula.actors.broker.messages import DRAIN, METADATA_UPDATE, Drain, MetadataUpdate
from mobula.actors.metadata.records import (
    BrokerRegistered,
    PartitionChanged,
    Record,
    TopicCreated,
    TopicRemoved,
    encode_record,
)
from mobula.actors.purgatory.actor import PurgatoryActor
from mobula.actors.purgatory.messages import (
    PARTITIONS_CHANGED,
    WATCH_DELETE_RECORDS,
    WATCH_FETCH,
    WATCH_PRODUCE,
    Cause,
    Change,
    DeleteDone,
    DeletePart,
    FetchDone,
    FetchPart,
    PartitionsChanged,
    ProduceDone,
    ProducePart,
    WatchDeleteRecords,
    WatchFetch,
    WatchProduce,
)
from mobula.actors.rows import Row, RowsWriter
from mobula.actors.runtime import Runtime
from mobula.actors.spec import replica_name, rows_path
from mobula.protocol.errors import ErrorCode
from tests.unit.purgatory.fakes import TOPIC, FakeReply, FakeRuntime, leader

REPLICA = replica_name(0, 0)
NOT_LEADER = int(ErrorCode.not_leader_or_follower)


def cluster_records() -> list[Record]:
    return [
        BrokerRegistered(0, 1, "i", [], None, "node", "/data", b"d" * 16, 1, False, False),
        TopicCreated(TOPIC, "orders"),
        PartitionChanged(TOPIC, 0, [0, 1], [0, 1], 0, 3, 0),
        PartitionChanged(TOPIC, 1, [0, 1], [0, 1], 0, 3, 0),
    ]


class Purgatory:
    def __init__(self, run_dir: Path) -> None:
        self.runtime = FakeRuntime(run_dir)
        self.rows = RowsWriter(rows_path(str(run_dir), REPLICA), 1)
        self.slots = [
            self.rows.allocate(leader()),
            self.rows.allocate(leader(partition=1)),
        ]
        self.actor = PurgatoryActor(cast(Runtime, self.runtime))
        asyncio.run(self.actor.start())

    def update(self, records: list[Record], *, snapshot: bool = False) -> FakeReply:
        encoded = [encode_record(record) for record in records]
        return self.runtime.call(METADATA_UPDATE, MetadataUpdate(1, snapshot, 10, encoded))

    def publish(self, row: Row, cause: Cause = Cause.HIGH_WATERMARK) -> None:
        self.rows.publish(self.slots[row.partition], row)
        self.notice(row.partition, cause)

    def notice(self, partition: int, cause: Cause) -> None:
        change = Change(TOPIC, partition, cause)
        self.runtime.call(PARTITIONS_CHANGED, PartitionsChanged(REPLICA, [change]))

    def produce(self, *required: int, timeout_ms: int = 1000) -> FakeReply:
        parts = [ProducePart(TOPIC, partition, 3, at) for partition, at in enumerate(required)]
        return self.runtime.call(WATCH_PRODUCE, WatchProduce(timeout_ms, parts))

    def fetch(self, *, min_bytes: int = 1, max_wait_ms: int = 500) -> FakeReply:
        part = FetchPart(TOPIC, 0, 3, 10, 0, 1000, 1, 1 << 20)
        return self.runtime.call(WATCH_FETCH, WatchFetch(max_wait_ms, min_bytes, False, [part]))

    def counters(self) -> Any:
        return self.actor.state()[1]


@pytest.fixture
def purgatory(tmp_path: Path) -> Iterator[Purgatory]:
    purgatory = Purgatory(tmp_path)
    purgatory.update(cluster_records(), snapshot=True)
    yield purgatory
    asyncio.run(purgatory.actor.stop())
    purgatory.rows.close()


def test_a_produce_is_answered_when_the_notice_of_the_high_watermark_comes(
    purgatory: Purgatory,
) -> None:
    reply = purgatory.produce(11)
    assert reply.messages == []
    purgatory.publish(leader(high_watermark=11))
    assert reply.messages == [ProduceDone([0])]
    assert purgatory.counters()["produce_waiting"] == 0


def test_a_produce_already_replicated_is_answered_at_once(purgatory: Purgatory) -> None:
    assert purgatory.produce(10, 10).messages == [ProduceDone([0, 0])]


def test_a_produce_times_out_once_at_its_deadline(purgatory: Purgatory) -> None:
    reply = purgatory.produce(11, 10, timeout_ms=700)
    purgatory.runtime.loop.pass_ms(699)
    assert reply.messages == []
    purgatory.runtime.loop.pass_ms(1)
    assert reply.messages == [ProduceDone([int(ErrorCode.request_timed_out), 0])]
    purgatory.publish(leader(high_watermark=11))
    purgatory.runtime.loop.pass_ms(10_000)
    assert len(reply.messages) == 1


def test_an_earlier_deadline_moves_the_timer_forward(purgatory: Purgatory) -> None:
    late = purgatory.produce(11, timeout_ms=30_000)
    early = purgatory.produce(11, timeout_ms=5)
    purgatory.runtime.loop.pass_ms(5)
    assert early.messages == [ProduceDone([int(ErrorCode.request_timed_out)])]
    assert late.messages == []
    purgatory.runtime.loop.pass_ms(29_995)
    assert len(late.messages) == 1


def test_an_idle_purgatory_runs_no_timer(purgatory: Purgatory) -> None:
    loop = purgatory.runtime.loop
    loop.pass_ms(60_000)
    fired = loop.fired
    loop.pass_ms(3_600_000)
    assert loop.fired == fired


def test_a_waiting_operation_costs_a_few_timers_not_one_a_tick(purgatory: Purgatory) -> None:
    loop = purgatory.runtime.loop
    purgatory.produce(10)
    loop.pass_ms(60_000)
    fired = loop.fired
    purgatory.produce(11, timeout_ms=30_000)
    loop.pass_ms(30_000)
    assert loop.fired - fired <= 6


def test_lost_leadership_answers_parked_produces_at_once(purgatory: Purgatory) -> None:
    reply = purgatory.produce(11)
    purgatory.publish(leader(role=1), Cause.LEADERSHIP)
    assert reply.messages == [ProduceDone([NOT_LEADER])]


def test_a_released_row_of_a_living_topic_says_not_leader(purgatory: Purgatory) -> None:
    reply = purgatory.produce(11)
    purgatory.rows.release(purgatory.slots[0])
    purgatory.notice(0, Cause.DELETED)
    assert reply.messages == [ProduceDone([NOT_LEADER])]


def test_a_deleted_topic_is_unknown_as_soon_as_metadata_says_so(purgatory: Purgatory) -> None:
    reply = purgatory.produce(11, 10)
    for slot in purgatory.slots:
        purgatory.rows.release(slot)
    purgatory.update([TopicRemoved(TOPIC)])
    assert reply.messages == [ProduceDone([int(ErrorCode.unknown_topic_or_partition), 0])]


def test_a_fetch_is_told_to_read_again_when_bytes_arrive(purgatory: Purgatory) -> None:
    reply = purgatory.fetch(min_bytes=100)
    purgatory.publish(leader(high_watermark=11, high_watermark_position=1050))
    assert reply.messages == []
    purgatory.publish(leader(high_watermark=12, high_watermark_position=1100))
    assert reply.messages == [FetchDone(False)]


def test_a_fetch_is_told_that_its_wait_is_over(purgatory: Purgatory) -> None:
    reply = purgatory.fetch(max_wait_ms=500)
    purgatory.runtime.loop.pass_ms(500)
    assert reply.messages == [FetchDone(True)]
    assert purgatory.counters()["fetch_expired"] == 1


def test_a_caller_that_is_gone_leaves_nothing_behind(purgatory: Purgatory) -> None:
    produce, fetch = purgatory.produce(11), purgatory.fetch()
    produce.cancel()
    fetch.cancel()
    assert purgatory.counters()["produce_waiting"] == 0
    assert purgatory.counters()["fetch_waiting"] == 0
    purgatory.publish(leader(high_watermark=11, high_watermark_position=1100))
    purgatory.runtime.loop.pass_ms(60_000)
    assert produce.messages == fetch.messages == []


def test_delete_records_is_answered_when_the_low_watermark_moved(purgatory: Purgatory) -> None:
    reply = purgatory.runtime.call(
        WATCH_DELETE_RECORDS, WatchDeleteRecords(1000, [DeletePart(TOPIC, 0, 5)])
    )
    purgatory.publish(leader(low_watermark=6), Cause.FOLLOWER)
    assert reply.messages == [DeleteDone([0], [6])]


def test_a_dead_replica_actor_completes_all_that_waits_for_it(purgatory: Purgatory) -> None:
    produce, fetch = purgatory.produce(11), purgatory.fetch()
    purgatory.runtime.links[REPLICA].set_up(False)
    purgatory.runtime.loop.pass_ms(1)
    assert produce.messages == [ProduceDone([NOT_LEADER])]
    assert fetch.messages == [FetchDone(False)]
    assert purgatory.produce(10).messages == [ProduceDone([NOT_LEADER])], "its rows are void"


def test_a_replica_actor_that_came_back_is_read_anew(purgatory: Purgatory) -> None:
    purgatory.produce(10)
    purgatory.runtime.links[REPLICA].set_up(False)
    purgatory.rows.close()
    run_dir = purgatory.runtime.spec.run_dir
    purgatory.rows = RowsWriter(rows_path(run_dir, REPLICA), 2)
    purgatory.slots = [purgatory.rows.allocate(leader(leader_epoch=3, high_watermark=20))]
    purgatory.runtime.links[REPLICA].set_up(True)
    assert purgatory.produce(20).messages == [ProduceDone([0])]


def test_a_notice_lost_while_links_came_up_does_not_hold_a_produce(purgatory: Purgatory) -> None:
    reply = purgatory.produce(11, timeout_ms=30_000)
    purgatory.rows.publish(purgatory.slots[0], leader(high_watermark=11))
    purgatory.runtime.loop.pass_ms(7_000)
    assert reply.messages == [ProduceDone([0])]


def test_before_metadata_came_operations_wait_and_are_judged_when_it_is_there(
    tmp_path: Path,
) -> None:
    purgatory = Purgatory(tmp_path)
    reply = purgatory.produce(10)
    purgatory.publish(leader())
    assert reply.messages == []
    assert purgatory.actor.state()[0] == "waiting for metadata"
    purgatory.update(cluster_records(), snapshot=True)
    assert reply.messages == [ProduceDone([0])]
    assert purgatory.actor.state()[0] == "running"
    purgatory.rows.close()


def test_a_drain_completes_everything_and_nothing_waits_after_it(purgatory: Purgatory) -> None:
    produce, fetch = purgatory.produce(11), purgatory.fetch()
    assert len(purgatory.runtime.call(DRAIN, Drain(1000)).messages) == 1
    assert produce.messages == [ProduceDone([NOT_LEADER])]
    assert fetch.messages == [FetchDone(False)]
    assert purgatory.produce(11).messages == [ProduceDone([NOT_LEADER])]
    assert purgatory.actor.state()[0] == "draining"


def test_start_is_idempotent(purgatory: Purgatory) -> None:
    handlers = dict(purgatory.runtime.handlers)
    asyncio.run(purgatory.actor.start())
    assert purgatory.runtime.handlers == handlers
