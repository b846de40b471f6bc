"""Topics: made, removed, given more partitions.

Every refusal is a KafkaError with the code and sentence that Kafka gives.

Invariant: nothing here changes the image; every method returns the records that would.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from mobula.actors.config import Config, ConfigError
from mobula.actors.config.topic import validate_all
from mobula.actors.controller.election import new_partition
from mobula.actors.controller.partitions import PartitionControl
from mobula.actors.controller.replica_placer import UsableBroker, place
from mobula.actors.metadata.image import TOPIC_RESOURCE, MetadataImage
from mobula.actors.metadata.records import ConfigChanged, Record, TopicCreated, TopicRemoved
from mobula.actors.metadata.topic_name import collision_key, validate_topic_name
from mobula.protocol.errors import ErrorCode, KafkaError

MAX_NEW_PARTITIONS = 10_000
"""In one request: a bound on one commit, as Kafka's on the records of one operation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """What a client asks for. -1: the default."""

    name: str
    num_partitions: int = -1
    replication_factor: int = -1
    assignments: Sequence[tuple[int, Sequence[int]]] = ()
    """(partition, replicas): the client's own placement."""
    configs: Sequence[tuple[str, str | None]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedTopic:
    topic_id: bytes
    num_partitions: int
    replication_factor: int
    configs: Mapping[str, str]
    records: list[Record]


class TopicControl:
    def __init__(
        self, image: MetadataImage, partitions: PartitionControl, config: Config, random: Random
    ) -> None:
        self._image = image
        self._partitions = partitions
        self._config = config
        self._random = random

    def collision_keys(self) -> dict[str, str]:
        """The topics there are, by what new names must differ in."""
        return {collision_key(name): name for name in self._image.topic_ids}

    def create(self, topic: NewTopic, taken: Mapping[str, str]) -> CreatedTopic:
        """Records for one topic; `taken` are `collision_keys`, those of topics made earlier in
        the same request among them."""
        if topic.name in self._image.topic_ids:
            raise KafkaError(
                ErrorCode.topic_already_exists, f"Topic '{topic.name}' already exists."
            )
        validate_topic_name(topic.name)
        other = taken.get(collision_key(topic.name))
        if other is not None:
            raise KafkaError(
                ErrorCode.invalid_topic_exception,
                f"Topic '{topic.name}' collides with existing topic: {other}",
            )
        configs = _checked_configs(topic.configs)
        placement = self._assigned(topic) if topic.assignments else self._placed(topic)
        topic_id = random_uuid(self._random)
        return CreatedTopic(
            topic_id=topic_id,
            num_partitions=len(placement),
            replication_factor=len(placement[0]),
            configs=configs,
            records=[
                TopicCreated(topic_id, topic.name),
                *(
                    ConfigChanged(TOPIC_RESOURCE, topic.name, key, value)
                    for key, value in configs.items()
                ),
                *self._new_partitions(topic_id, 0, placement),
            ],
        )

    def delete(self, topic_id: bytes) -> list[Record]:
        if topic_id not in self._image.topics:
            raise KafkaError(ErrorCode.unknown_topic_id, "This server does not host this topic ID.")
        return [TopicRemoved(topic_id)]

    def add_partitions(
        self,
        name: str,
        count: int,
        assignments: Sequence[Sequence[int]] | None,
        budget: int,
    ) -> list[Record]:
        """Records for the partitions that bring the topic to `count`."""
        topic = self._image.topic(name)
        if topic is None:
            raise KafkaError(ErrorCode.unknown_topic_or_partition)
        present = len(topic.partitions)
        _check_increase(name, present, count)
        additional = count - present
        if assignments is not None and len(assignments) != additional:
            raise KafkaError(
                ErrorCode.invalid_replica_assignment,
                f"Attempted to add {additional} additional partition(s), but only "
                f"{len(assignments)} assignment(s) were specified.",
            )
        _check_budget(additional, budget)
        replication_factor = len(topic.partitions[0].replicas)
        if assignments is None:
            placement = place(self._usable(), additional, replication_factor, self._random)
        else:
            placement = [list(replicas) for replicas in assignments]
            for index, replicas in enumerate(placement, present):
                self._check_assignment(index, replicas, replication_factor)
        return self._new_partitions(topic.topic_id, present, placement)

    def _placed(self, topic: NewTopic) -> list[list[int]]:
        replication_factor, partitions = topic.replication_factor, topic.num_partitions
        if replication_factor < -1 or replication_factor == 0:
            raise KafkaError(
                ErrorCode.invalid_replication_factor,
                "Replication factor must be larger than 0, or -1 to use the default value.",
            )
        if partitions < -1 or partitions == 0:
            raise KafkaError(
                ErrorCode.invalid_partitions,
                "Number of partitions was set to an invalid non-positive value.",
            )
        if partitions == -1:
            partitions = self._config.integer("num.partitions")
        if replication_factor == -1:
            replication_factor = self._config.integer("default.replication.factor")
        try:
            return place(self._usable(), partitions, replication_factor, self._random)
        except KafkaError as error:
            raise KafkaError(
                error.code,
                f"Unable to replicate the partition {replication_factor} time(s): {error.detail}",
            ) from None

    def _assigned(self, topic: NewTopic) -> list[list[int]]:
        if topic.replication_factor != -1:
            raise KafkaError(
                ErrorCode.invalid_request,
                "A manual partition assignment was specified, but replication factor was not "
                "set to -1.",
            )
        if topic.num_partitions != -1:
            raise KafkaError(
                ErrorCode.invalid_request,
                "A manual partition assignment was specified, but numPartitions was not set to -1.",
            )
        placement: dict[int, list[int]] = {}
        replication_factor: int | None = None
        for index, replicas in topic.assignments:
            if index in placement:
                raise KafkaError(
                    ErrorCode.invalid_replica_assignment,
                    f"Found multiple manual partition assignments for partition {index}",
                )
            self._check_assignment(index, replicas, replication_factor)
            replication_factor = len(replicas)
            placement[index] = list(replicas)
        if sorted(placement) != list(range(len(placement))):
            raise KafkaError(
                ErrorCode.invalid_replica_assignment,
                "partitions should be a consecutive 0-based integer sequence",
            )
        return [placement[index] for index in range(len(placement))]

    def _check_assignment(
        self, index: int, replicas: Sequence[int], replication_factor: int | None
    ) -> None:
        reason = self._bad_assignment(index, replicas, replication_factor)
        if reason is not None:
            raise KafkaError(ErrorCode.invalid_replica_assignment, reason)

    def _bad_assignment(
        self, index: int, replicas: Sequence[int], replication_factor: int | None
    ) -> str | None:
        if not replicas:
            return "The manual partition assignment includes an empty replica list."
        for broker_id in sorted(replicas):
            if broker_id not in self._image.brokers:
                return (
                    f"The manual partition assignment includes broker {broker_id}, but no such "
                    "broker is registered."
                )
            if replicas.count(broker_id) > 1:
                return (
                    f"The manual partition assignment includes the broker {broker_id} more than "
                    "once."
                )
        if replication_factor not in (None, len(replicas)):
            return (
                f"The manual partition assignment includes a partition with {len(replicas)} "
                "replica(s), but this is not consistent with previous partitions, which have "
                f"{replication_factor} replica(s)."
            )
        if not any(self._partitions.is_active(broker_id) for broker_id in replicas):
            return (
                "All brokers specified in the manual partition assignment for partition "
                f"{index} are fenced or in controlled shutdown."
            )
        return None

    def _usable(self) -> list[UsableBroker]:
        return [
            UsableBroker(broker.broker_id, broker.rack, broker.fenced)
            for broker in self._image.brokers.values()
            if broker.fenced or not broker.in_controlled_shutdown
        ]

    def _new_partitions(
        self, topic_id: bytes, first: int, placement: Iterable[list[int]]
    ) -> list[Record]:
        active = {b for b in self._image.brokers if self._partitions.is_active(b)}
        return [
            new_partition(topic_id, index, replicas, [r for r in replicas if r in active])
            for index, replicas in enumerate(placement, first)
        ]


def random_uuid(random: Random) -> bytes:
    return uuid.UUID(bytes=random.randbytes(16), version=4).bytes


def _checked_configs(configs: Sequence[tuple[str, str | None]]) -> dict[str, str]:
    missing = [key for key, value in configs if value is None]
    if missing:
        raise KafkaError(
            ErrorCode.invalid_config,
            f"Null value not supported for topic configs: {','.join(missing)}",
        )
    values = {key: value for key, value in configs if value is not None}
    try:
        validate_all(values)
    except ConfigError as error:
        raise KafkaError(ErrorCode.invalid_config, str(error)) from None
    return values


def _check_budget(partitions: int, budget: int) -> None:
    if partitions > budget:
        raise KafkaError(
            ErrorCode.policy_violation,
            "Unable to perform excessively large batch operation: "
            f"{MAX_NEW_PARTITIONS} partitions can be made at a time.",
        )


def _check_increase(name: str, present: int, count: int) -> None:
    if count == present:
        raise KafkaError(ErrorCode.invalid_partitions, f"Topic already has {present} partition(s).")
    if count < present:
        raise KafkaError(
            ErrorCode.invalid_partitions,
            f"The topic {name} currently has {present} partition(s); {count} would not be an "
            "increase.",
        )
