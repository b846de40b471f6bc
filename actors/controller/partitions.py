"""Leaders and ISRs: what changes when a broker or a replica actor goes, comes or asks.

Invariant: nothing here changes the image; every method returns the records that would.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

import msgspec

from mobula.actors.controller.election import (
    NO_LEADER,
    changed,
    elect,
    handed_over,
    preferred,
    without_fenced,
    without_replica,
)
from mobula.actors.controller.messages import (
    AlteredPartitions,
    AlterPartition,
    PartitionAltered,
    PartitionIsr,
    ReplicaActorAccepted,
    ReplicaActorState,
)
from mobula.actors.controller.outcome import Outcome
from mobula.actors.metadata.image import MetadataImage
from mobula.actors.metadata.records import PartitionChanged, Record
from mobula.protocol.errors import ErrorCode

MAX_ELECTIONS = 1000
"""Preferred leaders elected at a time: a bound on one commit, the rest follows at once."""


class PartitionControl:
    def __init__(self, image: MetadataImage) -> None:
        self._image = image
        self._offline: dict[int, set[tuple[bytes, int]]] = {}
        """By broker: partitions whose replica actor is away. Forgotten when the controller
        restarts, which is safe: a replica that was elected though it is away gets a new
        epoch when it is back."""

    def is_active(self, broker_id: int) -> bool:
        """Whether a broker may join ISRs and lead."""
        broker = self._image.brokers.get(broker_id)
        return broker is not None and not broker.fenced and not broker.in_controlled_shutdown

    def leave(self, broker_ids: Collection[int]) -> list[Record]:
        """The brokers are fenced: they leave every ISR but those where nobody else lives."""
        return self._change(
            (p for p in self._image.partitions() if any(b in p.isr for b in broker_ids)),
            lambda partition: without_fenced(
                partition, broker_ids, self._can_lead(partition), self.is_active
            ),
        )

    def hands_over(self, broker_id: int) -> list[Record]:
        """The broker shuts down: it leaves what can do without it."""
        return self._change(
            (p for p in self._image.partitions() if broker_id in p.isr),
            lambda partition: handed_over(partition, broker_id, self._can_lead(partition)),
        )

    def returns(self, broker_id: int) -> list[Record]:
        """The broker is unfenced (in the same commit): it leads what waited for it."""
        self._offline.pop(broker_id, None)
        return self._change(
            (p for p in self._image.partitions() if p.leader == NO_LEADER and broker_id in p.isr),
            lambda partition: self._elected(partition, returning=broker_id),
        )

    def begins_anew(self, broker_id: int) -> list[Record]:
        """The broker starts with the whole cluster: it leads on what it led, in a new epoch."""
        self._offline.pop(broker_id, None)
        return self._change(
            (p for p in self._image.partitions() if broker_id in p.isr),
            lambda partition: self._back(partition, broker_id),
        )

    def lost_directory(self, broker_id: int, directory_id: bytes) -> list[Record]:
        """The (fenced) broker has a new folder: what the old one held must not be led from it."""

        def lost(partition: PartitionChanged) -> PartitionChanged | None:
            if len(partition.isr) > 1:
                return without_replica(partition, broker_id, self._can_lead(partition))
            if partition.awaits_directory:
                return None
            return msgspec.structs.replace(
                partition,
                awaits_directory=directory_id,
                partition_epoch=partition.partition_epoch + 1,
            )

        return self._change((p for p in self._image.partitions() if broker_id in p.isr), lost)

    def balance(self) -> list[Record]:
        """Leadership for preferred replicas, and for what stands without a leader."""
        records: list[Record] = []
        for partition in self._image.partitions():
            record = (
                self._elected(partition)
                if partition.leader == NO_LEADER
                else preferred(partition, self._can_lead(partition))
            )
            if record is not None:
                records.append(record)
                if len(records) == MAX_ELECTIONS:
                    break
        return records

    def replica_actor_state(self, state: ReplicaActorState) -> Outcome[ReplicaActorAccepted]:
        broker = self._image.brokers.get(state.broker_id)
        if broker is None or broker.broker_epoch != state.broker_epoch:
            return Outcome([], ReplicaActorAccepted(ErrorCode.stale_broker_epoch))
        held = [
            partition
            for topic_id, index in state.partitions
            if (partition := self._image.partition(topic_id, index)) is not None
            and state.broker_id in partition.replicas
        ]
        offline = self._offline.setdefault(state.broker_id, set())
        names = {(partition.topic_id, partition.partition) for partition in held}
        if state.online:
            offline -= names
            records = self._change(held, lambda partition: self._back(partition, state.broker_id))
        else:
            offline |= names
            records = self._change(
                held,
                lambda partition: without_replica(
                    partition, state.broker_id, self._can_lead(partition)
                ),
            )
        return Outcome(
            records, ReplicaActorAccepted(ErrorCode.none, self._image.offset + len(records))
        )

    def alter(self, request: AlterPartition) -> Outcome[AlteredPartitions]:
        """A leader's wish for other ISRs; each partition is judged for itself."""
        broker = self._image.brokers.get(request.broker_id)
        if broker is None or broker.broker_epoch != request.broker_epoch:
            return Outcome([], AlteredPartitions(ErrorCode.stale_broker_epoch, []))
        records: dict[tuple[bytes, int], PartitionChanged] = {}
        answers: list[PartitionAltered] = []
        for part in request.parts:
            partition = self._image.partition(part.topic_id, part.partition)
            if partition is None:
                known = part.topic_id in self._image.topics
                error = (
                    ErrorCode.unknown_topic_or_partition if known else ErrorCode.unknown_topic_id
                )
                answers.append(PartitionAltered(error))
                continue
            name = (part.topic_id, part.partition)
            partition = records.get(name, partition)
            error = self._refusal(request.broker_id, partition, part)
            if error is ErrorCode.none:
                record = changed(partition, leader=partition.leader, isr=part.new_isr)
                if record is not None:
                    records[name] = partition = record
            answers.append(
                PartitionAltered(
                    error,
                    partition.isr,
                    partition.leader,
                    partition.leader_epoch,
                    partition.partition_epoch,
                )
            )
        return Outcome([*records.values()], AlteredPartitions(ErrorCode.none, answers))

    def _refusal(
        self, broker_id: int, partition: PartitionChanged, part: PartitionIsr
    ) -> ErrorCode:
        if (
            part.leader_epoch > partition.leader_epoch
            or part.partition_epoch > partition.partition_epoch
        ):
            # The leader has seen a controller that knows more than this one.
            return ErrorCode.not_controller
        if part.leader_epoch < partition.leader_epoch:
            return ErrorCode.fenced_leader_epoch
        if broker_id != partition.leader:
            return ErrorCode.invalid_request
        if part.partition_epoch < partition.partition_epoch:
            return ErrorCode.invalid_update_version
        members = set(part.new_isr)
        if (
            len(members) != len(part.new_isr)
            or not members <= set(partition.replicas)
            or partition.leader not in members
        ):
            return ErrorCode.invalid_request
        epochs = part.new_isr_epochs or [-1] * len(part.new_isr)
        if len(epochs) != len(part.new_isr):
            return ErrorCode.invalid_request
        for member, broker_epoch in zip(part.new_isr, epochs, strict=True):
            if not self._eligible(member, broker_epoch, partition):
                return ErrorCode.ineligible_replica
        return ErrorCode.none

    def _eligible(self, member: int, broker_epoch: int, partition: PartitionChanged) -> bool:
        if not self.is_active(member) or self._is_offline(member, partition):
            # A leader that shuts down leads on where nobody else can: letting others join
            # is what sets it free.
            return member == partition.leader
        return broker_epoch in (-1, self._image.brokers[member].broker_epoch)

    def _back(self, partition: PartitionChanged, broker_id: int) -> PartitionChanged | None:
        if partition.leader == broker_id:
            return changed(partition, leader=broker_id, new_leader_epoch=True)
        return self._elected(partition) if partition.leader == NO_LEADER else None

    def _elected(
        self, partition: PartitionChanged, returning: int | None = None
    ) -> PartitionChanged | None:
        leader = elect(partition, partition.isr, self._can_lead(partition, returning))
        return changed(partition, leader=leader)

    def _can_lead(
        self, partition: PartitionChanged, returning: int | None = None
    ) -> Callable[[int], bool]:
        def can_lead(broker_id: int) -> bool:
            if broker_id != returning and not self.is_active(broker_id):
                return False
            if self._is_offline(broker_id, partition):
                return False
            awaited = partition.awaits_directory
            return not awaited or self._image.brokers[broker_id].directory_id == awaited

        return can_lead

    def _is_offline(self, broker_id: int, partition: PartitionChanged) -> bool:
        offline = self._offline.get(broker_id)
        return offline is not None and (partition.topic_id, partition.partition) in offline

    @staticmethod
    def _change(
        partitions: Iterable[PartitionChanged],
        change: Callable[[PartitionChanged], PartitionChanged | None],
    ) -> list[Record]:
        return [record for partition in partitions if (record := change(partition)) is not None]
