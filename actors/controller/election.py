"""Who leads a partition: pure functions from its state to its next state.

Invariants of every state made here: the leader is in the ISR or -1; the ISR is part of the
replicas and never empty; the leader epoch grows with each change of leader and the
partition epoch with each change at all. No election leaves the ISR (an unclean one).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import msgspec

from mobula.actors.metadata.records import PartitionChanged

NO_LEADER = -1

CanLead = Callable[[int], bool]


def new_partition(
    topic_id: bytes, partition: int, replicas: list[int], isr: list[int]
) -> PartitionChanged:
    """A partition that begins its life, led by the first replica that is in sync."""
    return PartitionChanged(topic_id, partition, replicas, isr, isr[0], 0, 0)


def elect(partition: PartitionChanged, isr: Collection[int], can_lead: CanLead) -> int:
    """The present leader if it may go on, else the first replica in the ISR that may."""
    if partition.leader in isr and can_lead(partition.leader):
        return partition.leader
    for replica in partition.replicas:
        if replica in isr and can_lead(replica):
            return replica
    return NO_LEADER


def changed(
    partition: PartitionChanged,
    *,
    leader: int,
    isr: Sequence[int] | None = None,
    new_leader_epoch: bool = False,
) -> PartitionChanged | None:
    """The next state, or None when nothing changes.

    An empty `isr` leaves the ISR as it is: its last member stays. `new_leader_epoch` makes
    the same leader begin anew.
    """
    next_isr = _in_replica_order(partition, isr) if isr else partition.isr
    new_leader = new_leader_epoch or leader != partition.leader
    if not new_leader and set(next_isr) == set(partition.isr):
        return None
    return msgspec.structs.replace(
        partition,
        isr=next_isr,
        leader=leader,
        leader_epoch=partition.leader_epoch + new_leader,
        partition_epoch=partition.partition_epoch + 1,
        # Whoever leads has what was awaited.
        awaits_directory=partition.awaits_directory if leader == NO_LEADER else b"",
    )


def without_replica(
    partition: PartitionChanged, broker_id: int, can_lead: CanLead
) -> PartitionChanged | None:
    """The replica is gone: it leaves the ISR unless it is the last there, and leads no more."""
    isr = [member for member in partition.isr if member != broker_id]
    leader = elect(partition, isr, lambda replica: replica != broker_id and can_lead(replica))
    return changed(partition, leader=leader, isr=isr)


def without_fenced(
    partition: PartitionChanged, fenced: Collection[int], can_lead: CanLead, lives: CanLead
) -> PartitionChanged | None:
    """These brokers are fenced, all at once: they leave the ISR if any of those who stay there
    lives, and lead no more. Else all stay: each of them has what was committed, and which
    of them is the one to trust cannot be known before it is back."""
    staying = [member for member in partition.isr if member not in fenced]
    leader = elect(partition, staying, lambda replica: replica not in fenced and can_lead(replica))
    keep = not any(lives(member) for member in staying)
    return changed(partition, leader=leader, isr=partition.isr if keep else staying)


def handed_over(
    partition: PartitionChanged, broker_id: int, can_lead: CanLead
) -> PartitionChanged | None:
    """The replica wants to go: as `without_replica`, but it leads on where nobody else can."""
    target = without_replica(partition, broker_id, can_lead)
    if target is not None and target.leader == NO_LEADER and partition.leader == broker_id:
        return None
    return target


def preferred(partition: PartitionChanged, can_lead: CanLead) -> PartitionChanged | None:
    """Leadership goes back to the first replica, if another leads and the first one may."""
    first = partition.replicas[0]
    if partition.leader in (first, NO_LEADER) or first not in partition.isr or not can_lead(first):
        return None
    return changed(partition, leader=first)


def _in_replica_order(partition: PartitionChanged, isr: Sequence[int]) -> list[int]:
    return [replica for replica in partition.replicas if replica in isr]
