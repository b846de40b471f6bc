"""Fetch: what is read, what is refused, and what waits."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from mobula.actors.metadata.records import TopicRemoved
from mobula.actors.purgatory.messages import WATCH_FETCH, FetchDone, FetchPart, WatchFetch
from mobula.actors.replica.messages import (
    EPOCH_END_OFFSETS,
    EpochEndsFound,
    PartitionEpoch,
    PartitionEpochEnd,
)
from mobula.actors.rows import Role, Row, RowsReader
from mobula.actors.spec import replica_name
from mobula.protocol.errors import ErrorCode
from mobula.protocol.fetch import VERSIONS
from mobula.storage.config import LogConfig
from tests.unit.gateway.fakes import BROKER_ID, ORDERS, cluster_image, partition
from tests.unit.gateway_fetch.support import EPOCH, Broker, Part


def codes(response: Any) -> list[ErrorCode]:
    return [part.error_code for topic in response.responses for part in topic.partitions]


def only(response: Any) -> Any:
    ((part,),) = [topic.partitions for topic in response.responses]
    return part


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_returns_the_batches_as_they_stand_in_the_log(
    broker: Broker, version: int
) -> None:
    first, second = broker.append(0, records=3), broker.append(0, records=2)
    part = only(broker.answer(Part(0, 0), version=version))
    assert part.error_code is ErrorCode.none
    assert bytes(part.records) == first + second
    assert part.high_watermark == part.last_stable_offset == 5
    if version >= 5:
        assert part.log_start_offset == 0
    assert broker.purgatory.calls == []
    assert broker.replica.calls == [], "a fetch that can be satisfied asks nobody"


def test_an_offset_in_the_middle_of_a_batch_returns_the_whole_batch(broker: Broker) -> None:
    broker.append(0, records=3)
    second = broker.append(0, records=3)
    assert bytes(only(broker.answer(Part(0, 4))).records) == second


def test_records_above_the_high_watermark_are_not_returned(broker: Broker) -> None:
    first = broker.append(0, records=3)
    broker.append(0, records=3)
    broker.publish(0, high_watermark=3)
    assert bytes(only(broker.answer(Part(0, 0))).records) == first


def test_a_consumer_that_keeps_up_reads_on_where_its_last_read_ended(broker: Broker) -> None:
    for round_ in range(5):
        data = broker.append(0)
        assert bytes(only(broker.answer(Part(0, round_))).records) == data


def test_reading_goes_on_in_the_next_segment(tmp_path: Path) -> None:
    broker = Broker(tmp_path, log_config=LogConfig(segment_bytes=400))
    batches = [broker.append(0) for _ in range(9)]
    assert len(list((broker.data_dir / "orders-0").glob("*.log"))) > 2
    got, offset = b"", 0
    while offset < 9:
        records = bytes(only(broker.answer(Part(0, offset))).records)
        assert records, "there is always something below the high watermark"
        got += records
        offset += len(records) // len(batches[0])
    assert got == b"".join(batches)
    broker.close()


def test_the_first_batch_is_returned_even_when_larger_than_the_limits(broker: Broker) -> None:
    first = broker.append(0, size=5000)
    broker.append(0, size=5000)
    assert bytes(only(broker.answer(Part(0, 0, max_bytes=100))).records) == first
    assert bytes(only(broker.answer(Part(0, 0), max_bytes=100)).records) == first
    assert bytes(only(broker.answer(Part(0, 0, max_bytes=0))).records) == first


def test_only_the_first_partition_may_exceed_the_limits(broker: Broker) -> None:
    first = broker.append(0, size=5000)
    broker.append(1, size=5000)
    fetch = broker.fetch(Part(0, 0, max_bytes=100), Part(1, 0, max_bytes=100))
    assert bytes(fetch.partitions[0].records) == first
    assert bytes(fetch.partitions[1].records) == b"", "half a batch helps nobody"
    assert fetch.partitions[1].error_code is ErrorCode.none


def test_max_bytes_counts_over_all_partitions(broker: Broker) -> None:
    size = len(broker.append(0, size=1000))
    broker.append(1, size=1000)
    fetch = broker.fetch(Part(0, 0), Part(1, 0), max_bytes=size)
    assert len(fetch.partitions[0].records) == size
    assert len(fetch.partitions[1].records) == 0


def test_fetch_max_bytes_of_the_broker_caps_what_a_client_asks_for(tmp_path: Path) -> None:
    broker = Broker(tmp_path, fetch_max_bytes="1024")
    for _ in range(5):
        broker.append(0, size=600)
    part = only(broker.answer(Part(0, 0), max_bytes=1 << 30))
    assert 0 < len(part.records) <= 1024
    broker.close()


def test_an_offset_outside_of_the_log_is_out_of_range(broker: Broker) -> None:
    for _ in range(4):
        broker.append(0)
    broker.logs[0].advance_log_start(2)
    broker.publish(0)
    for offset in (-1, 0, 1, 5):
        part = only(broker.answer(Part(0, offset)))
        assert part.error_code is ErrorCode.offset_out_of_range
        assert part.high_watermark == -1
        assert bytes(part.records) == b""
    assert only(broker.answer(Part(0, 2))).error_code is ErrorCode.none


def test_an_offset_equal_to_the_log_end_is_no_error_and_waits(broker: Broker) -> None:
    broker.append(0)
    fetch = broker.fetch(Part(0, 1))
    assert not fetch.answered


def test_a_fetch_that_does_not_want_to_wait_is_answered_at_once(broker: Broker) -> None:
    part = only(broker.answer(Part(0, 0), max_wait=0))
    assert part.error_code is ErrorCode.none
    assert bytes(part.records) == b""
    assert only(broker.answer(Part(0, 0), min_bytes=0)).error_code is ErrorCode.none


def test_a_fetch_without_partitions_is_answered_at_once(broker: Broker) -> None:
    assert broker.answer().responses == ()


def test_a_waiting_fetch_tells_the_purgatory_where_each_of_its_partitions_stands(
    broker: Broker,
) -> None:
    broker.append(0, records=2)
    broker.append(1, size=100)
    size = len(broker.append(1, size=100))
    fetch = broker.fetch(
        Part(0, 2, max_bytes=999), Part(1, 1), min_bytes=5000, max_wait=300, isolation_level=1
    )
    assert not fetch.answered
    call = broker.purgatory.last
    assert call.method is WATCH_FETCH
    end = broker.position(0, 2)
    generation = broker.logs[0].generation
    assert call.message == WatchFetch(
        300,
        5000,
        True,
        [
            FetchPart(ORDERS, 0, EPOCH, 2, end.segment, end.position, generation, 999),
            FetchPart(ORDERS, 1, EPOCH, 1, 0, size, generation, 1 << 20),
        ],
    )
    assert fetch.sink.released == 1, "a parked fetch holds no memory of the pool"


def test_min_bytes_is_capped_by_max_bytes(broker: Broker) -> None:
    broker.fetch(Part(0, 0), min_bytes=1 << 20, max_bytes=4096)
    assert broker.purgatory.last.message.min_bytes == 4096


def test_a_woken_fetch_reads_again_and_answers(broker: Broker) -> None:
    fetch = broker.fetch(Part(0, 0))
    data = broker.append(0)
    broker.purgatory.last.reply(FetchDone(False))
    assert bytes(only(fetch.response).records) == data


def test_a_fetch_whose_wait_is_over_answers_with_what_is_there(broker: Broker) -> None:
    fetch = broker.fetch(Part(0, 0))
    broker.purgatory.last.reply(FetchDone(True))
    part = only(fetch.response)
    assert part.error_code is ErrorCode.none
    assert bytes(part.records) == b""


def test_a_dead_purgatory_does_not_hold_a_fetch(broker: Broker) -> None:
    fetch = broker.fetch(Part(0, 0))
    broker.purgatory.last.fail()
    assert only(fetch.response).error_code is ErrorCode.none


def test_a_connection_lost_while_its_fetch_waits_cancels_it(broker: Broker) -> None:
    fetch = broker.fetch(Part(0, 0))
    fetch.request.ended = True
    assert fetch.request.on_abandoned is not None
    fetch.request.on_abandoned()
    assert broker.purgatory.last.cancelled


def test_an_offset_above_the_high_watermark_waits_without_a_position(broker: Broker) -> None:
    for _ in range(3):
        broker.append(0)
    broker.publish(0, high_watermark=1)
    fetch = broker.fetch(Part(0, 2))
    assert not fetch.answered
    (part,) = broker.purgatory.last.message.parts
    assert (part.segment, part.position) == (-1, -1)


def test_read_committed_ends_at_the_last_stable_offset(broker: Broker) -> None:
    first = broker.append(0)
    broker.append(0)
    stable = broker.position(0, 1)
    broker.publish(
        0,
        last_stable_offset=1,
        last_stable_segment=stable.segment,
        last_stable_position=stable.position,
    )
    part = only(broker.answer(Part(0, 0), isolation_level=1))
    assert bytes(part.records) == first
    assert part.aborted_transactions == ()
    assert part.last_stable_offset == 1
    uncommitted = only(broker.answer(Part(0, 0)))
    assert len(uncommitted.records) == 2 * len(first)
    assert uncommitted.aborted_transactions is None


def test_a_socket_with_a_replica_id_reads_as_a_consumer_and_moves_nothing(
    broker: Broker,
) -> None:
    first = broker.append(0)
    broker.append(0)
    broker.publish(0, high_watermark=1)
    for version in (14, 18):
        part = only(broker.answer(Part(0, 0), version=version, replica_id=1))
        assert bytes(part.records) == first
    fetch = broker.fetch(Part(0, 1), replica_id=1)
    assert not fetch.answered
    assert broker.replica.calls == []
    assert broker.replica.notices == []


def test_the_debugging_consumer_reads_nothing_that_is_not_committed(broker: Broker) -> None:
    first = broker.append(0)
    broker.append(0)
    broker.publish(0, high_watermark=1)
    part = only(broker.answer(Part(0, 0), replica_id=-2))
    assert bytes(part.records) == first


class TestWhoLeads:
    def test_an_unknown_topic_or_partition(self, broker: Broker) -> None:
        assert codes(broker.answer(Part(7, 0))) == [ErrorCode.unknown_topic_or_partition]
        nothing = Part(0, 0, topic="nothing", topic_id=b"x" * 16)
        assert codes(broker.answer(nothing, version=12)) == [ErrorCode.unknown_topic_or_partition]
        assert codes(broker.answer(nothing)) == [ErrorCode.unknown_topic_id]

    def test_one_bad_partition_never_fails_the_others(self, broker: Broker) -> None:
        data = broker.append(0)
        fetch = broker.fetch(Part(7, 0), Part(0, 0))
        assert bytes(fetch.partitions[0].records) == data
        assert fetch.partitions[7].error_code is ErrorCode.unknown_topic_or_partition

    def test_a_partition_that_another_broker_leads(self, broker: Broker) -> None:
        assert codes(broker.answer(Part(2, 0))) == [ErrorCode.not_leader_or_follower]

    def test_a_follower_is_not_read(self, broker: Broker) -> None:
        broker.publish(0, role=Role.FOLLOWER)
        assert codes(broker.answer(Part(0, 0))) == [ErrorCode.not_leader_or_follower]

    def test_the_row_of_a_dead_replica_actor_does_not_lead_when_metadata_moved_on(
        self, broker: Broker
    ) -> None:
        image = broker.services.image
        image.replay(partition(ORDERS, 0, leader=1, epoch=EPOCH + 1))
        assert codes(broker.answer(Part(0, 0))) == [ErrorCode.not_leader_or_follower]

    def test_a_leader_that_metadata_does_not_know_yet_is_read(self, broker: Broker) -> None:
        data = broker.append(0)
        broker.publish(0, leader_epoch=EPOCH + 1)
        assert bytes(only(broker.answer(Part(0, 0))).records) == data

    def test_an_offline_log_is_a_storage_error_that_old_clients_do_not_know(
        self, broker: Broker
    ) -> None:
        broker.publish(0, role=Role.OFFLINE)
        assert codes(broker.answer(Part(0, 0), version=6)) == [ErrorCode.kafka_storage_error]
        assert codes(broker.answer(Part(0, 0), version=5)) == [ErrorCode.not_leader_or_follower]

    def test_epochs_are_fenced_and_unknown_ones_wait(self, broker: Broker) -> None:
        broker.append(0)
        answer = broker.answer
        assert codes(answer(Part(0, 0, epoch=EPOCH - 1))) == [ErrorCode.fenced_leader_epoch]
        assert codes(answer(Part(0, 0, epoch=EPOCH + 1))) == [ErrorCode.unknown_leader_epoch]
        assert codes(answer(Part(0, 0, epoch=EPOCH))) == [ErrorCode.none]
        for none in (-1, -2):
            assert codes(answer(Part(0, 0, epoch=none))) == [ErrorCode.none]

    def test_leadership_errors_carry_the_current_leader_from_v16_on(self, broker: Broker) -> None:
        response = broker.answer(Part(2, 0), version=16)
        leader = only(response).current_leader
        assert (leader.leader_id, leader.leader_epoch) == (1, 5)
        (node,) = response.node_endpoints
        assert (node.node_id, node.host, node.port, node.rack) == (1, "host-1", 9093, "b")
        older = broker.answer(Part(2, 0), version=15)
        assert only(older).current_leader.leader_id == -1

    def test_a_fenced_epoch_carries_the_current_leader_too(self, broker: Broker) -> None:
        broker.append(0)
        response = broker.answer(Part(0, 0, epoch=EPOCH - 1), version=18)
        assert only(response).current_leader.leader_id == 0
        assert [node.node_id for node in response.node_endpoints] == [0]

    def test_two_partitions_of_one_leader_name_its_endpoint_once(self, tmp_path: Path) -> None:
        broker = Broker(tmp_path, cluster_image(partition(ORDERS, 3, leader=1)))
        response = broker.answer(Part(2, 0), Part(3, 0))
        assert len(response.node_endpoints) == 1
        broker.close()

    def test_no_leader_is_named_when_the_row_knows_of_a_newer_one(self, broker: Broker) -> None:
        broker.publish(0, role=Role.FOLLOWER, leader_epoch=EPOCH + 1)
        response = broker.answer(Part(0, 0))
        assert codes(response) == [ErrorCode.not_leader_or_follower]
        assert only(response).current_leader.leader_id == -1
        assert response.node_endpoints == ()

    def test_an_unknown_topic_does_not_wake_the_others(self, broker: Broker) -> None:
        nothing = Part(0, 0, topic="nothing", topic_id=b"x" * 16)
        fetch = broker.fetch(nothing, Part(0, 0))
        assert not fetch.answered
        assert len(broker.purgatory.last.message.parts) == 1
        broker.purgatory.last.reply(FetchDone(True))
        assert codes(fetch.response) == [ErrorCode.unknown_topic_id, ErrorCode.none]


class TestDivergingEpochs:
    def ask(self, broker: Broker, end: PartitionEpochEnd, offset: int = 2) -> Any:
        for _ in range(3):
            broker.append(0)
        fetch = broker.fetch(Part(0, offset, epoch=EPOCH, last_fetched_epoch=2))
        call = broker.replica.last
        assert call.method is EPOCH_END_OFFSETS
        assert call.message.parts == [PartitionEpoch(ORDERS, 0, EPOCH, 2)]
        call.reply(EpochEndsFound([end]))
        return only(fetch.response)

    def test_a_log_that_is_a_prefix_is_read_on(self, broker: Broker) -> None:
        part = self.ask(broker, PartitionEpochEnd(0, 2, 2))
        assert len(part.records) > 0
        assert part.diverging_epoch.epoch == -1

    def test_an_epoch_that_ends_earlier_diverges(self, broker: Broker) -> None:
        part = self.ask(broker, PartitionEpochEnd(0, 2, 1))
        assert (part.diverging_epoch.epoch, part.diverging_epoch.end_offset) == (2, 1)
        assert bytes(part.records) == b""
        assert part.high_watermark == 3

    def test_an_epoch_that_never_was_diverges_even_past_the_log_end(self, broker: Broker) -> None:
        part = self.ask(broker, PartitionEpochEnd(0, 1, 3), offset=9)
        assert part.error_code is ErrorCode.none
        assert (part.diverging_epoch.epoch, part.diverging_epoch.end_offset) == (1, 3)

    def test_an_end_that_nobody_knows_is_out_of_range(self, broker: Broker) -> None:
        part = self.ask(broker, PartitionEpochEnd(0, -1, -1))
        assert part.error_code is ErrorCode.offset_out_of_range

    def test_the_replica_actors_error_is_the_partitions(self, broker: Broker) -> None:
        part = self.ask(broker, PartitionEpochEnd(int(ErrorCode.fenced_leader_epoch)))
        assert part.error_code is ErrorCode.fenced_leader_epoch

    def test_a_dead_replica_actor_is_not_leader(self, broker: Broker) -> None:
        fetch = broker.fetch(Part(0, 0, last_fetched_epoch=2))
        broker.replica.last.fail()
        assert codes(fetch.response) == [ErrorCode.not_leader_or_follower]

    def test_epochs_are_compared_again_after_waiting(self, broker: Broker) -> None:
        fetch = broker.fetch(Part(0, 0, last_fetched_epoch=2))
        broker.replica.last.reply(EpochEndsFound([PartitionEpochEnd(0, 2, 0)]))
        broker.purgatory.last.reply(FetchDone(False))
        assert len(broker.replica.calls) == 2
        broker.replica.last.reply(EpochEndsFound([PartitionEpochEnd(0, 1, 0)]))
        assert only(fetch.response).diverging_epoch.epoch == 1


class TestFiles:
    def test_a_truncated_log_is_read_anew(self, broker: Broker) -> None:
        broker.append(0, size=300)
        broker.append(0, size=700)
        assert only(broker.answer(Part(0, 1))).error_code is ErrorCode.none
        broker.logs[0].truncate_to(1)
        broker.publish(0)
        data = broker.append(0, size=200)
        assert bytes(only(broker.answer(Part(0, 1))).records) == data

    def test_a_deleted_segment_is_out_of_range_not_an_error_of_the_disk(
        self, tmp_path: Path
    ) -> None:
        broker = Broker(tmp_path, log_config=LogConfig(segment_bytes=200))
        for _ in range(4):
            broker.append(0)
        stale = broker.row(0)
        (broker.data_dir / "orders-0" / f"{0:020d}.log").unlink()
        # The row that is read first does not know it yet; the one that is read again does.
        rows = Rows(stale, stale._replace(log_start_offset=1))
        broker.services.rows[replica_name(BROKER_ID, 0)] = cast(RowsReader, rows)
        assert codes(broker.answer(Part(0, 0))) == [ErrorCode.offset_out_of_range]
        broker.close()

    def test_a_folder_that_cannot_be_read_is_a_storage_error(self, broker: Broker) -> None:
        broker.append(0)
        for file in (broker.data_dir / "orders-0").iterdir():
            file.unlink()
        assert codes(broker.answer(Part(0, 0))) == [ErrorCode.kafka_storage_error]

    def test_a_deleted_topic_closes_its_files(self, broker: Broker) -> None:
        broker.append(0)
        broker.answer(Part(0, 0))
        logs = broker.services.logs
        reader = logs._topics[ORDERS][0].reader
        assert reader._open
        broker.services.image.replay(TopicRemoved(ORDERS))
        assert codes(broker.answer(Part(0, 0))) == [ErrorCode.unknown_topic_id]
        assert not reader._open
        assert logs._topics == {}


class Rows:
    """These rows, one after the other."""

    def __init__(self, *rows: Row) -> None:
        self._rows = iter(rows)

    def find(self, topic_id: bytes, partition: int) -> Row:
        return next(self._rows)
