"""Appends of coordinators that wait until the high watermark has passed them.

A replica actor tells the actors whose appends wait when a high watermark moves; a look
round now and then finds what nobody tells: leadership that is lost, time that is over.

Invariant: `done` runs once for each, and in order within a partition.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from mobula.actors.coordinator.place import Place
from mobula.actors.end_of_turn import Scheduler
from mobula.actors.link.interface import Reply
from mobula.actors.purgatory.messages import PartitionsChanged
from mobula.protocol.errors import ErrorCode, KafkaError

Done = Callable[[KafkaError | None], None]
Key = tuple[bytes, int]

_ROUND_MS = 100


class _Wait(NamedTuple):
    place: Place
    required_offset: int
    deadline_ms: int
    done: Done


class Commits:
    def __init__(
        self, scheduler: Scheduler, now_ms: Callable[[], int], timeout_ms: Callable[[], int]
    ) -> None:
        """`now_ms` is monotonic."""
        self._scheduler = scheduler
        self._now_ms = now_ms
        self._timeout_ms = timeout_ms
        self._waiting: dict[Key, deque[_Wait]] = {}
        self._armed = False

    def wait(self, place: Place, required_offset: int, done: Done) -> None:
        """Until the partition's high watermark is there; an error when it will not be."""
        key = (place.topic_id, place.partition)
        queue = self._waiting.setdefault(key, deque())
        deadline_ms = self._now_ms() + self._timeout_ms()
        queue.append(_Wait(place, required_offset, deadline_ms, done))
        self._look(key)
        if self._waiting and not self._armed:
            self._arm()

    def changed(self, message: PartitionsChanged, _bulk: memoryview, _reply: Reply) -> None:
        """Rows were published anew."""
        for change in message.changes:
            key = (change.topic_id, change.partition)
            if key in self._waiting:
                self._look(key)

    def _look(self, key: Key) -> None:
        queue = self._waiting[key]
        while queue:
            wait = queue[0]
            row = wait.place.row()
            error: KafkaError | None = None
            if row is None:
                error = KafkaError(ErrorCode.not_leader_or_follower)
            elif row.high_watermark < wait.required_offset:
                if self._now_ms() < wait.deadline_ms:
                    return
                error = KafkaError(ErrorCode.request_timed_out)
            queue.popleft()
            wait.done(error)
        if self._waiting.get(key) is queue:
            del self._waiting[key]

    def _arm(self) -> None:
        self._armed = True
        self._scheduler.call_later(_ROUND_MS / 1000, self._look_round)

    def _look_round(self) -> None:
        self._armed = False
        for key in list(self._waiting):
            if key in self._waiting:
                self._look(key)
        if self._waiting:
            self._arm()
