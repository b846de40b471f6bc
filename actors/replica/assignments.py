"""What the metadata assigns to this replica actor, carried out.

Invariant: after an update every partition of this actor has the role that the image gives
it, and no other partition is here. A log that cannot be opened is offline and fails nothing
else.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from mobula.actors.broker.messages import MetadataUpdate
from mobula.actors.config import Config
from mobula.actors.config.topic import broker_config_now, log_config_of, topic_config_of
from mobula.actors.metadata.image import (
    BROKER_RESOURCE,
    TOPIC_RESOURCE,
    MetadataImage,
    TopicImage,
)
from mobula.actors.metadata.records import (
    BrokerRegistered,
    BrokerStateChanged,
    BrokerUnregistered,
    ConfigChanged,
    PartitionChanged,
    Record,
    TopicRemoved,
    decode_record,
)
from mobula.actors.placement import replica_actor_of
from mobula.actors.replica.leader import Leadership
from mobula.actors.replica.leader_files import LeaderFiles
from mobula.actors.replica.log_directory import LogDirectory
from mobula.actors.replica.partition import Partition
from mobula.actors.replica.pull_loops import Leader
from mobula.actors.replica.pull_session import Key
from mobula.actors.replica.replica_manager import ReplicaManager
from mobula.actors.replica.torn_logs import TornLogs
from mobula.protocol.errors import KafkaError
from mobula.storage.config import LogConfig

log = logging.getLogger(__name__)

_AT_ONCE = 50
"""Partitions opened or given a role before other work gets its turn."""


class Assignments:
    def __init__(
        self,
        *,
        name: str,
        broker_id: int,
        ray_node_id: str,
        config: Config,
        replicas: ReplicaManager,
        directory: LogDirectory,
        wall_ms: Callable[[], int],
        remove_later: Callable[[Path], None],
        sweep_later: Callable[[str, bytes, int], None],
        on_noted: Callable[[], None] = lambda: None,
    ) -> None:
        """`remove_later` removes a folder that was set aside, off the data path;
        `sweep_later` the folder of a deleted partition that another actor had. `on_noted`
        runs when the controller has taken note of a log that lost its end."""
        self.image = MetadataImage()
        self._name = name
        self._broker_id = broker_id
        self._ray_node_id = ray_node_id
        self._config = config
        self._replicas = replicas
        self._directory = directory
        self._wall_ms = wall_ms
        self._remove_later = remove_later
        self._sweep_later = sweep_later
        self._on_noted = on_noted
        self._started_s = wall_ms() / 1000
        self._recovered = False
        self._configs: dict[str, tuple[LogConfig, int]] = {}
        self._failed: set[Key] = set()
        """Their logs could not be opened."""
        self._torn = TornLogs(replicas.reports, self._trusted)

    def apply(self, update: MetadataUpdate) -> Iterator[None]:
        """Carry an update out, with a pause for other work after each step."""
        records = [decode_record(record) for record in update.records]
        self._replicas.finish_turn()
        self._replicas.registered(update.broker_epoch)
        if update.snapshot:
            self.image = MetadataImage()
        removed = self._removed(records) if not update.snapshot else []
        self.image.replay_all(records)
        self.image.offset = update.offset
        self._configs.clear()
        if update.snapshot:
            gone = self._stop_missing()
        else:
            gone = bool(removed)
            for topic in removed:
                self._remove_topic(topic)
        if gone:
            self._write_checkpoint()
        if update.snapshot or any(isinstance(r, _BROKER_RECORDS) for r in records):
            self._brokers_changed()
        for _ in self._assign(self._touched(update.snapshot, records)):
            yield
            # What came in meanwhile must not be written under another role.
            self._replicas.finish_turn()
        if any(isinstance(record, ConfigChanged) for record in records):
            self._reconfigure(records)
        if not self._recovered:
            self._recovered = True
            self._first_image()
        self._replicas.finish_turn()

    def _write_checkpoint(self) -> None:
        """Before a topic of the same name can be here: it must not inherit the offsets."""
        try:
            self._directory.checkpoint(self._replicas).write()
        except OSError as error:
            log.error("checkpoint not written reason=%s", error)

    def _removed(self, records: Iterable[Record]) -> list[TopicImage]:
        return [
            self.image.topics[record.topic_id]
            for record in records
            if isinstance(record, TopicRemoved) and record.topic_id in self.image.topics
        ]

    def _touched(self, snapshot: bool, records: list[Record]) -> list[PartitionChanged]:
        if snapshot:
            return [
                partition
                for topic in self.image.topics.values()
                for partition in topic.partitions.values()
            ]
        keys = dict.fromkeys(
            (record.topic_id, record.partition)
            for record in records
            if isinstance(record, PartitionChanged)
        )
        moved = {r.broker_id for r in records if isinstance(r, BrokerRegistered)}
        if moved:
            # Their leaders may be reached elsewhere, or in another way.
            for partition in self._replicas:
                follower = partition.follower
                if follower is not None and follower.leader_id in moved:
                    keys[partition.key] = None
        found = (self.image.partition(*key) for key in keys)
        return [partition for partition in found if partition is not None]

    def _assign(self, touched: Iterable[PartitionChanged]) -> Iterator[None]:
        for index, record in enumerate(touched, 1):
            if index % _AT_ONCE == 0:
                yield
            key = (record.topic_id, record.partition)
            partition = self._replicas.find(key)
            if not self._mine(record):
                if partition is not None:
                    self._stop(partition, delete=self._broker_id not in record.replicas)
                continue
            if partition is None:
                partition = self._open(key)
            if partition is not None:
                self._give_role(partition, record)

    def _mine(self, record: PartitionChanged) -> bool:
        return self._broker_id in record.replicas and self._name == replica_actor_of(
            self.image, self._broker_id, record.topic_id, record.partition
        )

    def _open(self, key: Key) -> Partition | None:
        topic = self.image.topics[key[0]].name
        config, min_insync_replicas = self._topic_config(topic)
        try:
            partition = self._directory.open(key, topic, config, self._wall_ms())
        except (KafkaError, OSError) as error:
            if key not in self._failed:
                log.error("log cannot be opened partition=%s-%d reason=%s", topic, key[1], error)
            self._failed.add(key)
            self._replicas.reports.report(key, online=False)
            return None
        self._failed.discard(key)
        partition.min_insync_replicas = min_insync_replicas
        self._replicas.add(partition)
        if partition.lost_its_end:
            log.warning(
                "log is shorter than it was partition=%s log_end_offset=%d",
                partition.name,
                partition.log_end_offset,
            )
            self._torn.found(key)
        return partition

    def _give_role(self, partition: Partition, record: PartitionChanged) -> None:
        if record.leader == self._broker_id:
            if not self._torn.may_lead(partition.key, self.image.offset):
                self._replicas.idle(partition, record.leader_epoch)
                return
            self._replicas.lead(
                partition,
                Leadership(
                    record.leader_epoch,
                    record.partition_epoch,
                    tuple(record.replicas),
                    tuple(record.isr),
                ),
            )
            return
        leader = self._leader(record)
        if leader is None:
            self._replicas.idle(partition, record.leader_epoch)
        else:
            self._replicas.follow(partition, record.leader_epoch, leader)

    def _trusted(self, key: Key) -> None:
        partition = self._replicas.find(key)
        record = self.image.partition(*key)
        if partition is not None and record is not None:
            self._give_role(partition, record)
        self._on_noted()

    def losses_noted(self) -> bool:
        """Whether the controller knows of every log here that lost its end."""
        return self._torn.all_noted()

    def _leader(self, record: PartitionChanged) -> Leader | None:
        broker = self.image.brokers.get(record.leader)
        if broker is None:
            return None
        actor = replica_actor_of(self.image, record.leader, record.topic_id, record.partition)
        ranges = (
            self._config.string("replica.pull.ranges") == "auto"
            and broker.ray_node_id == self._ray_node_id
            and LeaderFiles.reachable(broker.data_dir)
        )
        return Leader(record.leader, actor, broker.data_dir if ranges else "")

    def _brokers_changed(self) -> None:
        live = {
            broker.broker_id: broker.broker_epoch
            for broker in self.image.brokers.values()
            if not broker.fenced and not broker.in_controlled_shutdown
        }
        if live != self._replicas.live_brokers:
            self._replicas.live_brokers.clear()
            self._replicas.live_brokers.update(live)
            self._replicas.isrs.brokers_changed()

    def _stop_missing(self) -> bool:
        """After a snapshot: what is here and not in it is gone. True when anything was."""
        missing = [p for p in self._replicas if self.image.partition(*p.key) is None]
        for partition in missing:
            self._stop(partition, delete=True)
        return bool(missing)

    def _remove_topic(self, topic: TopicImage) -> None:
        for index in topic.partitions:
            partition = self._replicas.find((topic.topic_id, index))
            if partition is not None:
                self._stop(partition, delete=True)
            elif self._directory.first and self._broker_id in topic.partitions[index].replicas:
                self._sweep_later(topic.name, topic.topic_id, index)
            self._failed.discard((topic.topic_id, index))

    def _stop(self, partition: Partition, *, delete: bool) -> None:
        self._replicas.stop(partition)
        self._torn.forget(partition.key)
        if not delete:
            partition.log.close()
            return
        partition.log.release_files()
        folder = self._directory.set_aside_deleted(partition.log.directory, partition.key[0])
        if folder is not None:
            self._remove_later(folder)

    def _first_image(self) -> None:
        self._directory.forget_loaded()
        if not self._directory.first:
            return
        broker = self.image.brokers.get(self._broker_id)
        if broker is not None:
            self._directory.forget_actors(broker.num_replica_actors)
        expected = {
            f"{topic.name}-{index}"
            for topic in self.image.topics.values()
            for index, partition in topic.partitions.items()
            if self._broker_id in partition.replicas
        }
        for stray in self._directory.strays(expected, self._started_s):
            moved = self._directory.set_aside(stray, "stray")
            log.warning("folder of no known partition set aside folder=%s", moved)
        for folder in self._directory.deleted():
            self._remove_later(folder)

    def _reconfigure(self, records: Iterable[Record]) -> None:
        changed = [record for record in records if isinstance(record, ConfigChanged)]
        everything = any(record.resource_type == BROKER_RESOURCE for record in changed)
        topics = {r.resource_name for r in changed if r.resource_type == TOPIC_RESOURCE}
        for partition in self._replicas:
            if everything or partition.topic in topics:
                config, min_insync_replicas = self._topic_config(partition.topic)
                self._replicas.reconfigure(partition, config, min_insync_replicas)

    def _topic_config(self, topic: str) -> tuple[LogConfig, int]:
        known = self._configs.get(topic)
        if known is None:
            broker = broker_config_now(self.image, self._config, self._broker_id)
            config = topic_config_of(self.image.configs.get((TOPIC_RESOURCE, topic), {}), broker)
            known = (log_config_of(config, broker), config.integer("min.insync.replicas"))
            self._configs[topic] = known
        return known


_BROKER_RECORDS = (BrokerRegistered, BrokerStateChanged, BrokerUnregistered)
