"""A partition's leader: who follows, who is in sync, what is committed.

A core without I/O. It learns of its own log's end, of its followers' pulls and of what the
controller decided, and says when the high watermark moved and which ISR to ask for.

Invariants: the high watermark never goes back, and every member of the ISR that the
controller may believe in (the committed one and the one asked for) has all below it. The
ISR changes by the controller's word alone; one change is asked for at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto

from mobula.protocol.errors import ErrorCode

UNKNOWN_OFFSET = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposeIsr:
    """Effect: ask the controller for this ISR."""

    leader_epoch: int
    partition_epoch: int
    new_isr: tuple[int, ...]
    broker_epochs: tuple[int, ...]
    """Of each member, as its pulls said; -1 for the leader itself."""


class IsrAnswer(Enum):
    """What an answer to a proposal means for it."""

    SETTLED = auto()
    """The ISR is known again; another change may be asked for."""
    AWAIT_METADATA = auto()
    """It may or may not hold; the next metadata record says."""
    RETRY = auto()
    """It was not carried out: ask again."""


@dataclass(frozen=True, slots=True)
class Leadership:
    """What the metadata says about a partition that this broker leads."""

    leader_epoch: int
    partition_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class Progress:
    """One follower, as its pulls describe it."""

    __slots__ = (
        "broker_epoch",
        "broker_id",
        "last_caught_up_ms",
        "last_pull_end_offset",
        "last_pull_ms",
        "log_end_offset",
        "log_start_offset",
        "refused",
    )

    def __init__(self, broker_id: int, last_caught_up_ms: int) -> None:
        self.broker_id = broker_id
        self.broker_epoch = -1
        self.log_end_offset = UNKNOWN_OFFSET
        self.log_start_offset = UNKNOWN_OFFSET
        self.last_caught_up_ms = last_caught_up_ms
        self.last_pull_ms = 0
        self.last_pull_end_offset = UNKNOWN_OFFSET
        """The leader's log end when the follower last pulled."""
        self.refused = False
        """The controller would not have it in the ISR, and it has not pulled since."""

    def forget(self) -> None:
        """What its pulls said is void: only new ones can bring it into the ISR."""
        self.broker_epoch = -1
        self.log_end_offset = UNKNOWN_OFFSET
        self.last_pull_end_offset = UNKNOWN_OFFSET


_NEVER_MS = -(1 << 62)

_NOT_CARRIED_OUT = frozenset({ErrorCode.operation_not_attempted, ErrorCode.ineligible_replica})
_OUT_OF_DATE = frozenset(
    {
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.unknown_topic_id,
        ErrorCode.fenced_leader_epoch,
        ErrorCode.invalid_update_version,
        ErrorCode.invalid_request,
        ErrorCode.new_leader_elected,
    }
)


class PartitionLeader:
    __slots__ = (
        "_broker_id",
        "_followers",
        "_lag_time_max_ms",
        "_live",
        "_maximal_isr",
        "_min_insync_replicas",
        "_pending",
        "epoch_start_offset",
        "high_watermark",
        "isr",
        "leader_epoch",
        "log_end_offset",
        "log_start_offset",
        "min_in_sync_replicas",
        "partition_epoch",
        "replicas",
    )

    def __init__(
        self,
        *,
        broker_id: int,
        leadership: Leadership,
        log_start_offset: int,
        log_end_offset: int,
        high_watermark: int,
        min_insync_replicas: int,
        lag_time_max_ms: int,
        live_brokers: Mapping[int, int],
        now_ms: int,
    ) -> None:
        """`live_brokers`: broker epochs of those that are neither fenced nor leaving; kept
        up to date by its owner."""
        self._broker_id = broker_id
        self._lag_time_max_ms = lag_time_max_ms
        self._live = live_brokers
        self._min_insync_replicas = min_insync_replicas
        self._pending: ProposeIsr | None = None
        self.leader_epoch = leadership.leader_epoch
        self.partition_epoch = leadership.partition_epoch
        self.replicas = leadership.replicas
        self.min_in_sync_replicas = min(min_insync_replicas, len(self.replicas))
        """min.insync.replicas, at most the number of replicas."""
        self.isr = frozenset(leadership.isr)
        self._maximal_isr = self.isr
        self.epoch_start_offset = log_end_offset
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset
        self.high_watermark = high_watermark
        self._followers = {
            member: Progress(member, now_ms if member in self.isr else _NEVER_MS)
            for member in leadership.replicas
            if member != broker_id
        }
        self._advance(now_ms)

    @property
    def pending(self) -> ProposeIsr | None:
        """The change that was asked for and is not settled."""
        return self._pending

    @property
    def in_sync_replicas(self) -> int:
        """The size of the ISR that the high watermark waits for."""
        return len(self._maximal_isr)

    @property
    def low_watermark(self) -> int:
        """The smallest log start offset of all live replicas."""
        lowest = self.log_start_offset
        for follower in self._followers.values():
            if follower.log_start_offset < lowest and follower.broker_id in self._live:
                lowest = follower.log_start_offset
        return lowest

    def follower(self, broker_id: int) -> Progress | None:
        return self._followers.get(broker_id)

    def enough_in_sync(self) -> bool:
        """Whether acks=-1 may be promised: asked before any byte is written."""
        return len(self.isr) >= self.min_in_sync_replicas

    def set_min_insync_replicas(self, value: int, now_ms: int) -> bool:
        """True when the high watermark moved."""
        self._min_insync_replicas = value
        self.min_in_sync_replicas = min(value, len(self.replicas))
        return self._advance(now_ms)

    def log_end_moved(self, log_end_offset: int, now_ms: int) -> bool:
        """The leader appended. True when the high watermark moved."""
        before = self.log_end_offset
        for follower in self._followers.values():
            # It has been caught up until now, though an idle follower does not say so again.
            if follower.log_end_offset == before:
                follower.last_caught_up_ms = now_ms
        self.log_end_offset = log_end_offset
        return self._advance(now_ms)

    def follower_pulled(
        self,
        broker_id: int,
        broker_epoch: int,
        fetch_offset: int,
        log_start_offset: int,
        now_ms: int,
    ) -> bool:
        """A pull said that the follower has everything below `fetch_offset`, and agrees with
        this log there. True when the high watermark moved."""
        follower = self._followers[broker_id]
        if fetch_offset >= self.log_end_offset:
            follower.last_caught_up_ms = max(follower.last_caught_up_ms, now_ms)
        elif fetch_offset >= follower.last_pull_end_offset >= 0:
            follower.last_caught_up_ms = max(follower.last_caught_up_ms, follower.last_pull_ms)
        follower.broker_epoch = broker_epoch
        follower.log_end_offset = fetch_offset
        follower.log_start_offset = log_start_offset
        follower.last_pull_ms = now_ms
        follower.last_pull_end_offset = self.log_end_offset
        follower.refused = False
        return self._advance(now_ms)

    def broker_registered(self, broker_id: int, broker_epoch: int) -> None:
        """A follower's broker began a new life: what its pulls said before is void."""
        follower = self._followers.get(broker_id)
        if follower is not None and follower.broker_epoch not in (-1, broker_epoch):
            follower.forget()

    def unheard(self) -> list[int]:
        """Followers of which it is not known where they stand."""
        return [
            follower.broker_id
            for follower in self._followers.values()
            if follower.log_end_offset == UNKNOWN_OFFSET
        ]

    def maybe_expand(self) -> ProposeIsr | None:
        """Ask for every follower that is in sync and not in the ISR."""
        if self._pending is not None or len(self.isr) == len(self.replicas):
            return None
        joining = [
            follower.broker_id
            for follower in self._followers.values()
            if follower.broker_id not in self.isr and self._in_sync(follower)
        ]
        return self._propose(self.isr.union(joining)) if joining else None

    def any_refused(self) -> bool:
        return any(follower.refused for follower in self._followers.values())

    def try_refused_again(self) -> None:
        """What made the controller refuse a follower may be over."""
        for follower in self._followers.values():
            follower.refused = False

    def maybe_shrink(self, now_ms: int) -> ProposeIsr | None:
        """Ask for an ISR without those that have not caught up for too long."""
        if self._pending is not None or len(self.isr) == 1:
            return None
        lagging = [
            follower.broker_id
            for follower in self._followers.values()
            if follower.broker_id in self.isr and not self._caught_up(follower, now_ms)
        ]
        return self._propose(self.isr.difference(lagging)) if lagging else None

    def isr_answered(
        self,
        proposal: ProposeIsr,
        error: ErrorCode,
        *,
        isr: Iterable[int] = (),
        leader_epoch: int = -1,
        partition_epoch: int = -1,
    ) -> IsrAnswer:
        """The controller's answer to a proposal, perhaps one that is no longer pending."""
        if proposal is not self._pending:
            return IsrAnswer.SETTLED
        if error in _NOT_CARRIED_OUT:
            for member in proposal.new_isr:
                if member not in self.isr:
                    self._followers[member].refused = True
            self._commit(self.isr, self.partition_epoch)
            return IsrAnswer.SETTLED
        if error in _OUT_OF_DATE:
            return IsrAnswer.AWAIT_METADATA
        if error != ErrorCode.none:
            return IsrAnswer.RETRY
        if leader_epoch != self.leader_epoch or partition_epoch < self.partition_epoch:
            return IsrAnswer.AWAIT_METADATA
        self._commit(frozenset(isr), partition_epoch)
        return IsrAnswer.SETTLED

    def settled(self, now_ms: int) -> bool:
        """After the ISR changed: True when the high watermark moved."""
        return self._advance(now_ms)

    def metadata(self, leadership: Leadership, now_ms: int) -> bool:
        """A record of the same leader epoch. True when it said something new.

        One with the partition epoch that is known already settles nothing: a change that was
        asked for with that epoch may still be carried out.
        """
        if leadership.partition_epoch <= self.partition_epoch:
            return False
        asked_for = (
            self.isr if self._pending is None else self.isr.intersection(self._pending.new_isr)
        )
        for member in asked_for.difference(leadership.isr):
            # The controller took it out: its broker or its actor died.
            if member in self._followers:
                self._followers[member].forget()
        self.replicas = leadership.replicas
        self.min_in_sync_replicas = min(self._min_insync_replicas, len(self.replicas))
        followers = [member for member in leadership.replicas if member != self._broker_id]
        self._followers = {
            member: self._followers.get(member)
            or Progress(member, now_ms if member in leadership.isr else _NEVER_MS)
            for member in followers
        }
        self._commit(frozenset(leadership.isr), leadership.partition_epoch)
        return True

    def _commit(self, isr: frozenset[int], partition_epoch: int) -> None:
        self.isr = isr
        self.partition_epoch = partition_epoch
        self._pending = None
        self._maximal_isr = isr

    def _propose(self, isr: frozenset[int]) -> ProposeIsr:
        members = tuple(sorted(isr))
        self._pending = ProposeIsr(
            leader_epoch=self.leader_epoch,
            partition_epoch=self.partition_epoch,
            new_isr=members,
            broker_epochs=tuple(
                self._followers[member].broker_epoch if member in self._followers else -1
                for member in members
            ),
        )
        self._maximal_isr = self.isr | isr
        return self._pending

    def _advance(self, now_ms: int) -> bool:
        if len(self.isr) < self.min_in_sync_replicas:
            # What too few replicas hold is not shown as committed.
            return False
        lowest = self.log_end_offset
        for follower in self._followers.values():
            if follower.log_end_offset < lowest and (
                follower.broker_id in self._maximal_isr
                # Else a follower that is about to join would chase the log end for ever.
                or (self._caught_up(follower, now_ms) and self._eligible(follower))
            ):
                lowest = follower.log_end_offset
        if lowest <= self.high_watermark:
            return False
        self.high_watermark = lowest
        return True

    def _caught_up(self, follower: Progress, now_ms: int) -> bool:
        return (
            follower.log_end_offset == self.log_end_offset
            or now_ms - follower.last_caught_up_ms <= self._lag_time_max_ms
        )

    def _in_sync(self, follower: Progress) -> bool:
        # Also up to where this epoch began: what lies between the high watermark and there
        # may be committed without this leader knowing it yet.
        return (
            follower.log_end_offset >= self.high_watermark
            and follower.log_end_offset >= self.epoch_start_offset
            and self._eligible(follower)
        )

    def _eligible(self, follower: Progress) -> bool:
        """It lives, and its pulls came from this life of it."""
        return not follower.refused and self._live.get(follower.broker_id) == follower.broker_epoch
