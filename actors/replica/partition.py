"""One partition of a replica actor: its log, and what the replica is to it.

Invariants: at most one of `leader` and `follower` is set; neither when the metadata names
no leader or the log is offline. The high watermark lies within the log.
"""

from __future__ import annotations

from collections.abc import Mapping

from mobula.actors.metadata.topic_name import is_internal
from mobula.actors.replica.follower import PartitionFollower, follower_high_watermark
from mobula.actors.replica.leader import Leadership, PartitionLeader
from mobula.actors.replica.messages import Pull, PullAnswer, PulledPartition
from mobula.actors.replica.pull_session import Key, SessionPartition, out_of_reach
from mobula.actors.rows import Role, Row
from mobula.protocol.errors import ErrorCode, KafkaError
from mobula.storage.log import Log, LogPosition, LogRange

_LEADER = int(Role.LEADER)
_FOLLOWER = int(Role.FOLLOWER)
_OFFLINE = int(Role.OFFLINE)


class Partition:
    __slots__ = (
        "awaiting",
        "causes",
        "follower",
        "high_watermark",
        "internal",
        "key",
        "leader",
        "leader_epoch",
        "log",
        "lost_its_end",
        "low_watermark",
        "min_insync_replicas",
        "offline",
        "readers",
        "slot",
        "topic",
    )

    def __init__(self, key: Key, topic: str, log: Log, high_watermark: int) -> None:
        self.key = key
        self.topic = topic
        self.log = log
        self.internal = is_internal(topic)
        self.leader: PartitionLeader | None = None
        self.follower: PartitionFollower | None = None
        self.leader_epoch = -1
        """The last one heard of, whoever leads in it."""
        self.offline = False
        self.min_insync_replicas = 1
        self.readers: list[SessionPartition] = []
        self.awaiting: dict[str, int] = {}
        """Actors with appends that wait for the high watermark, and the last offset of it that
        each needs; kept by the turn."""
        self.causes = 0
        """Why the purgatory should look, not yet told."""
        self.low_watermark = log.log_start_offset
        """As it was published."""
        self.slot = -1
        """In the published rows."""
        recovery = log.recovery
        self.lost_its_end = log.log_end.offset < high_watermark or (
            recovery is not None and recovery.truncated_at_offset >= 0
        )
        """What was opened is shorter than it was: it may miss what was acknowledged."""
        self.high_watermark: LogPosition = log.log_end
        self._set_high_watermark(high_watermark)

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.key[1]}"

    @property
    def log_start_offset(self) -> int:
        return self.log.log_start_offset

    @property
    def log_end_offset(self) -> int:
        return self.log.log_end.offset

    @property
    def high_watermark_offset(self) -> int:
        return self.high_watermark.offset

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        return self.log.end_offset_for_epoch(epoch)

    # Roles.

    def lead(
        self,
        leadership: Leadership,
        *,
        broker_id: int,
        lag_time_max_ms: int,
        live_brokers: Mapping[int, int],
        now_ms: int,
    ) -> None:
        """Begin a new epoch as leader, at the log's end."""
        self.follower = None
        self.leader_epoch = leadership.leader_epoch
        end = self.log.log_end
        if leadership.leader_epoch > self.log.latest_epoch:
            # Also without records of it: followers with a later one find where to cut.
            self.log.assign_epoch(leadership.leader_epoch, end.offset)
        self.leader = PartitionLeader(
            broker_id=broker_id,
            leadership=leadership,
            log_start_offset=self.log.log_start_offset,
            log_end_offset=end.offset,
            high_watermark=self.high_watermark.offset,
            min_insync_replicas=self.min_insync_replicas,
            lag_time_max_ms=lag_time_max_ms,
            live_brokers=live_brokers,
            now_ms=now_ms,
        )
        self._set_high_watermark(self.leader.high_watermark)

    def follow(self, leader_id: int, leader_epoch: int) -> None:
        self.leader = None
        self.leader_epoch = leader_epoch
        self.follower = PartitionFollower(leader_id, leader_epoch)

    def idle(self, leader_epoch: int) -> None:
        """Nobody leads, or the log cannot be used."""
        self.leader_epoch = leader_epoch
        self.leader = None
        self.follower = None

    # The leader's side.

    def check_leader(self, current_leader_epoch: int = -1) -> PartitionLeader:
        """The leader, asked by somebody who believes in this epoch; -1 believes anything."""
        if self.offline:
            raise KafkaError(ErrorCode.kafka_storage_error)
        leader = self.leader
        epoch = self.leader_epoch
        if current_leader_epoch not in (-1, epoch):
            raise KafkaError(
                ErrorCode.fenced_leader_epoch
                if current_leader_epoch < epoch
                else ErrorCode.unknown_leader_epoch
            )
        if leader is None:
            raise KafkaError(ErrorCode.not_leader_or_follower)
        return leader

    def flushed(self, now_ms: int) -> bool:
        """The log's end moved. True when the high watermark did."""
        leader = self.leader
        assert leader is not None
        if leader.log_end_moved(self.log.log_end.offset, now_ms):
            self._set_high_watermark(leader.high_watermark)
            return True
        return False

    def follower_pulled(
        self, pull: Pull, position: PulledPartition, now_ms: int
    ) -> PullAnswer | None:
        try:
            leader = self.check_leader(position.leader_epoch)
            if leader.follower(pull.broker_id) is None:
                # Assigned by metadata that this leader has not seen yet.
                raise KafkaError(ErrorCode.unknown_leader_epoch)
        except KafkaError as error:
            return out_of_reach(self, int(error.code))
        start, end = self.log.log_start_offset, self.log.log_end.offset
        if position.fetch_offset < start:
            return out_of_reach(self, ErrorCode.offset_out_of_range)
        if position.last_fetched_epoch >= 0:
            epoch, epoch_end = self.log.end_offset_for_epoch(position.last_fetched_epoch)
            if epoch < 0:
                return out_of_reach(self, ErrorCode.offset_out_of_range)
            if epoch < position.last_fetched_epoch or epoch_end < position.fetch_offset:
                return self._diverging(epoch, epoch_end)
        if position.fetch_offset > end:
            return out_of_reach(self, ErrorCode.offset_out_of_range)
        leader.follower_pulled(
            pull.broker_id,
            pull.broker_epoch,
            position.fetch_offset,
            position.log_start_offset,
            now_ms,
        )
        return None

    def catch_up_high_watermark(self) -> bool:
        """After the leader core was told something: True when its high watermark moved."""
        leader = self.leader
        if leader is None or leader.high_watermark == self.high_watermark.offset:
            return False
        self._set_high_watermark(leader.high_watermark)
        return True

    def ranges_from(self, offset: int, max_bytes: int) -> tuple[list[LogRange], int]:
        return self.log.ranges_from(offset, max_bytes)

    def read(self, log_range: LogRange) -> memoryview:
        return self.log.read(log_range)

    # The follower's side.

    def position(self) -> PulledPartition:
        """Where this follower stands, for a pull."""
        log = self.log
        topic_id, partition = self.key
        return PulledPartition(
            topic_id,
            partition,
            self.leader_epoch,
            log.log_end.offset,
            log.latest_epoch,
            log.log_start_offset,
        )

    def take_high_watermark(self, leader_high_watermark: int) -> bool:
        current = self.high_watermark.offset
        offset = follower_high_watermark(current, leader_high_watermark, self.log.log_end.offset)
        if offset == current:
            return False
        self._set_high_watermark(offset)
        return True

    def truncated(self) -> None:
        """The log was cut: no more than what is left can be committed."""
        self._set_high_watermark(min(self.high_watermark.offset, self.log.log_end.offset))

    def log_start_moved(self) -> None:
        if self.leader is not None:
            self.leader.log_start_offset = self.log.log_start_offset
        if self.high_watermark.offset < self.log.log_start_offset:
            self._set_high_watermark(self.log.log_start_offset)

    # What is published.

    def row(self) -> Row:
        log = self.log
        end = log.log_end
        high_watermark = self.high_watermark
        leader = self.leader
        start = log.log_start_offset
        self.low_watermark = start if leader is None else leader.low_watermark
        return Row(
            self.key[0],
            self.key[1],
            _LEADER if leader is not None else _OFFLINE if self.offline else _FOLLOWER,
            self.leader_epoch,
            log.generation,
            start,
            self.low_watermark,
            high_watermark.offset,
            high_watermark.segment,
            high_watermark.position,
            # Without transactions all that is committed is stable.
            high_watermark.offset,
            high_watermark.segment,
            high_watermark.position,
            end.offset,
            end.segment,
            end.position,
            -1 if leader is None else leader.epoch_start_offset,
            1 if leader is None else leader.in_sync_replicas,
            1 if leader is None else leader.min_in_sync_replicas,
        )

    def _set_high_watermark(self, offset: int) -> None:
        """Clipped to the log."""
        log = self.log
        end = log.log_end
        offset = max(offset, log.log_start_offset)
        self.high_watermark = end if offset >= end.offset else log.position_of(offset)

    def _diverging(self, epoch: int, end_offset: int) -> PullAnswer:
        topic_id, partition = self.key
        return PullAnswer(
            topic_id,
            partition,
            0,
            self.leader_epoch,
            self.high_watermark.offset,
            self.log.log_start_offset,
            diverging_epoch=epoch,
            diverging_end_offset=end_offset,
        )
