"""The group coordinators of a broker: a shard for each partition of `__consumer_offsets` that
it leads.

Invariant: a group is answered for by the shard of its partition, or by nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from mobula.actors.coordinator.group.group_machine import GroupMachine
from mobula.actors.coordinator.group.records import Record
from mobula.actors.coordinator.outcome import Outcome
from mobula.actors.coordinator.partitioner import partition_for
from mobula.actors.coordinator.shard import Shard, State
from mobula.protocol.errors import ErrorCode, KafkaError

GroupDecision = Callable[[GroupMachine], Outcome[Record, Any]]


class GroupCoordinator:
    def __init__(self) -> None:
        self.partitions = 0
        """Of the topic; 0: it does not exist yet."""
        self._shards: dict[int, Shard[Record]] = {}

    def shard(self, partition: int) -> Shard[Record] | None:
        return self._shards.get(partition)

    def put(self, shard: Shard[Record]) -> None:
        self._shards[shard.partition] = shard

    def remove(self, partition: int, code: ErrorCode) -> None:
        shard = self._shards.pop(partition, None)
        if shard is not None:
            shard.close(code)

    def led(self) -> list[int]:
        return list(self._shards)

    def decide(
        self,
        group_id: str,
        decision: GroupDecision,
        answered: Callable[[Any], None],
        failed: Callable[[KafkaError], None],
        *,
        writes: bool = False,
    ) -> None:
        """See `Shard.decide`."""
        if not self.partitions:
            failed(KafkaError(ErrorCode.coordinator_not_available))
            return
        shard = self._shards.get(partition_for(group_id, self.partitions))
        if shard is None:
            failed(KafkaError(ErrorCode.not_coordinator))
            return
        shard.decide(lambda: decision(_machine(shard)), answered, failed, writes=writes)

    def machines(self) -> Iterator[GroupMachine]:
        """All that are loaded. KafkaError COORDINATOR_LOAD_IN_PROGRESS while one is not."""
        for shard in self._shards.values():
            if shard.state is State.LOADING:
                raise KafkaError(ErrorCode.coordinator_load_in_progress)
            if shard.state is State.ACTIVE:
                yield _machine(shard)


def _machine(shard: Shard[Record]) -> GroupMachine:
    machine = shard.machine
    assert isinstance(machine, GroupMachine)
    return machine
