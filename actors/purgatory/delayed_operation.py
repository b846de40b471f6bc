"""Operations that wait for partitions: who watches which, and who is done.

An operation is watched under the key of each of its partitions until it completes, its
deadline passes or its caller is gone. What is left of it under its other keys is dropped
when that key is next looked at, or by a purge.

Invariant: each operation completes exactly once, and only an operation that is watched
has its timer in the wheel.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from mobula.actors.link.interface import Reply
from mobula.actors.link.method import Message
from mobula.actors.purgatory.timing_wheel import TimerEntry, TimingWheel
from mobula.actors.rows import Row

Key: TypeAlias = tuple[bytes, int]
"""Topic id and partition."""

PURGE_BOUND = 1000
"""Fewer dead entries than this are not worth a walk over the watch lists."""


class DelayedOperation(TimerEntry):
    """One waiting request. Subclasses decide by looking at one partition at a time."""

    __slots__ = ("completed", "expired", "reply", "size", "watchers")

    def __init__(self, size: int, deadline_ms: int, reply: Reply) -> None:
        # Written out, not by super(): one of these is made for each acks=all produce.
        self.deadline_ms = deadline_ms
        self.level = None
        self.slot = 0
        self.size = size
        self.completed = False
        self.expired = False
        self.watchers: Watchers | None = None
        self.reply: Reply | None = reply

    def keys(self) -> list[Key]:
        """One for each partition, in the order of the request."""
        raise NotImplementedError

    def check(self, index: int, row: Row | None, absent: int) -> bool:
        """Look at one partition; True when the whole operation can complete now.

        `absent` is the error code of a partition that has no row.
        """
        raise NotImplementedError

    def outcome(self) -> Message:
        """The reply, once completed."""
        raise NotImplementedError


class Watchers:
    """The watch lists of one kind of operation."""

    def __init__(self, wheel: TimingWheel) -> None:
        self._wheel = wheel
        self._lists: dict[Key, list[tuple[DelayedOperation, int]]] = {}
        self._dead = 0
        self.waiting = 0
        """Operations, each once."""
        self.expirations = 0

    def __contains__(self, key: Key) -> bool:
        return key in self._lists

    def __iter__(self) -> Iterator[Key]:
        return iter(self._lists)

    def watch(self, operation: DelayedOperation, keys: list[Key]) -> bool:
        """False when its deadline has passed already: it is then complete, as expired."""
        if not self._wheel.insert(operation):
            operation.completed = operation.expired = True
            self.expirations += 1
            return False
        lists = self._lists
        for index, key in enumerate(keys):
            entries = lists.get(key)
            if entries is None:
                lists[key] = [(operation, index)]
            else:
                entries.append((operation, index))
        operation.watchers = self
        self.waiting += 1
        return True

    def check_and_complete(
        self, key: Key, row: Row | None, absent: int
    ) -> list[DelayedOperation] | tuple[()]:
        """Look again at all that waits for this partition; returns what completed."""
        entries = self._lists.get(key)
        if entries is None:
            return ()
        done: list[DelayedOperation] = []
        kept: list[tuple[DelayedOperation, int]] = []
        for entry in entries:
            operation, index = entry
            if operation.completed:
                self._dead -= 1
            elif operation.check(index, row, absent):
                operation.completed = True
                self._wheel.cancel(operation)
                self.waiting -= 1
                # Its entry here goes now; those under its other keys are dead from here on.
                self._dead += operation.size - 1
                done.append(operation)
            else:
                kept.append(entry)
        if kept:
            self._lists[key] = kept
        else:
            del self._lists[key]
        if self._dead > PURGE_BOUND:
            self._maybe_purge()
        return done

    def force_complete(self, operation: DelayedOperation) -> None:
        """The caller is gone, or everything ends."""
        operation.completed = True
        self._wheel.cancel(operation)
        self._leave(operation)

    def expire(self, operation: DelayedOperation) -> None:
        """Its deadline passed: the wheel has already let go of it."""
        operation.completed = operation.expired = True
        self.expirations += 1
        self._leave(operation)

    def operations(self) -> list[DelayedOperation]:
        """All that wait, each once, oldest first under each key."""
        alive: dict[DelayedOperation, None] = {}
        for entries in self._lists.values():
            for operation, _ in entries:
                if not operation.completed:
                    alive[operation] = None
        return list(alive)

    def watched(self) -> int:
        """Entries in the watch lists, dead ones too."""
        return sum(map(len, self._lists.values()))

    def _leave(self, operation: DelayedOperation) -> None:
        self.waiting -= 1
        self._dead += operation.size
        if self._dead > PURGE_BOUND:
            self._maybe_purge()

    def _maybe_purge(self) -> None:
        # In proportion to what lives, so that the walk costs O(1) for each dead entry.
        if self._dead < self.waiting:
            return
        self._lists = {
            key: alive
            for key, entries in self._lists.items()
            if (alive := [entry for entry in entries if not entry[0].completed])
        }
        self._dead = 0
