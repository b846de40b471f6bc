"""What one turn of the loop gathers and ends with.

Everything that arrives in a turn (appends, pulls, answers of leaders, metadata) changes
partitions at once and is finished together, in this order: write what is staged, publish
rows, answer parked pulls, answer the appends, tell those whose appends wait for a high
watermark that it moved, tell the purgatory. So an answer never says what is not in the file and
in the row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from mobula.actors.end_of_turn import Scheduler
from mobula.actors.link.interface import Link, Reply
from mobula.actors.purgatory.messages import (
    PARTITIONS_CHANGED,
    Cause,
    Change,
    PartitionsChanged,
)
from mobula.actors.replica.messages import Appended, PartitionAppended
from mobula.actors.replica.partition import Partition
from mobula.actors.replica.pull_session import PullSessions
from mobula.actors.rows import RowsWriter
from mobula.protocol.errors import ErrorCode
from mobula.storage.log import StagedAppend, StorageError

_APPEND = int(Cause.APPEND)
_APPEND_AND_HIGH_WATERMARK = int(Cause.APPEND | Cause.HIGH_WATERMARK)
_TOLD = ~_APPEND
"""Nobody can act on an append that moved no high watermark: it is told with what does."""
_STORAGE_ERROR = int(ErrorCode.kafka_storage_error)

Part = PartitionAppended | tuple[Partition, StagedAppend]


class Turn:
    def __init__(
        self,
        *,
        name: str,
        scheduler: Scheduler,
        now_ms: Callable[[], int],
        rows: RowsWriter,
        sessions: PullSessions[Partition],
        link: Callable[[str], Link],
        purgatory: str,
        on_failed: Callable[[Partition, StorageError], None],
    ) -> None:
        self._name = name
        self._scheduler = scheduler
        self._now_ms = now_ms
        self._rows = rows
        self._sessions = sessions
        self._link = link
        self._purgatory = link(purgatory)
        self._on_failed = on_failed
        self._scheduled = False
        self._staged: dict[Partition, None] = {}
        self._changed: dict[Partition, None] = {}
        self._gone: list[Change] = []
        self._appends: list[tuple[Reply, int, list[Part]]] = []
        self._awaited: dict[str, list[Change]] = {}
        """What to tell each actor that waits for a high watermark."""

    def schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._scheduler.call_soon(self.finish)

    def appended(self, reply: Reply, acks: int, parts: list[Part]) -> None:
        """Answer these parts at the end of the turn."""
        self._appends.append((reply, acks, parts))
        if not self._scheduled:
            self._scheduled = True
            self._scheduler.call_soon(self.finish)

    def staged(self, partition: Partition) -> None:
        self._staged[partition] = None

    def changed(self, partition: Partition, causes: int) -> None:
        """Publish the partition's row, and tell the purgatory why."""
        partition.causes |= causes
        self._changed[partition] = None
        if not self._scheduled:
            self._scheduled = True
            self._scheduler.call_soon(self.finish)

    def gone(self, partition: Partition) -> None:
        """The partition is not here any more; its row is released."""
        self._staged.pop(partition, None)
        self._changed.pop(partition, None)
        change = Change(partition.key[0], partition.key[1], int(Cause.DELETED))
        self._gone.append(change)
        self._tell_awaiting(partition, change)
        self.schedule()

    def finish(self) -> None:
        """End the turn now; also before roles change, so that nothing staged outlives one."""
        self._scheduled = False
        now_ms = self._now_ms()
        if self._staged:
            self._write(now_ms)
        changes = self._publish()
        # First: on what followers do next everybody else waits.
        self._sessions.answer_touched(now_ms)
        if self._appends:
            appends, self._appends = self._appends, []
            for reply, acks, parts in appends:
                answers = [_appended(part, acks) for part in parts]
                reply(Appended(answers))
                if acks == -1:
                    _await(reply.caller, parts, answers)
        if self._awaited:
            awaited, self._awaited = self._awaited, {}
            for caller, moved in awaited.items():
                self._link(caller).notify(PARTITIONS_CHANGED, PartitionsChanged(self._name, moved))
        if changes:
            self._purgatory.notify(PARTITIONS_CHANGED, PartitionsChanged(self._name, changes))

    def _write(self, now_ms: int) -> None:
        staged, self._staged = self._staged, {}
        for partition in staged:
            try:
                partition.log.flush_staged()
            except StorageError as error:
                self._on_failed(partition, error)
            leader = partition.leader
            if leader is None or partition.log.log_end.offset == leader.log_end_offset:
                continue
            try:
                moved = partition.flushed(now_ms)
            except StorageError as error:
                # Where the high watermark lies could not be read; a later turn finds it.
                moved = False
                self._on_failed(partition, error)
            partition.causes |= _APPEND_AND_HIGH_WATERMARK if moved else _APPEND
            self._changed[partition] = None
            self._sessions.appended(partition)
            if moved:
                self._sessions.high_watermark_moved(partition)

    def _publish(self) -> list[Change]:
        changes, self._gone = self._gone, []
        changed, self._changed = self._changed, {}
        publish = self._rows.publish
        for partition in changed:
            publish(partition.slot, partition.row())
            causes = partition.causes
            if causes & _TOLD:
                partition.causes = 0
                change = Change(partition.key[0], partition.key[1], causes)
                changes.append(change)
                if partition.awaiting:
                    self._tell_awaiting(partition, change)
        return changes

    def _tell_awaiting(self, partition: Partition, change: Change) -> None:
        """Who still waits after this is told again; who leads no more has nothing to wait for."""
        reached = partition.high_watermark.offset
        for caller, required in list(partition.awaiting.items()):
            self._awaited.setdefault(caller, []).append(change)
            if required <= reached or partition.leader is None:
                del partition.awaiting[caller]


def _await(caller: str, parts: list[Part], answers: list[PartitionAppended]) -> None:
    for part, answer in zip(parts, answers, strict=True):
        if answer.required_offset >= 0:
            partition, _ = cast("tuple[Partition, StagedAppend]", part)
            partition.awaiting[caller] = answer.required_offset


def _appended(part: Part, acks: int) -> PartitionAppended:
    if type(part) is not tuple:
        return part  # type: ignore[return-value]
    partition, staged = part
    if partition.offline or staged.last_offset >= partition.log.log_end.offset:
        return PartitionAppended(_STORAGE_ERROR)
    required = staged.last_offset + 1
    if acks != -1 or partition.high_watermark.offset >= required:
        required = -1
    return PartitionAppended(
        0,
        staged.base_offset,
        staged.log_append_time_ms,
        partition.log.log_start_offset,
        required,
        partition.leader_epoch,
    )
