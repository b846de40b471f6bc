"""Delayed DeleteRecords: waits until every replica's log starts late enough.

Invariant: a partition once settled keeps its code and low watermark; on expiry only the
partitions still pending say REQUEST_TIMED_OUT.
"""

from __future__ import annotations

from mobula.actors.link.interface import Reply
from mobula.actors.purgatory.delayed_operation import DelayedOperation, Key
from mobula.actors.purgatory.messages import DeleteDone, DeletePart
from mobula.actors.rows import Role, Row
from mobula.protocol.errors import ErrorCode

_NONE = int(ErrorCode.none)
_TIMED_OUT = int(ErrorCode.request_timed_out)
_NOT_LEADER = int(ErrorCode.not_leader_or_follower)
_STORAGE = int(ErrorCode.kafka_storage_error)
UNKNOWN_LOW_WATERMARK = -1


def delete_code(part: DeletePart, row: Row | None, absent: int) -> int | None:
    """The partition's final code, or None while it must wait."""
    if row is None:
        return absent
    if row.role != Role.LEADER:
        return _STORAGE if row.role == Role.OFFLINE else _NOT_LEADER
    return _NONE if row.low_watermark >= part.low_watermark else None


class DelayedDeleteRecords(DelayedOperation):
    __slots__ = ("_codes", "_low_watermarks", "_parts")

    def __init__(self, parts: list[DeletePart], deadline_ms: int, reply: Reply) -> None:
        super().__init__(len(parts), deadline_ms, reply)
        self._parts = parts
        self._codes: list[int | None] = [None] * len(parts)
        self._low_watermarks = [UNKNOWN_LOW_WATERMARK] * len(parts)

    def keys(self) -> list[Key]:
        return [(part.topic_id, part.partition) for part in self._parts]

    def check(self, index: int, row: Row | None, absent: int) -> bool:
        if self._codes[index] is None:
            code = delete_code(self._parts[index], row, absent)
            self._codes[index] = code
            if code == _NONE and row is not None:
                self._low_watermarks[index] = row.low_watermark
        return None not in self._codes

    def outcome(self) -> DeleteDone:
        ended = _TIMED_OUT if self.expired else _NOT_LEADER
        codes = [ended if code is None else code for code in self._codes]
        return DeleteDone(codes, self._low_watermarks)
