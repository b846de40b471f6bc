"""A partition's follower: what an answer of the leader means for the follower's log.

A core without I/O: it decides from the answer and from what the log knows of itself. The
shell carries the decision out and names the partition again in the next pull.

Invariant: nothing is appended unless the leader agrees with all that stands before it (a
pull carries the last epoch in the follower's log, and the leader answers a difference with
where to cut). The follower's high watermark passes neither its log end nor the leader's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias

from mobula.actors.replica.messages import PullAnswer
from mobula.protocol.errors import ErrorCode

UNKNOWN_EPOCH = -1


class LogView(Protocol):
    """What the decision needs to know of the follower's log."""

    @property
    def log_end_offset(self) -> int: ...

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """(largest epoch not above `epoch`, where it ends); (-1, -1) when unknown."""


@dataclass(frozen=True, slots=True)
class Copy:
    """Append the answer's ranges (there may be none), then take over its offsets."""


@dataclass(frozen=True, slots=True)
class Truncate:
    """Cut the log here: beyond it the leader has something else."""

    offset: int


@dataclass(frozen=True, slots=True)
class StartAt:
    """Drop the whole log and begin here: the leader has nothing older any more."""

    offset: int


@dataclass(frozen=True, slots=True)
class Rest:
    """Ask again after a pause: the leader does not know its role yet, or cannot answer."""

    reason: str


@dataclass(frozen=True, slots=True)
class AwaitMetadata:
    """The leader is of a newer epoch; asking again in this one is useless."""


@dataclass(frozen=True, slots=True)
class Ignore:
    """The answer belongs to an epoch that is over."""


Decision: TypeAlias = Copy | Truncate | StartAt | Rest | AwaitMetadata | Ignore

COPY = Copy()
IGNORE = Ignore()
AWAIT_METADATA = AwaitMetadata()


class PartitionFollower:
    """Follows one leader in one epoch. A new epoch is a new object."""

    __slots__ = ("leader_epoch", "leader_id")

    def __init__(self, leader_id: int, leader_epoch: int) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch

    def decide(self, answer: PullAnswer, log: LogView) -> Decision:
        error = answer.error_code
        if error == 0:
            if answer.leader_epoch != self.leader_epoch:
                return IGNORE
            if answer.diverging_end_offset >= 0:
                return self._diverged(answer, log)
            return COPY
        if error == ErrorCode.fenced_leader_epoch:
            return AWAIT_METADATA if answer.leader_epoch > self.leader_epoch else IGNORE
        if error == ErrorCode.offset_out_of_range:
            return self._out_of_range(answer, log)
        return Rest(ErrorCode(error).name)

    def _diverged(self, answer: PullAnswer, log: LogView) -> Decision:
        """Cut to the end of the largest epoch that both may share; the next pull, with the
        epoch that is last then, finds out whether that was enough."""
        end = log.log_end_offset
        epoch, epoch_end = log.end_offset_for_epoch(answer.diverging_epoch)
        if UNKNOWN_EPOCH in (answer.diverging_epoch, epoch):
            return Truncate(min(answer.diverging_end_offset, end))
        if epoch != answer.diverging_epoch:
            return Truncate(min(epoch_end, end))
        return Truncate(min(epoch_end, answer.diverging_end_offset, end))

    def _out_of_range(self, answer: PullAnswer, log: LogView) -> Decision:
        """`next_offset` of such an answer is the leader's log end."""
        if answer.leader_epoch != self.leader_epoch:
            return IGNORE
        end = log.log_end_offset
        if answer.next_offset < end:
            return Truncate(answer.next_offset)
        if answer.log_start_offset > end:
            return StartAt(answer.log_start_offset)
        return Rest("offset_out_of_range")


def follower_high_watermark(current: int, leader_high_watermark: int, log_end_offset: int) -> int:
    """What the follower may call committed: it does not go back while the log is not cut."""
    offset = leader_high_watermark if leader_high_watermark < log_end_offset else log_end_offset
    return offset if offset > current else current
