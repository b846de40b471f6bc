"""What may be done to a transaction, when, and by whom."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest

from mobula.actors.coordinator.transaction.records import State, TransactionRecord, TransactionValue
from mobula.actors.coordinator.transaction.transaction_machine import (
    Producer,
    Settings,
    TransactionMachine,
    TransactionOutcome,
)
from mobula.protocol.errors import ErrorCode, KafkaError
from tests.unit.coordinator.virtual import Alarms

TIMEOUT_MS = 60_000
EXPIRATION_MS = 1_000_000
A, B = ("a", 0), ("b", 1)
ID = "an id"


class World:
    """Records are committed at once; markers are written when a test says so."""

    def __init__(self) -> None:
        self.alarms = Alarms(self._carry_out)
        self.records: list[TransactionRecord] = []
        self.markers: list[tuple[str, TransactionValue]] = []
        self.machine = self._machine()

    def _machine(self) -> TransactionMachine:
        numbers = count(1000)
        return TransactionMachine(
            Settings(max_timeout_ms=900_000, id_expiration_ms=EXPIRATION_MS),
            self.alarms,
            now_ms=lambda: self.alarms.now_ms,
            new_producer_id=lambda: next(numbers),
            write_markers=lambda *asked: self.markers.append(asked),
        )

    @property
    def value(self) -> TransactionValue:
        return self.machine.transactions[ID]

    def _carry_out(self, outcome: TransactionOutcome) -> None:
        self.records += outcome.records
        for record in outcome.records:
            self.machine.apply(record)
        if outcome.settled is not None:
            outcome.settled(None)

    def do(
        self, decide: Callable[[TransactionMachine], TransactionOutcome]
    ) -> Producer | ErrorCode:
        try:
            outcome = decide(self.machine)
        except KafkaError as error:
            return error.code
        self._carry_out(outcome)
        if isinstance(outcome.answer, KafkaError):
            return outcome.answer.code
        assert isinstance(outcome.answer, Producer)
        return outcome.answer

    def init(self, expected: Producer | None = None) -> Producer | ErrorCode:
        return self.do(lambda machine: machine.init_producer_id(ID, TIMEOUT_MS, expected))

    def started(self) -> Producer:
        producer = self.init()
        assert isinstance(producer, Producer)
        return producer

    def add(self, producer: Producer, *places: tuple[str, int], version: int = 0) -> object:
        return self.do(lambda machine: machine.add_partitions(ID, producer, places, version))

    def end(self, producer: Producer, *, commit: bool = True, version: int = 0) -> object:
        return self.do(
            lambda machine: machine.end(ID, producer, commit=commit, client_version=version)
        )

    def write_markers(self) -> None:
        markers, self.markers = self.markers, []
        for transactional_id, value in markers:
            self._carry_out(self.machine.markers_written(transactional_id, value))

    def restart(self) -> None:
        """Another coordinator reads the log."""
        self.markers.clear()
        self.machine = self._machine()
        for record in self.records:
            self.machine.replay(record)
        self.machine.loaded()


@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_from_its_begin_to_its_end(commit: bool) -> None:
    world = World()
    producer = world.started()
    assert producer == Producer(1000, 0)
    assert world.add(producer, A) == producer
    assert world.add(producer, A, B) == producer
    assert world.value.partitions == {A, B}
    assert world.end(producer, commit=commit) == producer
    prepared = State.PREPARE_COMMIT if commit else State.PREPARE_ABORT
    assert [value.state for _, value in world.markers] == [prepared]
    assert world.markers[0][1].partitions == {A, B}
    world.write_markers()
    assert world.value.state is (State.COMPLETE_COMMIT if commit else State.COMPLETE_ABORT)
    assert world.value.partitions == frozenset()


def test_while_markers_are_written_nothing_can_begin() -> None:
    world = World()
    producer = world.started()
    world.add(producer, A)
    world.end(producer)
    assert world.add(producer, B) is ErrorCode.concurrent_transactions
    assert world.init() is ErrorCode.concurrent_transactions
    assert world.end(producer) is ErrorCode.concurrent_transactions
    assert world.end(producer, commit=False) is ErrorCode.invalid_txn_state
    world.write_markers()
    assert world.add(producer, B) == producer


def test_an_end_that_is_asked_for_again_is_answered_again() -> None:
    world = World()
    producer = world.started()
    world.add(producer, A)
    world.end(producer)
    world.write_markers()
    assert world.end(producer) == producer
    assert world.end(producer, commit=False) is ErrorCode.invalid_txn_state


def test_a_new_producer_fences_the_old_one() -> None:
    world = World()
    old = world.started()
    new = world.init()
    assert new == Producer(old.producer_id, 1)
    assert world.add(old, A) is ErrorCode.producer_fenced
    assert world.end(old) is ErrorCode.producer_fenced


def test_what_the_old_one_left_open_is_aborted_first() -> None:
    world = World()
    old = world.started()
    world.add(old, A)
    assert world.init() is ErrorCode.concurrent_transactions
    assert world.end(old) is ErrorCode.producer_fenced
    ((_, value),) = world.markers
    assert (value.state, value.producer_epoch) == (State.PREPARE_ABORT, 1)
    world.write_markers()
    assert world.init() == Producer(old.producer_id, 2)


def test_a_transaction_that_is_open_too_long_is_aborted_and_its_producer_fenced() -> None:
    world = World()
    producer = world.started()
    world.add(producer, A)
    world.alarms.advance(TIMEOUT_MS - 1)
    assert world.value.state is State.ONGOING
    world.alarms.advance(1)
    assert world.value.state is State.PREPARE_ABORT
    world.write_markers()
    assert world.add(producer, A) is ErrorCode.producer_fenced


def test_a_producer_goes_on_after_an_error_with_the_epoch_it_had() -> None:
    world = World()
    producer = world.started()
    bumped = world.init(producer)
    assert bumped == Producer(producer.producer_id, 1)
    assert world.init(producer) == bumped, "it did not hear the answer"
    assert world.init(Producer(producer.producer_id, 7)) is ErrorCode.producer_fenced
    assert world.init(Producer(4711, 0)) is ErrorCode.producer_fenced


def test_a_used_up_producer_id_is_replaced() -> None:
    world = World()
    world.started()
    world.machine.transactions[ID] = world.value._replace(producer_epoch=32_766)
    assert world.init() == Producer(1001, 0)


def test_ids_and_producers_that_are_not_known() -> None:
    world = World()
    assert world.add(Producer(1, 0), A) is ErrorCode.invalid_producer_id_mapping
    assert world.end(Producer(1, 0)) is ErrorCode.invalid_producer_id_mapping
    producer = world.started()
    other = producer._replace(producer_id=5)
    assert world.add(other, A) is ErrorCode.invalid_producer_id_mapping
    assert world.end(producer) is ErrorCode.invalid_txn_state


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_timeouts_that_cannot_be(timeout_ms: int) -> None:
    world = World()
    asked = world.do(lambda machine: machine.init_producer_id(ID, timeout_ms, None))
    assert asked is ErrorCode.invalid_transaction_timeout


@pytest.mark.parametrize("commit", [True, False])
def test_with_version_2_each_transaction_ends_with_another_epoch(commit: bool) -> None:
    world = World()
    producer = world.started()
    world.add(producer, A, version=2)
    after = world.end(producer, commit=commit, version=2)
    assert after == Producer(producer.producer_id, 1)
    assert world.end(producer, commit=commit, version=2) is ErrorCode.concurrent_transactions
    world.write_markers()
    assert world.end(producer, commit=commit, version=2) == after, "its answer was lost"
    assert world.add(producer, A, version=2) is ErrorCode.producer_fenced


def test_with_version_2_an_abort_of_nothing_still_gives_another_epoch() -> None:
    world = World()
    producer = world.started()
    assert world.end(producer, commit=True, version=2) is ErrorCode.invalid_txn_state
    after = world.end(producer, commit=False, version=2)
    assert after == Producer(producer.producer_id, 1)
    ((_, value),) = world.markers
    assert value.partitions == frozenset()


def test_with_version_2_a_used_up_producer_id_is_replaced_when_the_transaction_ends() -> None:
    world = World()
    world.started()
    world.machine.transactions[ID] = world.value._replace(producer_epoch=32_766)
    producer = Producer(1000, 32_766)
    world.add(producer, A, version=2)
    assert world.end(producer, version=2) == Producer(1001, 0)
    ((_, value),) = world.markers
    assert (value.producer_id, value.producer_epoch) == (1000, 32_767)
    world.write_markers()
    assert (world.value.producer_id, world.value.producer_epoch) == (1001, 0)
    assert world.end(producer, version=2) == Producer(1001, 0), "its answer was lost"


def test_only_partitions_of_the_open_transaction_are_verified() -> None:
    world = World()
    producer = world.started()
    world.add(producer, A)
    found = world.machine.verify_partitions(ID, producer, [A, B])
    assert found == {A: ErrorCode.none, B: ErrorCode.transaction_abortable}


def test_another_coordinator_writes_the_markers_that_are_missing() -> None:
    world = World()
    producer = world.started()
    world.add(producer, A)
    world.end(producer)
    world.restart()
    assert [value.partitions for _, value in world.markers] == [{A}]
    world.write_markers()
    assert world.value.state is State.COMPLETE_COMMIT


def test_another_coordinator_keeps_the_timeout() -> None:
    world = World()
    producer = world.started()
    world.add(producer, A)
    world.alarms.advance(TIMEOUT_MS // 2)
    world.restart()
    world.alarms.advance(TIMEOUT_MS // 2)
    assert world.value.state is State.PREPARE_ABORT


def test_an_id_that_nobody_uses_is_forgotten() -> None:
    world = World()
    world.started()
    world.alarms.advance(EXPIRATION_MS)
    assert ID not in world.machine.transactions
    assert world.records[-1] == TransactionRecord(ID, None)
