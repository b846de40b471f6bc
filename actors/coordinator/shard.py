"""One partition of an internal topic: the state machine over it, and what is under way.

Decisions made in one turn of the loop are one batch. Their answers leave when the batch is
committed; so does the answer of a decision that wrote nothing, for it may tell of what is
not committed yet. When an append fails, or somebody else has written, the state is void:
it is read from the log again.

Invariant: what was told to anybody is committed, in the order in which it was decided.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from enum import Enum
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from mobula.actors.coordinator.outcome import Outcome, Settled
from mobula.actors.coordinator.timers import Timers
from mobula.actors.end_of_turn import Scheduler
from mobula.protocol.errors import ErrorCode, KafkaError

log = logging.getLogger(__name__)

RecordT = TypeVar("RecordT")
RecordT_contra = TypeVar("RecordT_contra", contravariant=True)
MAX_UNCOMMITTED_DECISIONS = 100_000
LOAD_AGAIN_S = 1.0
"""After the log could not be read: clients are told that it still is."""


class Alarms(Protocol):
    """Deadlines, by name: `decision` is made when the time has come."""

    def schedule(
        self, name: Hashable, delay_ms: int, decision: Callable[[], Outcome[Any, Any]]
    ) -> None: ...
    def cancel(self, name: Hashable) -> None: ...


class Machine(Protocol[RecordT_contra]):
    """The state of one partition, and all that may be decided over it."""

    def replay(self, record: RecordT_contra) -> None:
        """It stands in the log. Read there at the start; nothing else happens meanwhile."""

    def apply(self, record: RecordT_contra) -> None:
        """It was just decided here."""

    def loaded(self) -> None:
        """Everything in the log was replayed."""

    def close(self, code: ErrorCode) -> None:
        """Its time is over: whoever waits in it is answered with that."""


class Journal(Protocol[RecordT]):
    """Where records go, and are read from."""

    def append(self, records: Sequence[RecordT], done: Callable[[Appended], None]) -> None:
        """`done` runs once, not inside this call: when they are committed, or have failed."""

    def can_append(self) -> bool:
        """Whether enough replicas are in sync for it."""

    def load(
        self, take: Callable[[RecordT], None], done: Callable[[int | None], None]
    ) -> Callable[[], None]:
        """`take` each record from the start, then `done` with the offset after the last; None
        when the log could not be read. What is returned gives up: neither runs any more."""


class Appended(NamedTuple):
    error: KafkaError | None
    base_offset: int = -1


class State(Enum):
    LOADING = "loading"
    ACTIVE = "active"
    CLOSED = "closed"


class _Decided(NamedTuple):
    """An answer that waits for its batch."""

    answer: Callable[[], None]
    failed: Callable[[KafkaError], None]
    settled: Settled | None


class Shard(Generic[RecordT]):
    def __init__(
        self,
        partition: int,
        leader_epoch: int,
        *,
        scheduler: Scheduler,
        timers: Timers,
        journal: Journal[RecordT],
        machine: Callable[[Alarms], Machine[RecordT]],
    ) -> None:
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.state = State.LOADING
        self.machine: Machine[RecordT]
        self._scheduler = scheduler
        self._timers = timers
        self._journal = journal
        self._make_machine = machine
        self._life = 0
        self._stop_loading: Callable[[], None] | None = None
        self._records: list[RecordT] = []
        self._decided: list[_Decided] = []
        self._under_way: deque[list[_Decided]] = deque()
        self._next_offset = 0
        self._uncommitted = 0

    def load(self) -> None:
        """Forget everything and read the log."""
        self._life += 1
        life = self._life
        self.state = State.LOADING
        self._timers.close()
        self.machine = machine = self._make_machine(_ShardAlarms(self, life))
        records = 0

        def take(record: RecordT) -> None:
            nonlocal records
            records += 1
            machine.replay(record)

        def done(next_offset: int | None) -> None:
            if life != self._life:
                return
            self._stop_loading = None
            if next_offset is None:
                self._scheduler.call_later(LOAD_AGAIN_S, lambda: self._load_again(life))
                return
            self._next_offset = next_offset
            self.state = State.ACTIVE
            log.info("coordinator loaded partition=%d records=%d", self.partition, records)
            machine.loaded()

        self._stop_loading = self._journal.load(take, done)

    def _load_again(self, life: int) -> None:
        if life == self._life:
            self.load()

    def close(self, code: ErrorCode) -> None:
        """Another broker's turn, or the end. Whoever waits hears `code`."""
        if self.state is State.CLOSED:
            return
        self._void(KafkaError(code))
        self.state = State.CLOSED
        self._life += 1
        self._timers.close()
        if self._stop_loading is not None:
            self._stop_loading()
            self._stop_loading = None

    def decide(
        self,
        decision: Callable[[], Outcome[RecordT, Any]],
        answered: Callable[[Any], None],
        failed: Callable[[KafkaError], None],
        *,
        writes: bool = False,
    ) -> None:
        """Make a decision over the machine. One of the callbacks runs, once; neither, when
        the decision leaves the answer to another.

        `writes`: it is sure to write, so it is not made while nothing can be written.
        """
        if self.state is State.LOADING:
            failed(KafkaError(ErrorCode.coordinator_load_in_progress))
            return
        if self.state is State.CLOSED:
            failed(KafkaError(ErrorCode.not_coordinator))
            return
        if self._uncommitted >= MAX_UNCOMMITTED_DECISIONS or (
            writes and not self._journal.can_append()
        ):
            failed(KafkaError(ErrorCode.coordinator_not_available))
            return
        try:
            outcome = decision()
        except KafkaError as error:
            failed(error)
            return
        for record in outcome.records:
            self.machine.apply(record)
        answer = outcome.answer

        def tell() -> None:
            if answer is not None:
                answered(answer)

        decided = _Decided(tell, failed, outcome.settled)
        if outcome.records:
            self._records += outcome.records
            self._wait(self._decided, decided)
            self._flush_soon()
        elif answer is None and outcome.settled is None:
            return
        elif self._decided:
            self._wait(self._decided, decided)
        elif self._under_way:
            self._wait(self._under_way[-1], decided)
        else:
            _settle(decided, None)

    def _wait(self, batch: list[_Decided], decided: _Decided) -> None:
        batch.append(decided)
        self._uncommitted += 1

    def _flush_soon(self) -> None:
        if len(self._decided) == 1:
            life = self._life
            self._scheduler.call_soon(lambda: self._flush(life))

    def _flush(self, life: int) -> None:
        if life != self._life or not self._records:
            return
        records, self._records = self._records, []
        decided, self._decided = self._decided, []
        self._under_way.append(decided)
        expected = self._next_offset
        self._next_offset += len(records)

        def done(appended: Appended) -> None:
            if life != self._life:
                return
            if appended.error is not None:
                self._reload(appended.error)
            elif appended.base_offset != expected:
                log.warning("somebody else wrote partition=%d", self.partition)
                self._reload(KafkaError(ErrorCode.not_coordinator))
            else:
                self._committed(decided)

        self._journal.append(records, done)

    def _committed(self, decided: list[_Decided]) -> None:
        """Batches are committed in order."""
        while self._under_way:
            batch = self._under_way.popleft()
            self._uncommitted -= len(batch)
            for each in batch:
                _settle(each, None)
            if batch is decided:
                return

    def _reload(self, error: KafkaError) -> None:
        log.warning(
            "coordinator starts over partition=%d reason=%s", self.partition, error.code.name
        )
        self._void(KafkaError(client_code(error.code)))
        self.load()

    def _void(self, error: KafkaError) -> None:
        """The state is nothing any more: whoever waits for it hears that."""
        self._timers.close()
        waiting = [*self._under_way, self._decided]
        self._under_way.clear()
        self._decided, self._records = [], []
        self._uncommitted = 0
        for batch in waiting:
            for decided in batch:
                _settle(decided, error)
        self.machine.close(error.code)

    def alarm(
        self, life: int, name: Hashable, delay_ms: int, decision: Callable[[], Outcome[Any, Any]]
    ) -> None:
        if life == self._life:
            self._timers.schedule(name, delay_ms, lambda: self.decide(decision, _ignore, _log))

    def no_alarm(self, life: int, name: Hashable) -> None:
        if life == self._life:
            self._timers.cancel(name)


class _ShardAlarms:
    """Those of one life: a machine whose life is over schedules nothing."""

    def __init__(self, shard: Shard[Any], life: int) -> None:
        self._shard = shard
        self._life = life

    def schedule(
        self, name: Hashable, delay_ms: int, decision: Callable[[], Outcome[Any, Any]]
    ) -> None:
        self._shard.alarm(self._life, name, delay_ms, decision)

    def cancel(self, name: Hashable) -> None:
        self._shard.no_alarm(self._life, name)


def _settle(decided: _Decided, error: KafkaError | None) -> None:
    if decided.settled is not None:
        decided.settled(error)
    if error is None:
        decided.answer()
    else:
        decided.failed(error)


def _ignore(_answer: Any) -> None:
    """Nobody asked: a deadline passed."""


def _log(error: KafkaError) -> None:
    log.warning("a deadline's decision failed code=%s", error.code.name)


_CLIENT_CODES = {
    ErrorCode.unknown_topic_or_partition: ErrorCode.coordinator_not_available,
    ErrorCode.not_enough_replicas: ErrorCode.coordinator_not_available,
    ErrorCode.not_enough_replicas_after_append: ErrorCode.coordinator_not_available,
    ErrorCode.request_timed_out: ErrorCode.coordinator_not_available,
    ErrorCode.not_leader_or_follower: ErrorCode.not_coordinator,
    ErrorCode.kafka_storage_error: ErrorCode.not_coordinator,
    ErrorCode.not_coordinator: ErrorCode.not_coordinator,
    ErrorCode.message_too_large: ErrorCode.unknown_server_error,
    ErrorCode.record_list_too_large: ErrorCode.unknown_server_error,
}


def client_code(code: ErrorCode) -> ErrorCode:
    """What a client of a coordinator hears when an append failed with that."""
    return _CLIENT_CODES.get(code, ErrorCode.coordinator_not_available)
