"""The controller's mind: all that it decides, without any I/O.

Each concern has a module of its own; this puts them together over one image. Every
decision is an Outcome: records and an answer. Whoever runs the core replays the records
at once, makes them durable, and only then lets the answer go.

Invariant: `replay` alone changes the image.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from mobula.actors.config import Config
from mobula.actors.controller import producer_ids
from mobula.actors.controller.brokers import BrokerControl
from mobula.actors.controller.configs import ConfigControl
from mobula.actors.controller.election import NO_LEADER
from mobula.actors.controller.messages import (
    AllocateProducerIds,
    AlteredPartitions,
    AlterPartition,
    BrokerAccepted,
    Heartbeat,
    HeartbeatAnswer,
    ProducerIdBlock,
    RegisterBroker,
    ReplicaActorAccepted,
    ReplicaActorState,
)
from mobula.actors.controller.outcome import Outcome
from mobula.actors.controller.partitions import PartitionControl
from mobula.actors.controller.topics import TopicControl
from mobula.actors.metadata.image import MetadataImage
from mobula.actors.metadata.records import Record


class ControllerCore:
    """`now_ms` is monotonic time; at the start it gives every live broker a new session."""

    def __init__(self, image: MetadataImage, config: Config, random: Random, now_ms: int) -> None:
        self.image = image
        self.config = config
        self.partitions = PartitionControl(image)
        self.topics = TopicControl(image, self.partitions, config, random)
        self.configs = ConfigControl(image, config)
        self._brokers = BrokerControl(
            image, self.partitions, config.integer("broker.session.timeout.ms"), now_ms
        )

    def replay(self, record: Record) -> None:
        self.image.replay(record)

    def register_broker(self, request: RegisterBroker, now_ms: int) -> Outcome[BrokerAccepted]:
        return self._brokers.register(request, now_ms)

    def heartbeat(self, beat: Heartbeat, now_ms: int) -> Outcome[HeartbeatAnswer]:
        return self._brokers.heartbeat(beat, now_ms)

    def metadata_pulled(self, broker_id: int, offset: int) -> None:
        self._brokers.pulled(broker_id, offset)

    def tick(self, now_ms: int, expected_ms: int) -> None:
        self._brokers.tick(now_ms, expected_ms)

    def fence_stale(self, now_ms: int) -> list[Record]:
        return self._brokers.fence_stale(now_ms)

    def alter_partition(self, request: AlterPartition) -> Outcome[AlteredPartitions]:
        return self.partitions.alter(request)

    def replica_actor_state(self, state: ReplicaActorState) -> Outcome[ReplicaActorAccepted]:
        return self.partitions.replica_actor_state(state)

    def allocate_producer_ids(self, request: AllocateProducerIds) -> Outcome[ProducerIdBlock]:
        return producer_ids.allocate(self.image, request)

    def balance_leaders(self) -> list[Record]:
        """At most `MAX_ELECTIONS` at a time: ask again when it was that many."""
        return self.partitions.balance()

    def counts(self) -> Mapping[str, int]:
        """For `mobula status`."""
        brokers = self.image.brokers.values()
        partitions = list(self.image.partitions())
        return {
            "metadata_offset": self.image.offset,
            "brokers": len(brokers),
            "fenced_brokers": sum(broker.fenced for broker in brokers),
            "topics": len(self.image.topics),
            "partitions": len(partitions),
            "under_replicated": sum(len(p.isr) < len(p.replicas) for p in partitions),
            "offline": sum(p.leader == NO_LEADER for p in partitions),
        }
