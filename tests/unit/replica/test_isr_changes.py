"""Asking the controller for other ISRs: one call at a time, until it is settled."""

from __future__ import annotations

from mobula.actors.controller.messages import AlteredPartitions, PartitionAltered
from mobula.actors.replica.isr_changes import IsrChanges, Led
from mobula.actors.replica.leader import Leadership, PartitionLeader
from mobula.actors.replica.pull_session import Key
from mobula.protocol.errors import ErrorCode
from tests.sim.virtual import VirtualLoop
from tests.unit.replica.fakes import TOPIC, FakeLink


class Partition:
    """Led by broker 0; broker 1 has caught up and is not in the ISR."""

    def __init__(self, index: int) -> None:
        self.key: Key = (TOPIC, index)
        self.name = f"topic-{index}"
        leader = PartitionLeader(
            broker_id=0,
            leadership=Leadership(5, 7, (0, 1), (0,)),
            log_start_offset=0,
            log_end_offset=10,
            high_watermark=10,
            min_insync_replicas=1,
            lag_time_max_ms=30_000,
            live_brokers={0: 100, 1: 101},
            now_ms=0,
        )
        leader.follower_pulled(1, 101, 10, 0, 0)
        self.leader: PartitionLeader | None = leader


class Controller:
    def __init__(self) -> None:
        self.time = VirtualLoop()
        self.link = FakeLink("controller")
        self.settled: list[Key] = []
        self.changes = IsrChanges(
            controller=lambda: self.link,
            scheduler=self.time,
            broker_id=0,
            broker_epoch=lambda: 100,
            on_settled=self._settled,
        )

    def _settled(self, partition: Led) -> None:
        self.settled.append(partition.key)

    def expand(self, *partitions: Partition) -> None:
        for partition in partitions:
            assert partition.leader is not None
            proposal = partition.leader.maybe_expand()
            assert proposal is not None
            self.changes.propose(partition, proposal)

    def answer(self, *codes: ErrorCode) -> None:
        parts = [
            PartitionAltered(int(code), [0, 1] if code == 0 else [0], 0, 5, 8) for code in codes
        ]
        self.link.answer(AlteredPartitions(0, parts))
        self.time.settle()

    def asked(self) -> list[int]:
        self.time.settle()
        return [part.partition for call in self.link.calls.values() for part in call.message.parts]


def test_changes_of_one_turn_are_asked_for_in_one_call() -> None:
    controller = Controller()
    controller.expand(*(Partition(index) for index in range(5)))
    assert controller.asked() == [0, 1, 2, 3, 4]
    assert len(controller.link.calls) == 1


def test_a_confirmed_change_is_settled() -> None:
    controller = Controller()
    partition = Partition(0)
    controller.expand(partition)
    controller.asked()
    controller.answer(ErrorCode.none)
    assert controller.settled == [partition.key]
    assert partition.leader is not None
    assert partition.leader.isr == {0, 1}


def test_further_changes_wait_for_the_call_under_way() -> None:
    controller = Controller()
    controller.expand(Partition(0))
    assert controller.asked() == [0]
    controller.expand(Partition(1))
    assert controller.asked() == [0]
    controller.answer(ErrorCode.none)
    assert controller.asked() == [1]


def test_a_call_that_failed_is_made_again() -> None:
    controller = Controller()
    controller.expand(Partition(0), Partition(1))
    controller.asked()
    controller.link.break_calls()
    controller.time.run_for(1_000)
    assert controller.asked() == [0, 1]


def test_only_what_was_not_judged_is_asked_for_again() -> None:
    controller = Controller()
    controller.expand(Partition(0), Partition(1), Partition(2))
    controller.asked()
    controller.answer(ErrorCode.none, ErrorCode.not_controller, ErrorCode.fenced_leader_epoch)
    controller.time.run_for(1_000)
    assert controller.asked() == [1]


def test_a_change_that_metadata_settled_is_not_asked_for_again() -> None:
    controller = Controller()
    partition = Partition(0)
    controller.expand(partition)
    controller.asked()
    controller.link.break_calls()
    assert partition.leader is not None
    partition.leader.metadata(Leadership(5, 8, (0, 1), (0, 1)), 1)
    controller.time.run_for(1_000)
    assert controller.asked() == []


def test_a_partition_that_is_led_no_more_is_not_asked_for() -> None:
    controller = Controller()
    partition = Partition(0)
    controller.expand(partition)
    partition.leader = None
    assert controller.asked() == []
