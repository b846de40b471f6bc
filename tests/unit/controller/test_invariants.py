"""Whatever happens in whatever order: what must always hold, holds.

`World.commit` checks each change of a partition; here the changes are found.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from mobula.actors.controller.messages import AllocateProducerIds
from mobula.actors.metadata.image import MetadataImage
from mobula.actors.metadata.records import decode_record, encode_record
from mobula.protocol.errors import ErrorCode
from tests.unit.controller.fakes import World, check

brokers = st.integers(0, 3)


class ControllerMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.lives = 0
        self.topics = 0
        self.producer_ids: set[int] = set()
        self.epochs: dict[tuple[bytes, int], tuple[int, int]] = {}
        self.isrs: dict[tuple[bytes, int], set[int]] = {}
        self.broker_epochs: dict[int, int] = {}

    @initialize()
    def start(self) -> None:
        self.world.start(0, 1, 2, 3)

    @rule(broker=brokers, restarted=st.booleans(), new_folder=st.booleans())
    def register(self, broker: int, restarted: bool, new_folder: bool) -> None:
        self.lives += 1
        changes: dict[str, Any] = {"replicas_restarted": restarted or new_folder}
        if new_folder:
            changes["directory_id"] = self.lives.to_bytes(16)
        else:
            changes["directory_id"] = self.world.image.brokers[broker].directory_id
        self.world.register(broker, incarnation=f"life-{self.lives}", **changes)

    @rule(broker=brokers, fence=st.booleans(), shutdown=st.booleans(), behind=st.integers(0, 5))
    def beat(self, broker: int, fence: bool, shutdown: bool, behind: int) -> None:
        answer = self.world.beat(
            broker,
            want_fence=fence,
            want_shutdown=shutdown,
            metadata_offset=self.world.image.offset - behind,
        )
        assert answer.fenced == self.world.image.brokers[broker].fenced

    @rule(duration_ms=st.sampled_from([500, 4000, 10_000]), alive=st.sets(brokers))
    def pass_time(self, duration_ms: int, alive: set[int]) -> None:
        self.world.pass_ms(duration_ms, alive=sorted(alive))

    @rule(data=st.data())
    def create(self, data: st.DataObject) -> None:
        replicas = data.draw(st.lists(brokers, min_size=1, max_size=3, unique=True))
        if any(self.world.core.partitions.is_active(broker) for broker in replicas):
            self.topics += 1
            self.world.create(f"t{self.topics}", replicas)

    @rule(data=st.data(), online=st.booleans())
    def replica_actor(self, data: st.DataObject, online: bool) -> None:
        if self.world.image.topics:
            topic = data.draw(st.sampled_from(sorted(self.world.image.topics)))
            broker = data.draw(st.sampled_from(self.world.partition(topic).replicas))
            self.world.replica_actor(broker, topic, online=online)

    @rule(data=st.data(), stale=st.integers(0, 1))
    def alter(self, data: st.DataObject, stale: int) -> None:
        led = [p for p in self.world.image.partitions() if p.leader >= 0]
        if not led:
            return
        partition = data.draw(st.sampled_from(led))
        isr = data.draw(st.sets(st.sampled_from(partition.replicas)))
        code = self.world.alter(
            partition.topic_id,
            sorted({*isr, partition.leader}),
            partition_epoch=partition.partition_epoch - stale,
        )
        assert code == ErrorCode.invalid_update_version or not stale

    @rule()
    def balance(self) -> None:
        self.world.commit(self.world.core.balance_leaders())

    @rule(broker=brokers)
    def allocate(self, broker: int) -> None:
        block = self.world.run(self.world.core.allocate_producer_ids(AllocateProducerIds(broker)))
        ids = set(range(block.first, block.first + block.count))
        assert len(ids) == 1000
        assert not ids & self.producer_ids
        self.producer_ids |= ids

    @rule()
    def restart(self) -> None:
        self.world.restart_controller()

    @invariant()
    def partitions_are_sound(self) -> None:
        image = self.world.image
        for partition in image.partitions():
            check(partition)
            name = (partition.topic_id, partition.partition)
            epochs = (partition.leader_epoch, partition.partition_epoch)
            before = self.epochs.get(name, (0, 0))
            assert epochs[0] >= before[0]
            assert epochs[1] >= before[1]
            self.epochs[name] = epochs
            if partition.leader >= 0:
                assert not image.brokers[partition.leader].fenced
            # Nobody joins while it is fenced, or without having been there.
            for member in set(partition.isr) - self.isrs.get(name, set(partition.isr)):
                assert not image.brokers[member].fenced
            self.isrs[name] = set(partition.isr)

    @invariant()
    def broker_epochs_only_grow(self) -> None:
        for broker in self.world.image.brokers.values():
            assert broker.broker_epoch >= self.broker_epochs.get(broker.broker_id, -1)
            self.broker_epochs[broker.broker_id] = broker.broker_epoch

    @invariant()
    def a_snapshot_is_the_image(self) -> None:
        image = self.world.image
        copy = MetadataImage()
        copy.replay_all(decode_record(encode_record(record)) for record in image.snapshot())
        copy.offset = image.offset
        assert copy == image


ControllerMachine.TestCase.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None
)
TestWhateverHappens = ControllerMachine.TestCase
