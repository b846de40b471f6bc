"""The purgatory: every client operation that waits, and the wheel of their deadlines.

Operations go in, operations that completed come out; whoever asked answers them.

Invariant: an operation is given back exactly once, unless it was forgotten before.
"""

from __future__ import annotations

from typing import Protocol

from mobula.actors.purgatory.delayed_operation import DelayedOperation, Key, Watchers
from mobula.actors.purgatory.timing_wheel import TimingWheel
from mobula.actors.rows import Row


class Partitions(Protocol):
    """What the purgatory sees of the partitions it watches."""

    def find(self, key: Key) -> Row | None: ...

    def absent_code(self, key: Key) -> int:
        """The error of a partition that has no row here."""


class PurgatoryCore:
    def __init__(self, partitions: Partitions, now_ms: int) -> None:
        self._partitions = partitions
        self._wheel = TimingWheel(now_ms)
        self.produce = Watchers(self._wheel)
        self.fetch = Watchers(self._wheel)
        self.delete_records = Watchers(self._wheel)
        self._all = (self.produce, self.fetch, self.delete_records)
        self.judging = False
        """False until it is known which actor holds which partition: all must wait."""
        self.draining = False
        """Nothing waits any more: what cannot complete ends at once."""

    def try_complete_else_watch(self, watchers: Watchers, operation: DelayedOperation) -> bool:
        """True when the operation completed; else it is given back later."""
        keys = operation.keys()
        if self.judging:
            partitions = self._partitions
            for index, key in enumerate(keys):
                row = partitions.find(key)
                absent = 0 if row is not None else partitions.absent_code(key)
                if operation.check(index, row, absent):
                    operation.completed = True
                    return True
        if self.draining or not keys:
            operation.completed = True
            return True
        return not watchers.watch(operation, keys)

    def check_and_complete(self, key: Key) -> list[DelayedOperation]:
        """Something about this partition changed."""
        done: list[DelayedOperation] = []
        if self.judging:
            row: Row | None = None
            absent: int | None = None
            for watchers in self._all:
                if key in watchers:
                    if absent is None:
                        row = self._partitions.find(key)
                        absent = 0 if row is not None else self._partitions.absent_code(key)
                    done += watchers.check_and_complete(key, row, absent)
        return done

    def check_all(self) -> list[DelayedOperation]:
        """Anything may have changed."""
        keys = {key for watchers in self._all for key in watchers}
        return [operation for key in keys for operation in self.check_and_complete(key)]

    def advance(self, now_ms: int) -> list[DelayedOperation]:
        """Time has passed: gives back what expired."""
        expired: list[DelayedOperation] = []
        for entry in self._wheel.advance(now_ms):
            assert isinstance(entry, DelayedOperation)
            assert entry.watchers is not None
            entry.watchers.expire(entry)
            expired.append(entry)
        return expired

    def next_deadline_ms(self) -> int | None:
        """`advance` need not be called before this; None: nothing waits."""
        return self._wheel.next_deadline_ms()

    def forget(self, operation: DelayedOperation) -> None:
        """Nobody wants the answer any more. It leaves nothing behind."""
        if not operation.completed:
            assert operation.watchers is not None
            operation.watchers.force_complete(operation)

    def drain(self) -> list[DelayedOperation]:
        """Everything completes as it stands, and nothing waits from here on."""
        self.draining = True
        done = [operation for watchers in self._all for operation in watchers.operations()]
        for operation in done:
            self.forget(operation)
        return done

    def counters(self) -> dict[str, int]:
        return {
            "produce_waiting": self.produce.waiting,
            "produce_expired": self.produce.expirations,
            "fetch_waiting": self.fetch.waiting,
            "fetch_expired": self.fetch.expirations,
            "delete_records_waiting": self.delete_records.waiting,
            "delete_records_expired": self.delete_records.expirations,
        }
