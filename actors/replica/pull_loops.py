"""Which leader actors this actor pulls from, and how: one loop each.

Invariant: a partition is in the loop of the leader it follows, and in no other.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from mobula.actors.end_of_turn import Scheduler
from mobula.actors.link.interface import Link
from mobula.actors.replica.partition import Partition
from mobula.actors.replica.pull_loop import PullLoop, PullSettings
from mobula.actors.replica.pull_session import Key
from mobula.actors.replica.replication import Replication
from mobula.storage.log import StorageError

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Leader:
    """Where a partition's leader is."""

    broker_id: int
    actor: str
    data_dir: str
    """Of a leader whose files can be copied from; empty when it must send bytes."""


class _Source:
    """One leader actor."""

    def __init__(self, leader: Leader, replication: Replication, loop: PullLoop[Partition]) -> None:
        self.leader = leader
        self.replication = replication
        self.loop = loop


class PullLoops:
    def __init__(
        self,
        *,
        link: Callable[[str], Link],
        scheduler: Scheduler,
        now_ms: Callable[[], int],
        settings: PullSettings,
        broker_epoch: Callable[[], int],
        on_changed: Callable[[Partition, int], None],
        on_failed: Callable[[Partition, StorageError], None],
    ) -> None:
        self._link = link
        self._scheduler = scheduler
        self._now_ms = now_ms
        self._settings = settings
        self._broker_epoch = broker_epoch
        self._on_changed = on_changed
        self._on_failed = on_failed
        self._sources: dict[str, _Source] = {}
        self._by_partition: dict[Key, _Source] = {}

    def leader_of(self, partition: Partition) -> Leader | None:
        source = self._by_partition.get(partition.key)
        return None if source is None else source.leader

    def follow(self, partition: Partition, leader: Leader) -> None:
        """Pull the partition from there; it is named anew."""
        self.unfollow(partition)
        source = self._source(leader)
        self._by_partition[partition.key] = source
        source.replication.forget(partition)
        source.loop.add(partition)

    def unfollow(self, partition: Partition) -> None:
        source = self._by_partition.pop(partition.key, None)
        if source is not None:
            source.loop.remove(partition.key)

    def name_again(self, partition: Partition) -> None:
        source = self._by_partition.get(partition.key)
        if source is not None:
            source.loop.name_again(partition.key)

    def name_all_again(self) -> None:
        for source in self._sources.values():
            source.loop.name_all_again()

    def close(self) -> None:
        for source in self._sources.values():
            source.loop.close()
            source.replication.close()
        self._sources.clear()
        self._by_partition.clear()

    def _source(self, leader: Leader) -> _Source:
        source = self._sources.get(leader.actor)
        if source is None:
            source = self._sources[leader.actor] = self._new_source(leader)
        elif source.leader != leader:
            # The leader's broker is on another node now, or in another folder.
            source.leader = leader
            source.replication.copy_from(leader.data_dir)
            source.loop.wants_bytes = not leader.data_dir
        return source

    def _new_source(self, leader: Leader) -> _Source:
        def no_ranges() -> None:
            if not loop.wants_bytes:
                log.warning("leader's files cannot be read, pulling bytes leader=%s", leader.actor)
                loop.wants_bytes = True

        replication = Replication(
            data_dir=leader.data_dir,
            on_changed=self._on_changed,
            on_failed=self._on_failed,
            on_no_ranges=no_ranges,
        )
        loop: PullLoop[Partition] = PullLoop(
            link=self._link(leader.actor),
            scheduler=self._scheduler,
            now_ms=self._now_ms,
            settings=self._settings,
            broker_epoch=self._broker_epoch,
            apply=replication.apply,
            wants_bytes=not leader.data_dir,
        )
        return _Source(leader, replication, loop)
