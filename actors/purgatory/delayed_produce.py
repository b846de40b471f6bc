"""Delayed produce: an acks=all produce that waits until enough replicas have it.

Each partition is settled by one of the cases of the reference: A the replica is not
here any more, B it does not lead any more, C.1 its log failed, C.2 the high watermark
has reached the required offset. The operation completes when no partition is pending.

Invariant: a partition once settled keeps its code; on expiry only the partitions still
pending say REQUEST_TIMED_OUT.
"""

from __future__ import annotations

from mobula.actors.link.interface import Reply
from mobula.actors.purgatory.delayed_operation import DelayedOperation, Key
from mobula.actors.purgatory.messages import ProduceDone, ProducePart
from mobula.actors.rows import Role, Row
from mobula.protocol.errors import ErrorCode

_NONE = int(ErrorCode.none)
_TIMED_OUT = int(ErrorCode.request_timed_out)
_NOT_LEADER = int(ErrorCode.not_leader_or_follower)
_STORAGE = int(ErrorCode.kafka_storage_error)
_NOT_ENOUGH = int(ErrorCode.not_enough_replicas_after_append)
_PENDING = -2
_LEADER = int(Role.LEADER)
_OFFLINE = int(Role.OFFLINE)


def produce_code(part: ProducePart, row: Row | None, absent: int) -> int | None:
    """The partition's final code, or None while it must wait."""
    if row is None:
        return absent
    if row.role != _LEADER:
        return _STORAGE if row.role == _OFFLINE else _NOT_LEADER
    if row.leader_epoch != part.leader_epoch:
        # It led, lost and led again: what was appended may have been truncated between.
        return _NOT_LEADER
    if row.high_watermark < part.required_offset:
        return None
    if row.in_sync_replicas < row.min_in_sync_replicas:
        return _NOT_ENOUGH
    return _NONE


class DelayedProduce(DelayedOperation):
    __slots__ = ("_codes", "_parts", "_pending")

    def __init__(self, parts: list[ProducePart], deadline_ms: int, reply: Reply) -> None:
        super().__init__(len(parts), deadline_ms, reply)
        self._parts = parts
        self._codes = [_PENDING] * len(parts)
        self._pending = len(parts)

    def keys(self) -> list[Key]:
        return [(part.topic_id, part.partition) for part in self._parts]

    def check(self, index: int, row: Row | None, absent: int) -> bool:
        codes = self._codes
        if codes[index] == _PENDING:
            code = produce_code(self._parts[index], row, absent)
            if code is not None:
                codes[index] = code
                self._pending -= 1
        return self._pending == 0

    def outcome(self) -> ProduceDone:
        if self._pending:
            # Not its deadline but the end of this broker's service: let the client retry.
            ended = _TIMED_OUT if self.expired else _NOT_LEADER
            return ProduceDone([ended if code == _PENDING else code for code in self._codes])
        return ProduceDone(self._codes)
