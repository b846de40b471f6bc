"""The transactions of one partition of `__transaction_state`: what may be done to each, when.

A transaction is begun by the first partition that is added to it, and ended in two steps:
that it shall be committed or aborted is written first, and when every partition has its
marker, that it is. Between the two nothing can change it.

Invariant: markers are asked for only when it is committed that they shall be written, and
until they all are, again in every life.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from mobula.actors.coordinator.outcome import Outcome
from mobula.actors.coordinator.shard import Alarms
from mobula.actors.coordinator.transaction.records import (
    Place,
    State,
    TransactionRecord,
    TransactionValue,
)
from mobula.protocol.errors import ErrorCode, KafkaError

TransactionOutcome: TypeAlias = Outcome[TransactionRecord, Any]

NO_EPOCH = -1
_LAST_EPOCH = 32_766
"""A producer id with this epoch is used up: one epoch more is for fencing."""
_NOTHING: TransactionOutcome = Outcome(())
_NO_PLACES: frozenset[Place] = frozenset()
_PREPARED = (State.PREPARE_COMMIT, State.PREPARE_ABORT, State.PREPARE_EPOCH_FENCE)
_COMPLETE = (State.COMPLETE_COMMIT, State.COMPLETE_ABORT)


class Producer(NamedTuple):
    producer_id: int
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    max_timeout_ms: int
    id_expiration_ms: int


class TransactionMachine:
    def __init__(
        self,
        settings: Settings,
        alarms: Alarms,
        *,
        now_ms: Callable[[], int],
        new_producer_id: Callable[[], int],
        write_markers: Callable[[str, TransactionValue], None],
    ) -> None:
        """`now_ms` is wall time. `new_producer_id` raises KafkaError while there is none.
        `write_markers` leads to `markers_written`, however long that takes."""
        self.transactions: dict[str, TransactionValue] = {}
        self._settings = settings
        self._alarms = alarms
        self._now_ms = now_ms
        self._new_producer_id = new_producer_id
        self._write_markers = write_markers
        self._last_epochs: dict[str, int] = {}
        """The epoch that a producer had before it asked for the one it has now: when it asks
        again with that, it did not hear the answer."""

    def replay(self, record: TransactionRecord) -> None:
        if record.value is None:
            self.transactions.pop(record.transactional_id, None)
            self._last_epochs.pop(record.transactional_id, None)
        else:
            self.transactions[record.transactional_id] = record.value

    apply = replay

    def loaded(self) -> None:
        for transactional_id, value in self.transactions.items():
            if value.state in _PREPARED:
                self._write_markers(transactional_id, value)
            elif value.state is State.ONGOING:
                self._watch(transactional_id, value)
            else:
                self._watch_idle(transactional_id, value)

    def close(self, _code: ErrorCode) -> None:
        """Nobody waits in here."""

    def init_producer_id(
        self, transactional_id: str, timeout_ms: int, expected: Producer | None
    ) -> TransactionOutcome:
        """The producer gets an epoch that fences whoever had the id before; what that one left
        open is aborted first, and the producer asks again."""
        if not 0 < timeout_ms <= self._settings.max_timeout_ms:
            raise KafkaError(ErrorCode.invalid_transaction_timeout)
        value = self.transactions.get(transactional_id)
        now_ms = self._now_ms()
        if value is None:
            fresh = TransactionValue(
                self._new_producer_id(), 0, timeout_ms, State.EMPTY, _NO_PLACES, now_ms, -1
            )
            return self._initialised(transactional_id, fresh, NO_EPOCH)
        if expected is not None and not _may_go_on(value, expected):
            raise KafkaError(ErrorCode.producer_fenced)
        if value.state in _PREPARED:
            raise KafkaError(ErrorCode.concurrent_transactions)
        if value.state is State.ONGOING:
            return self._fence(transactional_id, value)
        renewed = value._replace(
            state=State.EMPTY,
            partitions=_NO_PLACES,
            timeout_ms=timeout_ms,
            updated_ms=now_ms,
            started_ms=-1,
            next_producer_id=-1,
        )
        if value.producer_epoch >= _LAST_EPOCH and expected is None:
            fresh = renewed._replace(
                producer_id=self._new_producer_id(),
                producer_epoch=0,
                previous_producer_id=value.producer_id,
            )
            return self._initialised(transactional_id, fresh, NO_EPOCH)
        if expected is None:
            last_epoch = NO_EPOCH
        elif expected.epoch == value.producer_epoch:
            last_epoch = value.producer_epoch
        elif expected.epoch == self._last_epochs.get(transactional_id, NO_EPOCH):
            return Outcome((), Producer(value.producer_id, value.producer_epoch))
        else:
            raise KafkaError(ErrorCode.producer_fenced)
        return self._initialised(
            transactional_id,
            renewed._replace(producer_epoch=value.producer_epoch + 1),
            last_epoch,
        )

    def _initialised(
        self, transactional_id: str, value: TransactionValue, last_epoch: int
    ) -> TransactionOutcome:
        self._last_epochs[transactional_id] = last_epoch
        self._watch_idle(transactional_id, value)
        return Outcome(
            [TransactionRecord(transactional_id, value)],
            Producer(value.producer_id, value.producer_epoch),
        )

    def add_partitions(
        self,
        transactional_id: str,
        producer: Producer,
        places: Iterable[Place],
        client_version: int,
    ) -> TransactionOutcome:
        value = self._of(transactional_id, producer)
        if producer.epoch != value.producer_epoch:
            raise KafkaError(ErrorCode.producer_fenced)
        if value.state in _PREPARED:
            raise KafkaError(ErrorCode.concurrent_transactions)
        added = frozenset(places)
        is_open = value.state is State.ONGOING
        if is_open and added <= value.partitions:
            return Outcome((), producer)
        now_ms = self._now_ms()
        changed = value._replace(
            state=State.ONGOING,
            partitions=value.partitions | added if is_open else added,
            updated_ms=now_ms,
            started_ms=value.started_ms if is_open else now_ms,
            client_version=client_version,
        )
        self._last_epochs[transactional_id] = NO_EPOCH
        if not is_open:
            self._watch(transactional_id, changed)
        return Outcome([TransactionRecord(transactional_id, changed)], producer)

    def verify_partitions(
        self, transactional_id: str, producer: Producer, places: Iterable[Place]
    ) -> Mapping[Place, ErrorCode]:
        """Which of these take part in the open transaction of that producer."""
        value = self._of(transactional_id, producer)
        if producer.epoch != value.producer_epoch:
            raise KafkaError(ErrorCode.producer_fenced)
        part_of = value.partitions if value.state is State.ONGOING else _NO_PLACES
        return {
            place: ErrorCode.none if place in part_of else ErrorCode.transaction_abortable
            for place in places
        }

    def end(
        self, transactional_id: str, producer: Producer, *, commit: bool, client_version: int
    ) -> TransactionOutcome:
        """Answered when it is written that the transaction shall end; with the producer id
        and epoch to go on with."""
        value = self._of(transactional_id, producer)
        bumps = client_version >= _FIRST_THAT_BUMPS
        again = bumps and _ended_before(value, producer)
        if producer.epoch != value.producer_epoch and not again:
            raise KafkaError(ErrorCode.producer_fenced)
        match value.state:
            case State.ONGOING:
                return self._prepare(transactional_id, value, commit, client_version)
            case State.PREPARE_COMMIT | State.PREPARE_ABORT | State.PREPARE_EPOCH_FENCE:
                if commit == (value.state is State.PREPARE_COMMIT):
                    raise KafkaError(ErrorCode.concurrent_transactions)
            case State.COMPLETE_COMMIT | State.COMPLETE_ABORT:
                if again or not bumps:
                    if commit == (value.state is State.COMPLETE_COMMIT):
                        return Outcome((), Producer(value.producer_id, value.producer_epoch))
                elif not commit:
                    return self._prepare(transactional_id, value, commit, client_version)
            case State.EMPTY:
                if bumps and not commit:
                    # Nothing was added, perhaps only as far as this coordinator knows.
                    return self._prepare(transactional_id, value, commit, client_version)
            case State.DEAD:
                pass
        raise KafkaError(ErrorCode.invalid_txn_state)

    def _prepare(
        self, transactional_id: str, value: TransactionValue, commit: bool, client_version: int
    ) -> TransactionOutcome:
        now_ms = self._now_ms()
        is_open = value.state is State.ONGOING
        prepared = value._replace(
            state=State.PREPARE_COMMIT if commit else State.PREPARE_ABORT,
            partitions=value.partitions if is_open else _NO_PLACES,
            updated_ms=now_ms,
            started_ms=value.started_ms if is_open else now_ms,
            client_version=client_version,
        )
        if client_version >= _FIRST_THAT_BUMPS:
            if value.producer_epoch >= _LAST_EPOCH:
                # The markers still go out under the old id.
                prepared = prepared._replace(
                    producer_epoch=value.producer_epoch + 1,
                    next_producer_id=self._new_producer_id(),
                    next_producer_epoch=0,
                )
                answer = Producer(prepared.next_producer_id, 0)
            else:
                prepared = prepared._replace(producer_epoch=value.producer_epoch + 1)
                answer = Producer(value.producer_id, prepared.producer_epoch)
        else:
            answer = Producer(value.producer_id, value.producer_epoch)
        return self._prepared(transactional_id, prepared)._replace(answer=answer)

    def _fence(self, transactional_id: str, value: TransactionValue) -> TransactionOutcome:
        """Abort what is open under an epoch that nobody has; whoever caused it asks again."""
        fenced = value._replace(
            state=State.PREPARE_ABORT,
            producer_epoch=value.producer_epoch + 1,
            updated_ms=self._now_ms(),
        )
        self._last_epochs[transactional_id] = NO_EPOCH
        outcome = self._prepared(transactional_id, fenced)
        return outcome._replace(answer=KafkaError(ErrorCode.concurrent_transactions))

    def _prepared(self, transactional_id: str, value: TransactionValue) -> TransactionOutcome:
        self._alarms.cancel(_open(transactional_id))

        def settled(error: KafkaError | None) -> None:
            if error is None:
                self._write_markers(transactional_id, value)

        return Outcome([TransactionRecord(transactional_id, value)], settled=settled)

    def markers_written(self, transactional_id: str, of: TransactionValue) -> TransactionOutcome:
        """Every partition has its marker: the transaction is over."""
        value = self.transactions.get(transactional_id)
        if value != of or value is None or value.state not in _PREPARED:
            return _NOTHING
        commits = value.state is State.PREPARE_COMMIT
        done = value._replace(
            state=State.COMPLETE_COMMIT if commits else State.COMPLETE_ABORT,
            partitions=_NO_PLACES,
            updated_ms=self._now_ms(),
            next_producer_id=-1,
            next_producer_epoch=-1,
        )
        if value.next_producer_id >= 0:
            done = done._replace(
                producer_id=value.next_producer_id,
                producer_epoch=value.next_producer_epoch,
                previous_producer_id=value.producer_id,
            )
        self._watch_idle(transactional_id, done)
        return Outcome([TransactionRecord(transactional_id, done)])

    def _of(self, transactional_id: str, producer: Producer) -> TransactionValue:
        value = self.transactions.get(transactional_id)
        if value is None or producer.producer_id not in {
            value.producer_id,
            value.previous_producer_id,
        }:
            raise KafkaError(ErrorCode.invalid_producer_id_mapping)
        return value

    def _watch(self, transactional_id: str, value: TransactionValue) -> None:
        """A transaction may be open for its timeout."""
        self._alarms.cancel(_idle(transactional_id))
        left_ms = value.started_ms + value.timeout_ms - self._now_ms()
        self._alarms.schedule(
            _open(transactional_id), max(1, left_ms), lambda: self._timed_out(transactional_id)
        )

    def _timed_out(self, transactional_id: str) -> TransactionOutcome:
        value = self.transactions.get(transactional_id)
        if value is None or value.state is not State.ONGOING:
            return _NOTHING
        return self._fence(transactional_id, value)._replace(answer=None)

    def _watch_idle(self, transactional_id: str, value: TransactionValue) -> None:
        """An id that nobody uses is forgotten in the end."""
        left_ms = value.updated_ms + self._settings.id_expiration_ms - self._now_ms()
        self._alarms.schedule(
            _idle(transactional_id), max(1, left_ms), lambda: self._expired(transactional_id)
        )

    def _expired(self, transactional_id: str) -> TransactionOutcome:
        value = self.transactions.get(transactional_id)
        if value is None or value.state not in (State.EMPTY, *_COMPLETE):
            return _NOTHING
        return Outcome([TransactionRecord(transactional_id, None)])


_FIRST_THAT_BUMPS = 2
"""transaction.version: each transaction ends with another epoch (KIP-890)."""


def _may_go_on(value: TransactionValue, expected: Producer) -> bool:
    """Whether the id and epoch that a producer says it had are of this transactional id."""
    return expected.producer_id == value.producer_id or (
        expected.producer_id == value.previous_producer_id and expected.epoch >= _LAST_EPOCH
    )


def _ended_before(value: TransactionValue, producer: Producer) -> bool:
    """Whether the request is one that was carried out already: its answer was lost."""
    if value.state not in (*_PREPARED, *_COMPLETE):
        return False
    if producer.producer_id == value.producer_id:
        return producer.epoch == value.producer_epoch - 1
    return producer.producer_id == value.previous_producer_id and value.producer_epoch == 0


def _open(transactional_id: str) -> tuple[str, str]:
    return ("open", transactional_id)


def _idle(transactional_id: str) -> tuple[str, str]:
    return ("idle", transactional_id)
