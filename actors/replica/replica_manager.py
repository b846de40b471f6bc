"""The core of a replica actor: its partitions, and what happens to them.

`append`, `pull`, `lead`, `follow` and `stop` change partitions at once; what they say to
others leaves at the end of the turn (see `turn`). Nothing here waits.

Invariants: one bad partition never fails the others. No byte is written for acks=-1 while
too few replicas are in sync. A partition that lost its role owes nobody an answer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mobula.actors.end_of_turn import Scheduler
from mobula.actors.link.interface import Link, Reply
from mobula.actors.purgatory.messages import Cause
from mobula.actors.replica.isr_upkeep import IsrUpkeep
from mobula.actors.replica.leader import Leadership
from mobula.actors.replica.messages import Append, Origin, PartitionAppended, Pull
from mobula.actors.replica.partition import Partition
from mobula.actors.replica.pull_loop import PullSettings
from mobula.actors.replica.pull_loops import Leader, PullLoops
from mobula.actors.replica.pull_session import Key, PullSessions
from mobula.actors.replica.state_reports import StateReports
from mobula.actors.replica.turn import Part, Turn
from mobula.actors.rows import RowsWriter
from mobula.actors.runtime import Clock
from mobula.actors.spec import CONTROLLER_NAME, purgatory_name
from mobula.protocol.errors import ErrorCode, KafkaError
from mobula.storage.batch import HEADER_BYTES, parse_header
from mobula.storage.config import NO_LIMIT, LogConfig
from mobula.storage.errors import RefusedRecordsError
from mobula.storage.log import StorageError

log = logging.getLogger(__name__)

_CLIENT = int(Origin.CLIENT)
# Plain numbers: flags of an enum cost a microsecond each time they are combined.
_HIGH_WATERMARK = int(Cause.HIGH_WATERMARK)
_FOLLOWER = int(Cause.FOLLOWER)
_LEADERSHIP = int(Cause.LEADERSHIP)
_OFFLINE = int(Cause.OFFLINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSettings:
    name: str
    """Local name of the actor."""
    broker_id: int
    incarnation: int
    lag_time_max_ms: int
    partition_max_bytes: int
    pull: PullSettings


class ReplicaManager:
    def __init__(
        self,
        settings: ReplicaSettings,
        *,
        scheduler: Scheduler,
        clock: Clock,
        link: Callable[[str], Link],
        rows: RowsWriter,
    ) -> None:
        self._settings = settings
        self._scheduler = scheduler
        self._now_ms = clock.monotonic_ms
        self._wall_ms = clock.now_ms
        self._rows = rows
        self._partitions: dict[Key, Partition] = {}
        self.broker_epoch = -1
        self.live_brokers: dict[int, int] = {}
        """Epochs of brokers that are neither fenced nor leaving."""
        self.written: dict[Partition, None] = {}
        """Changed since the last checkpoint, whose owner empties this."""
        self.flush_timed: dict[Partition, None] = {}
        """Of topics that set flush.ms."""
        self._sessions: PullSessions[Partition] = PullSessions(
            self._partitions.get,
            on_progress=self._progressed,
            first_session_id=(settings.incarnation & 0xFFFFFFFF) << 20,
            partition_max_bytes=settings.partition_max_bytes,
        )
        self._turn = Turn(
            name=settings.name,
            scheduler=scheduler,
            now_ms=self._now_ms,
            rows=rows,
            sessions=self._sessions,
            link=link,
            purgatory=purgatory_name(settings.broker_id),
            on_failed=self.storage_failed,
        )
        self._loops = PullLoops(
            link=link,
            scheduler=scheduler,
            now_ms=self._now_ms,
            settings=settings.pull,
            broker_epoch=lambda: self.broker_epoch,
            on_changed=self._changed,
            on_failed=self.storage_failed,
        )
        self.isrs = IsrUpkeep(
            partitions=self._partitions,
            live_brokers=self.live_brokers,
            sessions=self._sessions,
            on_changed=self._changed,
            on_failed=self.storage_failed,
            controller=lambda: link(CONTROLLER_NAME),
            scheduler=scheduler,
            broker_id=settings.broker_id,
            broker_epoch=lambda: self.broker_epoch,
            now_ms=self._now_ms,
        )
        self.reports = StateReports(
            controller=lambda: link(CONTROLLER_NAME),
            scheduler=scheduler,
            broker_id=settings.broker_id,
            broker_epoch=lambda: self.broker_epoch,
        )
        self._waking = False

    def __len__(self) -> int:
        return len(self._partitions)

    def __iter__(self) -> Iterator[Partition]:
        return iter(self._partitions.values())

    def registered(self, broker_epoch: int) -> None:
        """The broker registered anew. An idle follower says so too: in its old epoch it would
        be let into no ISR."""
        if broker_epoch != self.broker_epoch:
            self.broker_epoch = broker_epoch
            self._loops.name_all_again()

    def find(self, key: Key) -> Partition | None:
        return self._partitions.get(key)

    def get(self, topic_id: bytes, partition: int) -> Partition:
        found = self._partitions.get((topic_id, partition))
        if found is None:
            raise KafkaError(ErrorCode.unknown_topic_or_partition)
        return found

    # The data path.

    def append(self, append: Append, bulk: memoryview, reply: Reply) -> None:
        """Stage each part; written and answered at the end of the turn."""
        if bulk.readonly:
            # It came by a Ray call, and the headers are rewritten in place.
            bulk = memoryview(bytearray(bulk))
        acks, origin = append.acks, append.origin
        now_ms = self._wall_ms()
        at = 0
        parts: list[Part] = []
        for part in append.parts:
            end = at + part.length
            try:
                parts.append(
                    self._stage((part.topic_id, part.partition), bulk[at:end], acks, origin, now_ms)
                )
            except RefusedRecordsError as error:
                code, named = int(error.code), error.record_errors
                parts.append(PartitionAppended(code, detail=error.detail, record_errors=named))
            except KafkaError as error:
                parts.append(PartitionAppended(int(error.code), detail=error.detail))
            at = end
        self._turn.appended(reply, acks, parts)

    def _stage(self, key: Key, batch: memoryview, acks: int, origin: int, now_ms: int) -> Part:
        partition = self._partitions.get(key)
        if partition is None:
            raise KafkaError(ErrorCode.unknown_topic_or_partition)
        leader = partition.leader
        if leader is None:
            partition.check_leader()
            raise AssertionError("a partition without a leader has none to check")
        if acks == -1 and not leader.enough_in_sync():
            raise KafkaError(
                ErrorCode.not_enough_replicas,
                f"{len(leader.isr)} replicas in sync, min.insync.replicas is "
                f"{leader.min_in_sync_replicas}",
            )
        if origin == _CLIENT and partition.internal:
            raise KafkaError(
                ErrorCode.invalid_topic_exception, f"{partition.topic} is an internal topic"
            )
        if len(batch) < HEADER_BYTES:
            raise KafkaError(ErrorCode.corrupt_message, "no whole record batch")
        try:
            staged = partition.log.stage(
                batch,
                parse_header(batch),
                leader_epoch=leader.leader_epoch,
                now_ms=now_ms,
                origin=origin,
            )
        except StorageError as error:
            self._turn.staged(partition)
            self.storage_failed(partition, error)
            raise
        if not staged.duplicate:
            self._turn.staged(partition)
            self.written[partition] = None
        return partition, staged

    def pull(self, pull: Pull, _bulk: memoryview, reply: Reply) -> None:
        """Take a follower's pull in; answered at the end of the turn, or when there is news."""
        if self._sessions.pull(pull, reply, self._now_ms()):
            self._turn.schedule()
            if not self._waking:
                self._wake_after(pull.max_wait_ms)

    def _wake_after(self, delay_ms: int) -> None:
        self._waking = True
        self._scheduler.call_later(delay_ms / 1000, self._wake)

    def _wake(self) -> None:
        self._waking = False
        now_ms = self._now_ms()
        next_ms = self._sessions.answer_overdue(now_ms)
        if next_ms is not None:
            self._wake_after(max(next_ms - now_ms, 1))

    def _progressed(self, partition: Partition) -> None:
        leader = partition.leader
        assert leader is not None
        if leader.high_watermark != partition.high_watermark.offset:
            try:
                partition.catch_up_high_watermark()
            except StorageError as error:
                self.storage_failed(partition, error)
                return
            self._sessions.high_watermark_moved(partition)
            self._changed(partition, _HIGH_WATERMARK)
        if leader.low_watermark != partition.low_watermark:
            self._turn.changed(partition, _FOLLOWER)
        if len(leader.isr) != len(leader.replicas):
            self.isrs.expand(partition)

    def _changed(self, partition: Partition, causes: int) -> None:
        self.written[partition] = None
        self._turn.changed(partition, causes)

    # Roles.

    def add(self, partition: Partition) -> None:
        """A partition whose log is open; it gets its role next."""
        self._partitions[partition.key] = partition
        partition.slot = self._rows.allocate(partition.row())
        self._note_flush_ms(partition)

    def lead(self, partition: Partition, leadership: Leadership) -> None:
        if partition.offline:
            self._still_offline(partition, leadership.leader_epoch)
            return
        now_ms = self._now_ms()
        leader = partition.leader
        if leader is not None and leader.leader_epoch == leadership.leader_epoch:
            if leader.metadata(leadership, now_ms):
                self.isrs.settled(partition)
            return
        self._leave_role(partition, ErrorCode.fenced_leader_epoch, leadership.leader_epoch)
        try:
            partition.lead(
                leadership,
                broker_id=self._settings.broker_id,
                lag_time_max_ms=self._settings.lag_time_max_ms,
                live_brokers=self.live_brokers,
                now_ms=now_ms,
            )
        except StorageError as error:
            log.error("cannot lead partition=%s reason=%s", partition.name, error.detail)
            self.take_offline(partition)
        self._changed(partition, _LEADERSHIP | _HIGH_WATERMARK)

    def follow(self, partition: Partition, leader_epoch: int, leader: Leader) -> None:
        if partition.offline:
            self._still_offline(partition, leader_epoch)
            return
        follower = partition.follower
        if follower is None or follower.leader_epoch != leader_epoch:
            self._leave_role(partition, ErrorCode.not_leader_or_follower, leader_epoch)
            partition.follow(leader.broker_id, leader_epoch)
            self._turn.changed(partition, _LEADERSHIP)
            self._loops.follow(partition, leader)
        elif self._loops.leader_of(partition) != leader:
            self._loops.follow(partition, leader)

    def idle(self, partition: Partition, leader_epoch: int) -> None:
        """Nobody leads the partition now."""
        self._leave_role(partition, ErrorCode.not_leader_or_follower, leader_epoch)
        partition.idle(leader_epoch)
        self._turn.changed(partition, _LEADERSHIP)

    def stop(self, partition: Partition) -> None:
        """The partition leaves this actor; its log is the caller's."""
        self._leave_role(partition, ErrorCode.unknown_topic_or_partition, partition.leader_epoch)
        partition.idle(partition.leader_epoch)
        self._turn.gone(partition)
        self._rows.release(partition.slot)
        self.written.pop(partition, None)
        self.flush_timed.pop(partition, None)
        del self._partitions[partition.key]

    def _leave_role(self, partition: Partition, error: ErrorCode, leader_epoch: int) -> None:
        self._sessions.ended(partition, error, leader_epoch)
        self._loops.unfollow(partition)
        self._turn.schedule()

    def _still_offline(self, partition: Partition, leader_epoch: int) -> None:
        """The controller thinks that this replica can be used: tell it again."""
        partition.leader_epoch = leader_epoch
        self.reports.report(partition.key, online=False)

    # Settings.

    def reconfigure(
        self, partition: Partition, config: LogConfig, min_insync_replicas: int
    ) -> None:
        partition.log.reconfigure(config)
        self._note_flush_ms(partition)
        if partition.min_insync_replicas == min_insync_replicas:
            return
        partition.min_insync_replicas = min_insync_replicas
        leader = partition.leader
        if leader is not None:
            leader.set_min_insync_replicas(min_insync_replicas, self._now_ms())
            self.isrs.settled(partition)

    def _note_flush_ms(self, partition: Partition) -> None:
        if partition.log.config.flush_ms == NO_LIMIT:
            self.flush_timed.pop(partition, None)
        else:
            self.flush_timed[partition] = None

    # Trouble and the end.

    def storage_failed(self, partition: Partition, error: StorageError) -> None:
        """A disk error. The partition goes offline when its log cannot be trusted any more."""
        log.error("log failed partition=%s reason=%s", partition.name, error.detail)
        if partition.log.offline and not partition.offline:
            self.take_offline(partition)

    def take_offline(self, partition: Partition) -> None:
        self._leave_role(partition, ErrorCode.kafka_storage_error, partition.leader_epoch)
        partition.offline = True
        partition.idle(partition.leader_epoch)
        self._turn.changed(partition, _OFFLINE)
        self.reports.report(partition.key, online=False)

    def log_start_moved(self, partition: Partition) -> None:
        """Records were deleted here: by retention, or because somebody asked."""
        partition.log_start_moved()
        self._sessions.log_start_moved(partition)
        self._loops.name_again(partition)
        self._changed(partition, _FOLLOWER)

    def finish_turn(self) -> None:
        self._turn.finish()

    def close(self) -> None:
        """End pulls in both directions. What was taken in is written and answered."""
        self._turn.finish()
        self._loops.close()
        self._sessions.close()
