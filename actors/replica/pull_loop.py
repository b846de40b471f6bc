"""The follower's side of pulls: one loop per (this actor, leader actor).

The loop keeps one pull with the leader, which parks it; each answer is applied and the next
pull says what became of it. Only partitions that moved are named. A partition that joins
while a pull is parked is named in a second one, which the leader takes as the end of the
first.

Invariants: the leader's session and this loop agree on what was named, or the loop opens a
new session and names everything. A partition that fails rests by itself; the others go on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from typing import Generic, Protocol, TypeVar

from mobula.actors.end_of_turn import Scheduler, Timer
from mobula.actors.link.interface import Link, LinkError
from mobula.actors.replica.messages import PULL, Pull, PullAnswer, Pulled, PulledPartition
from mobula.actors.replica.pull_session import Key

log = logging.getLogger(__name__)

_FIRST_REST_MS = 10
_LONGEST_REST_MS = 1_000
_GRACE_MS = 10_000
"""Beyond the time that the leader may park a pull: then it is taken for stuck."""


class Outcome(Enum):
    """What became of one partition's answer."""

    QUIET = auto()
    """Nothing that the leader must hear of."""
    MOVED = auto()
    """Name it in the next pull."""
    REST = auto()
    """Name it after a pause."""
    GONE = auto()
    """It waits for metadata, or its log failed: forget it."""


class Target(Protocol):
    """A partition as the loop sees it."""

    key: Key

    def position(self) -> PulledPartition: ...


TargetT = TypeVar("TargetT", bound=Target)


@dataclass(frozen=True, slots=True, kw_only=True)
class PullSettings:
    broker_id: int
    max_bytes: int
    max_wait_ms: int


class PullLoop(Generic[TargetT]):
    def __init__(
        self,
        *,
        link: Link,
        scheduler: Scheduler,
        now_ms: Callable[[], int],
        settings: PullSettings,
        broker_epoch: Callable[[], int],
        apply: Callable[[TargetT, PullAnswer, memoryview], Outcome],
        wants_bytes: bool,
    ) -> None:
        self.wants_bytes = wants_bytes
        self._link = link
        self._scheduler = scheduler
        self._now_ms = now_ms
        self._settings = settings
        self._broker_epoch = broker_epoch
        self._apply = apply
        self._session_id = 0
        self._sequence = 0
        self._partitions: dict[Key, TargetT] = {}
        self._to_name: dict[Key, None] = {}
        self._to_remove: dict[Key, None] = {}
        self._calls = 0
        self._in_flight: dict[int, int] = {}
        """Handles of calls, by their number here."""
        self._rests: dict[Key, int] = {}
        """How often in a row each partition has rested."""
        self._resting: dict[Key, int] = {}
        """Until when."""
        self._rest_timer: Timer | None = None
        self._failures = 0
        self._backoff: Timer | None = None
        self._sending = False
        self._closed = False
        link.on_state(self._link_changed)

    def __len__(self) -> int:
        return len(self._partitions)

    @property
    def leader(self) -> str:
        return self._link.target

    def add(self, partition: TargetT) -> None:
        """Pull it from now on; also for a partition that is here already, in a new epoch."""
        key = partition.key
        self._partitions[key] = partition
        self._to_remove.pop(key, None)
        self._resting.pop(key, None)
        self._rests.pop(key, None)
        self._name(key)

    def remove(self, key: Key) -> None:
        if not self._forget(key):
            return
        if not self._partitions:
            self._open_anew()
            return
        self._to_remove[key] = None
        self._send_soon()

    def name_again(self, key: Key) -> None:
        """Its position changed by itself (retention moved the log start offset)."""
        if key in self._partitions and key not in self._resting:
            self._to_name[key] = None

    def name_all_again(self) -> None:
        """What every pull says of this broker has changed: its epoch."""
        for key in self._partitions:
            self.name_again(key)
        self._send_soon()

    def close(self) -> None:
        self._closed = True
        self._open_anew()
        for timer in (self._backoff, self._rest_timer):
            if timer is not None:
                timer.cancel()
        self._backoff = self._rest_timer = None
        self._partitions.clear()
        self._to_name.clear()

    def _name(self, key: Key) -> None:
        self._to_name[key] = None
        self._send_soon()

    def _forget(self, key: Key) -> bool:
        self._to_name.pop(key, None)
        self._resting.pop(key, None)
        self._rests.pop(key, None)
        return self._partitions.pop(key, None) is not None

    def _send_soon(self) -> None:
        if not self._sending:
            self._sending = True
            self._scheduler.call_soon(self._send_scheduled)

    def _send_scheduled(self) -> None:
        self._sending = False
        if self._to_name or self._to_remove or not self._in_flight:
            self._send()

    def _send(self) -> None:
        if self._closed or self._backoff is not None or not self._partitions:
            return
        if self._session_id == 0 and self._in_flight:
            # The session that is being opened has no number yet; its answer comes at once.
            return
        partitions = self._partitions
        changed = [partitions[key].position() for key in self._to_name]
        self._to_name.clear()
        removed = list(self._to_remove) if self._session_id else []
        self._to_remove.clear()
        settings = self._settings
        pull = Pull(
            settings.broker_id,
            self._broker_epoch(),
            self._session_id,
            self._sequence,
            self.wants_bytes,
            settings.max_bytes,
            settings.max_wait_ms,
            changed,
            removed,
        )
        self._sequence += 1
        number = self._calls = self._calls + 1
        self._in_flight[number] = self._link.call(
            PULL,
            pull,
            partial(self._answered, number),
            self._failed,
            timeout_ms=settings.max_wait_ms + _GRACE_MS,
        )

    def _answered(self, number: int, pulled: Pulled, bulk: memoryview) -> None:
        del self._in_flight[number]
        self._failures = 0
        if pulled.session_id == 0:
            self._open_anew()
            self._send_soon()
            return
        self._session_id = pulled.session_id
        at = 0
        for answer in pulled.answers:
            end = at + sum(each.length for each in answer.ranges) if len(bulk) else at
            key = (answer.topic_id, answer.partition)
            target = self._partitions.get(key)
            if target is not None:
                self._settle(key, self._applied(target, answer, bulk[at:end]))
            at = end
        if self._to_name or self._to_remove or not self._in_flight:
            self._send()

    def _applied(self, target: TargetT, answer: PullAnswer, data: memoryview) -> Outcome:
        try:
            return self._apply(target, answer, data)
        except Exception:
            # A bug with one partition; the others of this answer must not pay for it.
            log.exception("pulled data could not be applied leader=%s", self.leader)
            return Outcome.REST

    def _settle(self, key: Key, outcome: Outcome) -> None:
        if outcome is Outcome.REST:
            self._rest(key)
            return
        if self._rests:
            self._rests.pop(key, None)
        if outcome is Outcome.MOVED:
            # Named now, so not after its rest: by then an answer may be on its way.
            self._resting.pop(key, None)
            self._to_name[key] = None
        elif outcome is Outcome.GONE and self._forget(key):
            self._to_remove[key] = None

    def _rest(self, key: Key) -> None:
        times = self._rests.get(key, 0)
        self._rests[key] = times + 1
        rest_ms = min(_FIRST_REST_MS << min(times, 20), _LONGEST_REST_MS)
        self._resting[key] = self._now_ms() + rest_ms
        if self._rest_timer is None:
            self._rest_timer = self._scheduler.call_later(rest_ms / 1000, self._rested)

    def _rested(self) -> None:
        self._rest_timer = None
        now_ms = self._now_ms()
        for key in [key for key, until_ms in self._resting.items() if until_ms <= now_ms]:
            del self._resting[key]
            self._name(key)
        if self._resting:
            wait_ms = min(self._resting.values()) - now_ms
            self._rest_timer = self._scheduler.call_later(wait_ms / 1000, self._rested)

    def _failed(self, error: LinkError) -> None:
        level = logging.INFO if self._failures == 0 else logging.DEBUG
        log.log(level, "pull failed leader=%s reason=%s", self.leader, error.reason)
        self._open_anew()
        backoff_ms = min(_FIRST_REST_MS << min(self._failures, 20), _LONGEST_REST_MS)
        self._failures += 1
        if self._backoff is None and not self._closed:
            self._backoff = self._scheduler.call_later(backoff_ms / 1000, self._try_again)

    def _try_again(self) -> None:
        self._backoff = None
        self._send_soon()

    def _link_changed(self, up: bool) -> None:
        if up and self._backoff is not None:
            self._backoff.cancel()
            self._try_again()

    def _open_anew(self) -> None:
        for handle in self._in_flight.values():
            self._link.cancel(handle)
        self._in_flight.clear()
        self._session_id = 0
        self._sequence = 0
        self._to_remove.clear()
        self._to_name = dict.fromkeys(key for key in self._partitions if key not in self._resting)
