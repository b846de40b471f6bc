"""The coordinators that a broker carries: they come and go with the leaderships of the
partitions of internal topics.

Invariant: in one leader epoch a partition has one shard; who leads no more answers for
nobody.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

from mobula.actors.config import Config
from mobula.actors.coordinator.commits import Commits
from mobula.actors.coordinator.coordinator_apis import CoordinatorApis
from mobula.actors.coordinator.group import records as group_records
from mobula.actors.coordinator.group.classic_protocol import Settings
from mobula.actors.coordinator.group.group_coordinator import GroupCoordinator
from mobula.actors.coordinator.group.group_machine import GroupMachine
from mobula.actors.coordinator.group.records import Record
from mobula.actors.coordinator.journal import PartitionJournal
from mobula.actors.coordinator.messages import COORDINATE
from mobula.actors.coordinator.partitioner import GROUP_TOPIC
from mobula.actors.coordinator.place import Place
from mobula.actors.coordinator.services import CoordinatorServices
from mobula.actors.coordinator.shard import Alarms, Shard
from mobula.actors.coordinator.timers import Timers
from mobula.actors.metadata.image import MetadataImage, TopicImage
from mobula.actors.metadata.records import PartitionChanged
from mobula.actors.placement import replica_actor_of
from mobula.actors.purgatory.messages import PARTITIONS_CHANGED
from mobula.actors.rows import RowsReader
from mobula.actors.runtime import Runtime
from mobula.actors.spec import rows_path
from mobula.protocol.errors import ErrorCode

log = logging.getLogger(__name__)


class _GroupCodec:
    encode = staticmethod(group_records.encode)
    decode = staticmethod(group_records.decode)


class Coordinators:
    def __init__(
        self,
        runtime: Runtime,
        config: Config,
        image: Callable[[], MetadataImage],
        spawn: Callable[[Coroutine[Any, Any, None]], None],
        random: Random,
    ) -> None:
        self._runtime = runtime
        self._config = config
        self._image = image
        self._spawn = spawn
        self._random = random
        self._groups = GroupCoordinator()
        self._rows: dict[str, RowsReader] = {}
        self._commits = Commits(
            runtime.turn,
            runtime.clock.monotonic_ms,
            lambda: config.integer("offsets.commit.timeout.ms"),
        )
        self._apis = CoordinatorApis(
            CoordinatorServices(
                config=config,
                groups=self._groups,
                now_ms=runtime.clock.now_ms,
                current_image=image,
            )
        )

    def start(self) -> None:
        self._runtime.serve(PARTITIONS_CHANGED, self._commits.changed)
        self._runtime.serve(COORDINATE, self._apis.handle)

    def stop(self) -> None:
        """Whoever waits looks for another coordinator."""
        for partition in self._groups.led():
            self._groups.remove(partition, ErrorCode.not_coordinator)

    def metadata_changed(self) -> None:
        """Take up what this broker leads now, let go of what it does not."""
        topic = self._image().topic(GROUP_TOPIC)
        partitions = {} if topic is None else topic.partitions
        self._groups.partitions = len(partitions)
        led = {
            index: state
            for index, state in partitions.items()
            if state.leader == self._runtime.spec.broker_id
        }
        for index in self._groups.led():
            shard = self._groups.shard(index)
            state = led.get(index)
            if shard is not None and (state is None or state.leader_epoch != shard.leader_epoch):
                self._groups.remove(index, ErrorCode.not_coordinator)
        for index, state in led.items():
            if self._groups.shard(index) is None:
                assert topic is not None
                self._take_up(topic, state)

    def _take_up(self, topic: TopicImage, state: PartitionChanged) -> None:
        shard: Shard[Record] = Shard(
            state.partition,
            state.leader_epoch,
            scheduler=self._runtime.turn,
            timers=Timers(self._runtime.turn, self._runtime.clock.monotonic_ms),
            journal=PartitionJournal(
                self._place(topic, state),
                _GroupCodec,
                self._commits,
                now_ms=self._runtime.clock.now_ms,
                spawn=self._spawn,
            ),
            machine=self._machine,
        )
        self._groups.put(shard)
        shard.load()

    def _machine(self, alarms: Alarms) -> GroupMachine:
        integer = self._config.integer
        settings = Settings(
            initial_rebalance_delay_ms=integer("group.initial.rebalance.delay.ms"),
            max_size=integer("group.max.size"),
        )
        return GroupMachine(
            settings, alarms, now_ms=self._runtime.clock.now_ms, new_uuid=self._new_uuid
        )

    def _new_uuid(self) -> UUID:
        return UUID(bytes=self._random.randbytes(16), version=4)

    def _place(self, topic: TopicImage, state: PartitionChanged) -> Place:
        broker_id = self._runtime.spec.broker_id
        actor = replica_actor_of(self._image(), broker_id, topic.topic_id, state.partition)
        return Place(
            topic_id=topic.topic_id,
            partition=state.partition,
            leader_epoch=state.leader_epoch,
            directory=Path(self._runtime.spec.data_dir) / f"{topic.name}-{state.partition}",
            replica=self._runtime.link(actor),
            rows=self._rows_of(actor),
        )

    def _rows_of(self, actor: str) -> RowsReader:
        reader = self._rows.get(actor)
        if reader is None:
            reader = self._rows[actor] = RowsReader(rows_path(self._runtime.spec.run_dir, actor))
            opened = reader
            self._runtime.link(actor).on_state(lambda up: opened.reopen() if up else None)
        return reader
