"""A shard: what it tells, when, and what it does when its log fails it."""

from __future__ import annotations

from typing import Any

from mobula.actors.coordinator.outcome import Outcome
from mobula.actors.coordinator.shard import Alarms, Shard, State
from mobula.actors.coordinator.timers import Timers
from mobula.protocol.errors import ErrorCode, KafkaError
from tests.unit.coordinator.virtual import VirtualJournal, VirtualScheduler


class Counter:
    """A machine that adds up."""

    def __init__(self, alarms: Alarms) -> None:
        self.alarms = alarms
        self.total = 0
        self.closed: ErrorCode | None = None

    def replay(self, record: int) -> None:
        self.total += record

    apply = replay

    def loaded(self) -> None:
        pass

    def close(self, code: ErrorCode) -> None:
        self.closed = code

    def add(self, number: int) -> Outcome[int, int]:
        return Outcome([number], self.total + number)

    def read(self) -> Outcome[int, int]:
        return Outcome((), self.total)


class World:
    def __init__(self) -> None:
        self.scheduler = VirtualScheduler()
        self.journal = VirtualJournal()
        self.said: list[Any] = []
        self.shard: Shard[int] = Shard(
            0,
            1,
            scheduler=self.scheduler,
            timers=Timers(self.scheduler, self.scheduler.time_ms),
            journal=self.journal,
            machine=Counter,
        )
        self.shard.load()

    @property
    def machine(self) -> Counter:
        machine = self.shard.machine
        assert isinstance(machine, Counter)
        return machine

    def loaded(self) -> World:
        self.journal.finish_load()
        return self

    def add(self, number: int, *, writes: bool = False) -> None:
        self.shard.decide(
            lambda: self.machine.add(number), self.said.append, self._failed, writes=writes
        )

    def read(self) -> None:
        self.shard.decide(self.machine.read, self.said.append, self._failed)

    def _failed(self, error: KafkaError) -> None:
        self.said.append(error.code)


def test_while_the_log_is_read_nobody_is_answered_for() -> None:
    world = World()
    world.read()
    assert world.said == [ErrorCode.coordinator_load_in_progress]


def test_state_comes_from_the_log() -> None:
    world = World()
    world.journal.records = [1, 2, 3]
    world.loaded().read()
    assert world.said == [6]


def test_a_log_that_cannot_be_read_is_tried_again() -> None:
    world = World()
    world.journal.records = [1, 2, 3]
    world.journal.finish_load(readable=False)
    world.read()
    assert world.said == [ErrorCode.coordinator_load_in_progress]
    world.scheduler.advance(1_000)
    world.loaded().read()
    assert world.said[-1] == 6


def test_answers_leave_when_they_are_committed_and_in_order() -> None:
    world = World().loaded()
    world.add(1)
    world.add(2)
    world.read()
    world.scheduler.turn()
    assert (world.said, world.journal.records) == ([], [1, 2])
    world.journal.commit()
    assert world.said == [1, 3, 3]


def test_decisions_of_one_turn_are_one_append() -> None:
    world = World().loaded()
    for number in range(5):
        world.add(number)
    world.scheduler.turn()
    assert len(world.journal.waiting) == 1


def test_what_was_read_waits_for_what_it_may_tell_of() -> None:
    world = World().loaded()
    world.add(1)
    world.scheduler.turn()
    world.read()
    assert world.said == []
    world.journal.commit()
    assert world.said == [1, 1]
    world.read()
    assert world.said == [1, 1, 1]


def test_after_a_failed_append_the_state_is_read_anew() -> None:
    world = World().loaded()
    world.add(1)
    world.scheduler.turn()
    world.journal.commit()
    world.add(10)
    world.scheduler.turn()
    world.add(100)
    former = world.machine
    world.journal.fail(KafkaError(ErrorCode.not_leader_or_follower), kept=1)
    assert world.said == [1, ErrorCode.not_coordinator, ErrorCode.not_coordinator]
    assert former.closed is ErrorCode.not_coordinator
    assert world.shard.state is State.LOADING
    world.scheduler.turn()
    world.loaded().read()
    assert world.said[-1] == 1


def test_a_log_in_which_somebody_else_wrote_is_read_anew() -> None:
    world = World().loaded()
    world.journal.records.append(1000)
    world.add(1)
    world.scheduler.turn()
    world.journal.commit()
    assert world.said == [ErrorCode.not_coordinator]
    world.loaded().read()
    assert world.said[-1] == 1001


def test_nothing_is_decided_that_cannot_be_written() -> None:
    world = World().loaded()
    world.journal.enough_replicas = False
    world.add(1, writes=True)
    world.read()
    assert world.said == [ErrorCode.coordinator_not_available, 0]


def test_who_waits_when_the_shard_is_closed_hears_it() -> None:
    world = World().loaded()
    world.add(1)
    world.scheduler.turn()
    world.shard.close(ErrorCode.not_coordinator)
    world.journal.commit()
    world.read()
    assert world.said == [ErrorCode.not_coordinator, ErrorCode.not_coordinator]


def test_a_refused_decision_changes_nothing() -> None:
    world = World().loaded()

    def refuse() -> Outcome[int, int]:
        raise KafkaError(ErrorCode.unknown_member_id)

    world.shard.decide(refuse, world.said.append, world._failed)
    assert world.said == [ErrorCode.unknown_member_id]
    assert world.journal.records == []


def test_a_deadline_is_a_decision_like_any_other() -> None:
    world = World().loaded()
    world.machine.alarms.schedule("add", 500, lambda: world.machine.add(7))
    world.scheduler.advance(499)
    assert world.journal.records == []
    world.scheduler.advance(1)
    assert world.journal.records == [7]


def test_deadlines_of_a_former_life_are_void() -> None:
    world = World().loaded()
    former = world.machine
    world.shard.load()
    former.alarms.schedule("add", 1, lambda: former.add(7))
    world.loaded()
    world.scheduler.advance(1_000)
    assert world.journal.records == []
