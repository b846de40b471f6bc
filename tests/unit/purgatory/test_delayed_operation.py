from __future__ import annotations

from mobula.actors.purgatory import delayed_operation
from mobula.actors.purgatory.core import PurgatoryCore
from mobula.actors.purgatory.delayed_fetch import DelayedFetch
from mobula.actors.purgatory.delayed_produce import DelayedProduce
from mobula.actors.purgatory.messages import FetchPart, ProducePart, WatchFetch
from mobula.protocol.errors import ErrorCode
from tests.unit.purgatory.fakes import KEY, TOPIC, FakePartitions, FakeReply, leader

OTHER = (TOPIC, 1)


def make_core(*keys: tuple[bytes, int]) -> tuple[PurgatoryCore, FakePartitions]:
    partitions = FakePartitions()
    for key in keys or (KEY, OTHER):
        partitions.rows[key] = leader(partition=key[1])
        partitions.known.add(key)
    core = PurgatoryCore(partitions, 0)
    core.judging = True
    return core, partitions


def produce(*keys: tuple[bytes, int], required: int = 11, deadline_ms: int = 100) -> DelayedProduce:
    parts = [ProducePart(key[0], key[1], 3, required) for key in keys]
    return DelayedProduce(parts, deadline_ms, FakeReply())


def test_an_operation_that_can_complete_is_not_watched() -> None:
    core, _ = make_core()
    operation = produce(KEY, required=10)
    assert core.try_complete_else_watch(core.produce, operation)
    assert operation.outcome().error_codes == [0]
    assert core.produce.watched() == 0
    assert core.next_deadline_ms() is None


def test_an_operation_completes_when_its_last_partition_is_settled() -> None:
    core, partitions = make_core()
    operation = produce(KEY, OTHER)
    assert not core.try_complete_else_watch(core.produce, operation)
    partitions.rows[KEY] = leader(high_watermark=11)
    assert core.check_and_complete(KEY) == []
    partitions.rows[OTHER] = leader(partition=1, high_watermark=12)
    assert core.check_and_complete(OTHER) == [operation]
    assert core.produce.waiting == 0
    assert core.next_deadline_ms() is None


def test_an_operation_completes_exactly_once() -> None:
    core, partitions = make_core()
    operation = produce(KEY)
    core.try_complete_else_watch(core.produce, operation)
    partitions.rows[KEY] = leader(high_watermark=11)
    assert core.check_and_complete(KEY) == [operation]
    assert core.check_and_complete(KEY) == []
    assert core.advance(10_000) == []
    assert core.drain() == []


def test_a_produce_past_its_deadline_completes_once_as_expired() -> None:
    core, partitions = make_core()
    operation = produce(KEY, deadline_ms=100)
    core.try_complete_else_watch(core.produce, operation)
    assert core.advance(99) == []
    assert core.advance(100) == [operation]
    assert operation.outcome().error_codes == [ErrorCode.request_timed_out]
    partitions.rows[KEY] = leader(high_watermark=11)
    assert core.check_and_complete(KEY) == []
    assert core.counters()["produce_expired"] == 1


def test_on_expiry_only_the_partitions_still_pending_say_that_they_timed_out() -> None:
    core, partitions = make_core()
    operation = produce(KEY, OTHER, deadline_ms=100)
    core.try_complete_else_watch(core.produce, operation)
    partitions.rows[KEY] = leader(high_watermark=11)
    core.check_and_complete(KEY)
    core.advance(100)
    assert operation.outcome().error_codes == [0, ErrorCode.request_timed_out]


def test_a_deadline_already_passed_completes_at_once_as_expired() -> None:
    core, _ = make_core()
    operation = produce(KEY, deadline_ms=0)
    assert core.try_complete_else_watch(core.produce, operation)
    assert operation.outcome().error_codes == [ErrorCode.request_timed_out]
    assert core.produce.watched() == 0


def test_a_forgotten_operation_leaves_no_timer_and_is_never_given_back() -> None:
    core, partitions = make_core()
    operation = produce(KEY)
    core.try_complete_else_watch(core.produce, operation)
    core.forget(operation)
    core.forget(operation)
    assert core.produce.waiting == 0
    assert core.next_deadline_ms() is None
    partitions.rows[KEY] = leader(high_watermark=11)
    assert core.check_and_complete(KEY) == []
    assert core.produce.watched() == 0


def test_a_notice_for_a_partition_that_nobody_watches_reads_no_row() -> None:
    core, partitions = make_core()
    assert core.check_and_complete(KEY) == []
    assert partitions.finds == 0


def test_one_notice_reads_the_row_once_for_all_that_wait() -> None:
    core, partitions = make_core()
    operations = [produce(KEY, required=11 + i) for i in range(10)]
    for operation in operations:
        core.try_complete_else_watch(core.produce, operation)
    partitions.finds = 0
    partitions.rows[KEY] = leader(high_watermark=15)
    assert core.check_and_complete(KEY) == operations[:5]
    assert partitions.finds == 1
    assert core.produce.waiting == 5


def test_completed_entries_under_other_keys_are_purged() -> None:
    keys = [(TOPIC, partition) for partition in range(10)]
    core, partitions = make_core(*keys)
    bound = delayed_operation.PURGE_BOUND
    for round_ in range(bound):
        base = leader().high_watermark + round_
        parts = [FetchPart(k[0], k[1], 3, 10, 0, 1000, 1, 1 << 20) for k in keys]
        operation = DelayedFetch(WatchFetch(500, 1, False, parts), base + 500, FakeReply())
        assert not core.try_complete_else_watch(core.fetch, operation)
        # Only the first partition ever gets data; the nine others stay idle.
        partitions.rows[keys[0]] = leader(high_watermark=11, high_watermark_position=1100)
        assert core.check_and_complete(keys[0]) == [operation]
        partitions.rows[keys[0]] = leader()
        assert core.fetch.watched() <= bound + len(keys)
    assert core.fetch.waiting == 0


def test_the_living_survive_a_purge() -> None:
    core, partitions = make_core()
    survivor = produce(KEY, OTHER, deadline_ms=10_000)
    core.try_complete_else_watch(core.produce, survivor)
    for _ in range(delayed_operation.PURGE_BOUND + 1):
        operation = produce(KEY, deadline_ms=10_000)
        core.try_complete_else_watch(core.produce, operation)
        core.forget(operation)
    assert core.produce.watched() == 2
    partitions.rows[KEY] = leader(high_watermark=11)
    partitions.rows[OTHER] = leader(partition=1, high_watermark=11)
    assert core.check_all() == [survivor]


def test_nothing_is_judged_before_it_is_known_where_partitions_are() -> None:
    core, partitions = make_core()
    core.judging = False
    operation = produce(KEY, required=5)
    assert not core.try_complete_else_watch(core.produce, operation)
    assert core.check_and_complete(KEY) == []
    assert partitions.finds == 0
    core.judging = True
    assert core.check_all() == [operation]
    assert operation.outcome().error_codes == [0]


def test_a_drain_gives_everything_back_and_nothing_waits_after_it() -> None:
    core, _ = make_core()
    waiting = produce(KEY, OTHER)
    core.try_complete_else_watch(core.produce, waiting)
    assert core.drain() == [waiting]
    assert waiting.outcome().error_codes == [ErrorCode.not_leader_or_follower] * 2
    late = produce(KEY)
    assert core.try_complete_else_watch(core.produce, late)
    assert core.next_deadline_ms() is None


def test_an_operation_without_partitions_completes_at_once() -> None:
    core, _ = make_core()
    assert core.try_complete_else_watch(core.produce, produce())
