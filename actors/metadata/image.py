"""The metadata image: the cluster as the records replayed so far describe it.

Invariant: `replay` alone changes it, and two images that replayed the same records
are equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import assert_never

import msgspec

from mobula.actors.metadata.records import (
    BrokerRegistered,
    BrokerStateChanged,
    BrokerUnregistered,
    ClusterCreated,
    ConfigChanged,
    FeatureChanged,
    PartitionChanged,
    ProducerIdsAllocated,
    Record,
    TopicCreated,
    TopicRemoved,
)

TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4


@dataclass(slots=True, kw_only=True)
class TopicImage:
    topic_id: bytes
    name: str
    partitions: dict[int, PartitionChanged] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class MetadataImage:
    offset: int = -1
    """Of the last record replayed."""
    cluster_id: str = ""
    brokers: dict[int, BrokerRegistered] = field(default_factory=dict)
    topics: dict[bytes, TopicImage] = field(default_factory=dict)
    topic_ids: dict[str, bytes] = field(default_factory=dict)
    configs: dict[tuple[int, str], dict[str, str]] = field(default_factory=dict)
    next_producer_id: int = 0
    features: dict[str, int] = field(default_factory=dict)

    def topic(self, name: str) -> TopicImage | None:
        topic_id = self.topic_ids.get(name)
        return None if topic_id is None else self.topics[topic_id]

    def partition(self, topic_id: bytes, partition: int) -> PartitionChanged | None:
        topic = self.topics.get(topic_id)
        return None if topic is None else topic.partitions.get(partition)

    def partitions(self) -> Iterator[PartitionChanged]:
        """Every partition of every topic."""
        return (p for topic in self.topics.values() for p in topic.partitions.values())

    def live_brokers(self) -> Iterator[BrokerRegistered]:
        return (broker for broker in self.brokers.values() if not broker.fenced)

    def replay_all(self, records: Iterable[Record]) -> None:
        for record in records:
            self.replay(record)

    def replay(self, record: Record) -> None:
        match record:
            case ClusterCreated():
                self.cluster_id = record.cluster_id
            case BrokerRegistered():
                self.brokers[record.broker_id] = record
            case BrokerStateChanged():
                self._broker_state(record)
            case BrokerUnregistered():
                self.brokers.pop(record.broker_id, None)
            case TopicCreated():
                if record.topic_id not in self.topics:
                    self.topics[record.topic_id] = TopicImage(
                        topic_id=record.topic_id, name=record.name
                    )
                    self.topic_ids[record.name] = record.topic_id
            case TopicRemoved():
                self._remove_topic(record)
            case PartitionChanged():
                self.topics[record.topic_id].partitions[record.partition] = record
            case ConfigChanged():
                self._config(record)
            case ProducerIdsAllocated():
                self.next_producer_id = record.next_producer_id
            case FeatureChanged():
                self.features[record.name] = record.level
            case _:
                assert_never(record)
        self.offset += 1

    def snapshot(self) -> list[Record]:
        """Records that give this image again; `offset` must be carried beside them."""
        records: list[Record] = [ClusterCreated(self.cluster_id)]
        records += self.brokers.values()
        for topic in self.topics.values():
            records.append(TopicCreated(topic.topic_id, topic.name))
            records += topic.partitions.values()
        for (kind, name), values in self.configs.items():
            records += [ConfigChanged(kind, name, key, value) for key, value in values.items()]
        records.append(ProducerIdsAllocated(self.next_producer_id))
        records += [FeatureChanged(name, level) for name, level in self.features.items()]
        return records

    def _broker_state(self, record: BrokerStateChanged) -> None:
        broker = self.brokers.get(record.broker_id)
        if broker is None or broker.broker_epoch != record.broker_epoch:
            return
        self.brokers[record.broker_id] = msgspec.structs.replace(
            broker,
            fenced=record.fenced,
            in_controlled_shutdown=record.in_controlled_shutdown,
        )

    def _remove_topic(self, record: TopicRemoved) -> None:
        topic = self.topics.pop(record.topic_id, None)
        if topic is None:
            return
        if self.topic_ids.get(topic.name) == record.topic_id:
            del self.topic_ids[topic.name]
        self.configs.pop((TOPIC_RESOURCE, topic.name), None)

    def _config(self, record: ConfigChanged) -> None:
        resource = (record.resource_type, record.resource_name)
        if record.value is not None:
            self.configs.setdefault(resource, {})[record.key] = record.value
            return
        values = self.configs.get(resource)
        if values is not None:
            values.pop(record.key, None)
            if not values:
                del self.configs[resource]
