"""Keeps the ISRs of led partitions true: who joins, who leaves, what follows from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mobula.actors.end_of_turn import Scheduler
from mobula.actors.link.interface import Link
from mobula.actors.purgatory.messages import Cause
from mobula.actors.replica.isr_changes import IsrChanges, Led
from mobula.actors.replica.partition import Partition
from mobula.actors.replica.pull_session import Key, PullSessions
from mobula.storage.log import StorageError

_HIGH_WATERMARK = int(Cause.HIGH_WATERMARK)
_FOLLOWER = int(Cause.FOLLOWER)
_REFUSED_S = 1.0
"""A replica actor that came back pulls before the controller knows that it is there."""


class IsrUpkeep:
    def __init__(
        self,
        *,
        partitions: Mapping[Key, Partition],
        live_brokers: Mapping[int, int],
        sessions: PullSessions[Partition],
        on_changed: Callable[[Partition, int], None],
        on_failed: Callable[[Partition, StorageError], None],
        controller: Callable[[], Link],
        scheduler: Scheduler,
        broker_id: int,
        broker_epoch: Callable[[], int],
        now_ms: Callable[[], int],
    ) -> None:
        self._partitions = partitions
        self._live_brokers = live_brokers
        self._sessions = sessions
        self._on_changed = on_changed
        self._on_failed = on_failed
        self._now_ms = now_ms
        self._scheduler = scheduler
        self._refused: dict[Key, None] = {}
        """Partitions with a follower that the controller would not have yet."""
        self._changes = IsrChanges(
            controller=controller,
            scheduler=scheduler,
            broker_id=broker_id,
            broker_epoch=broker_epoch,
            on_settled=self._answered,
        )

    def check(self) -> None:
        """Now and then: followers that fell behind leave, those that were refused try again."""
        now_ms = self._now_ms()
        for partition in self._partitions.values():
            leader = partition.leader
            if leader is None:
                continue
            proposal = leader.maybe_shrink(now_ms)
            if proposal is not None:
                self._changes.propose(partition, proposal)
            elif len(leader.isr) != len(leader.replicas):
                leader.try_refused_again()
                self.expand(partition)

    def brokers_changed(self) -> None:
        """The live brokers are others: replicas may have become eligible, or begun anew."""
        for partition in self._partitions.values():
            leader = partition.leader
            if leader is None:
                continue
            for broker_id, broker_epoch in self._live_brokers.items():
                leader.broker_registered(broker_id, broker_epoch)
            self._sessions.ask_again(partition, leader.unheard())
            if len(leader.isr) != len(leader.replicas):
                leader.try_refused_again()
                self.expand(partition)
            if leader.low_watermark != partition.low_watermark:
                self._on_changed(partition, _FOLLOWER)

    def expand(self, partition: Partition) -> None:
        """Ask for the followers of a led partition that are in sync and not in its ISR."""
        assert partition.leader is not None
        proposal = partition.leader.maybe_expand()
        if proposal is not None:
            self._changes.propose(partition, proposal)
            # More replicas hold the high watermark from now on, and the row says so.
            self._on_changed(partition, 0)

    def settled(self, partition: Partition) -> None:
        """The ISR of a led partition, or how large it must be, is another now."""
        assert partition.leader is not None
        self._sessions.ask_again(partition, partition.leader.unheard())
        partition.leader.settled(self._now_ms())
        try:
            if partition.catch_up_high_watermark():
                self._sessions.high_watermark_moved(partition)
        except StorageError as error:
            # Where it lies could not be read; the next pull or append tries again.
            self._on_failed(partition, error)
            if partition.offline:
                return
        # Also when it did not move: a produce may have to end for want of replicas.
        self._on_changed(partition, _HIGH_WATERMARK)
        self.expand(partition)

    def _answered(self, led: Led) -> None:
        partition = self._partitions.get(led.key)
        if partition is not led or partition is None or partition.leader is None:
            return
        self.settled(partition)
        if not partition.offline and partition.leader.any_refused():
            if not self._refused:
                self._scheduler.call_later(_REFUSED_S, self._try_refused_again)
            self._refused[partition.key] = None

    def _try_refused_again(self) -> None:
        refused, self._refused = self._refused, {}
        for key in refused:
            partition = self._partitions.get(key)
            if partition is not None and partition.leader is not None:
                partition.leader.try_refused_again()
                self.expand(partition)
