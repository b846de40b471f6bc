"""A simulated cluster: real replica managers over real logs, a controller, a fake network.

The controller's decisions are the project's own; only its log and its heartbeats are
simulated. A crash drops a broker's process; what it wrote stays in its files, unless the
test takes some of it away.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

from mobula.actors.broker.messages import MetadataUpdate
from mobula.actors.config import Config
from mobula.actors.controller.election import changed, new_partition
from mobula.actors.controller.messages import (
    ALTER_PARTITION,
    REPLICA_ACTOR_STATE,
    AlterPartition,
    ReplicaActorState,
)
from mobula.actors.controller.partitions import PartitionControl
from mobula.actors.link.interface import Reply
from mobula.actors.metadata.image import TOPIC_RESOURCE, MetadataImage
from mobula.actors.metadata.records import (
    BrokerRegistered,
    BrokerStateChanged,
    ClusterCreated,
    ConfigChanged,
    Record,
    TopicCreated,
    TopicRemoved,
    encode_record,
)
from mobula.actors.replica.assignments import Assignments
from mobula.actors.replica.log_directory import LogDirectory
from mobula.actors.replica.maintenance import Maintenance
from mobula.actors.replica.messages import APPEND, PULL
from mobula.actors.replica.partition import Partition
from mobula.actors.replica.pull_loop import PullSettings
from mobula.actors.replica.replica_manager import ReplicaManager, ReplicaSettings
from mobula.actors.rows import RowsReader, RowsWriter
from mobula.actors.spec import CONTROLLER_NAME, purgatory_name, replica_name, rows_path
from tests.sim.network import Host, Network
from tests.sim.virtual import VirtualLoop

LAG_MS = 400
SESSION_MS = 300


class SimController:
    def __init__(self, cluster: SimCluster) -> None:
        self.image = MetadataImage()
        self.control = PartitionControl(self.image)
        self.log: list[Record] = []
        self._cluster = cluster
        self._host = Host(cluster.network, CONTROLLER_NAME)
        self._host.serve(ALTER_PARTITION, self._alter)
        self._host.serve(REPLICA_ACTOR_STATE, self._replica_state)
        self.commit([ClusterCreated("sim")])

    def commit(self, records: list[Record]) -> None:
        for record in records:
            self.log.append(record)
            self.image.replay(record)
        if records:
            for node in self._cluster.nodes.values():
                node.feed()

    def register(self, broker_id: int, data_dir: Path) -> int:
        epoch = len(self.log)
        self.commit(
            [
                BrokerRegistered(
                    broker_id, epoch, str(epoch), [], None, "node", str(data_dir), bytes(16), 1,
                    True, False,
                )
            ]
        )  # fmt: skip
        self.commit(self.control.leaves(broker_id))
        return epoch

    def fence(self, broker_id: int) -> None:
        broker = self.image.brokers[broker_id]
        if not broker.fenced:
            self.commit([BrokerStateChanged(broker_id, broker.broker_epoch, True, False)])
            self.commit(self.control.leaves(broker_id))

    def unfence(self, broker_id: int, broker_epoch: int) -> None:
        broker = self.image.brokers[broker_id]
        if broker.fenced and broker.broker_epoch == broker_epoch:
            self.commit([BrokerStateChanged(broker_id, broker_epoch, False, False)])
            self.commit(self.control.returns(broker_id))

    def create_topic(self, topic_id: bytes, name: str, partitions: int, **config: str) -> None:
        records: list[Record] = [TopicCreated(topic_id, name)]
        brokers = sorted(self._cluster.nodes)
        for index in range(partitions):
            replicas = brokers[index % len(brokers) :] + brokers[: index % len(brokers)]
            records.append(new_partition(topic_id, index, replicas, list(replicas)))
        for key, value in config.items():
            dotted = key.replace("_", ".")
            records.append(ConfigChanged(TOPIC_RESOURCE, name, dotted, value))
        self.commit(records)

    def delete_topic(self, topic_id: bytes) -> None:
        self.commit([TopicRemoved(topic_id)])

    def move_leader(self, topic_id: bytes, partition: int, random: Random) -> None:
        record = self.image.partition(topic_id, partition)
        assert record is not None
        candidates = [member for member in record.isr if self.control.is_active(member)]
        if candidates:
            moved = changed(record, leader=random.choice(candidates))
            self.commit([moved] if moved is not None else [])

    def _alter(self, message: AlterPartition, _bulk: memoryview, reply: Reply) -> None:
        outcome = self.control.alter(message)
        self.commit(list(outcome.records))
        reply(outcome.response)

    def _replica_state(self, message: ReplicaActorState, _bulk: memoryview, reply: Reply) -> None:
        outcome = self.control.replica_actor_state(message)
        self.commit(list(outcome.records))
        reply(outcome.response)


class SimNode:
    """A broker's one replica actor, through its lives."""

    def __init__(self, cluster: SimCluster, broker_id: int, data_dir: Path, config: Config) -> None:
        self.broker_id = broker_id
        self.name = replica_name(broker_id, 0)
        self.data_dir = data_dir
        self.host: Host | None = None
        self.lives = 0
        self._cluster = cluster
        self._config = config
        self._fed = -1
        self._feeding = False
        self.broker_epoch = -1

    @property
    def alive(self) -> bool:
        return self.host is not None

    def start(self) -> None:
        cluster = self._cluster
        self.lives += 1
        self.host = host = Host(cluster.network, self.name)
        self.directory = LogDirectory(self.data_dir, "replica-0")
        self.directory.load()
        incarnation = cluster.random.getrandbits(32)
        path = rows_path(str(cluster.run_dir), self.name)
        self._rows = RowsWriter(path, incarnation)
        self.rows = RowsReader(path)
        self.replicas = ReplicaManager(
            ReplicaSettings(
                name=self.name,
                broker_id=self.broker_id,
                incarnation=incarnation,
                lag_time_max_ms=LAG_MS,
                partition_max_bytes=cluster.partition_max_bytes,
                pull=PullSettings(broker_id=self.broker_id, max_bytes=20_000, max_wait_ms=50),
            ),
            scheduler=host,
            clock=cluster.loop,
            link=host.link,
            rows=self._rows,
        )
        self.maintenance = Maintenance(
            replicas=self.replicas,
            directory=self.directory,
            scheduler=host,
            background=_inline,
            wall_ms=cluster.loop.now_ms,
            retention_check_interval_ms=1_000,
            isr_check_interval_ms=LAG_MS // 2,
        )
        self.assignments = Assignments(
            name=self.name,
            broker_id=self.broker_id,
            ray_node_id="node",
            config=self._config,
            replicas=self.replicas,
            directory=self.directory,
            wall_ms=cluster.loop.now_ms,
            remove_later=self.maintenance.remove_later,
            sweep_later=self.maintenance.sweep_later,
        )
        self.broker_epoch = cluster.controller.register(self.broker_id, self.data_dir)
        self._fed = -1
        self._feeding = False
        self.feed()

    def crash(self) -> None:
        """The process dies. Its page cache lives on."""
        host, self.host = self.host, None
        assert host is not None
        self._cluster.network.detach(host)
        for partition in self.replicas:
            partition.log.release_files()
        self._rows.close()
        life = self.lives

        def expired() -> None:
            if self.lives == life and not self.alive:
                self._cluster.controller.fence(self.broker_id)

        self._cluster.loop.call_later(SESSION_MS / 1_000, expired)

    def close(self) -> None:
        """A clean end."""
        if self.host is not None:
            self.maintenance.stop()
            self.replicas.close()
            for partition in self.replicas:
                partition.log.close()
            self.directory.checkpoint(self.replicas).write()
            self.directory.mark_clean()
            self._cluster.network.detach(self.host)
            self._rows.close()
            self.host = None

    def partition(self, topic_id: bytes, index: int) -> Partition | None:
        return self.replicas.find((topic_id, index)) if self.alive else None

    def feed(self) -> None:
        """Metadata reaches the broker some time later, in order."""
        if self.host is not None and not self._feeding:
            self._feeding = True
            self.host.call_later(self._cluster.metadata_delay_s(), self._fed_now)

    def _fed_now(self) -> None:
        self._feeding = False
        controller = self._cluster.controller
        if not self._cluster.network.connected(self.name, CONTROLLER_NAME):
            self.feed()
            return
        records = [encode_record(record) for record in controller.log]
        end = len(records) - 1
        first = self._fed < 0
        if end == self._fed:
            return
        update = MetadataUpdate(self.broker_epoch, first, end, records[self._fed + 1 :])
        for _ in self.assignments.apply(update):
            pass
        self._fed = end
        if first:
            assert self.host is not None
            self.host.serve(APPEND, self.replicas.append)
            self.host.serve(PULL, self.replicas.pull)
            self.maintenance.start()
        assert self.host is not None
        self.host.call_later(
            self._cluster.metadata_delay_s(),
            lambda: controller.unfence(self.broker_id, self.broker_epoch),
        )


class SimCluster:
    def __init__(
        self,
        directory: Path,
        seed: int,
        *,
        brokers: int = 3,
        max_delay_ms: int = 5,
        config: dict[str, str] | None = None,
        partition_max_bytes: int = 5_000,
    ) -> None:
        self.random = Random(seed)
        self.loop = VirtualLoop()
        self.network = Network(self.loop, self.random, max_delay_ms)
        self.run_dir = directory / "run"
        self.run_dir.mkdir(parents=True)
        self.partition_max_bytes = partition_max_bytes
        self.nodes: dict[int, SimNode] = {}
        self.controller = SimController(self)
        settings = Config(config or {})
        for broker_id in range(brokers):
            data_dir = directory / f"broker-{broker_id}"
            self.nodes[broker_id] = SimNode(self, broker_id, data_dir, settings)
            Host(self.network, purgatory_name(broker_id))
        for node in self.nodes.values():
            node.start()
        self.loop.run_for(100)

    def metadata_delay_s(self) -> float:
        return self.network.delay_s()

    def close(self) -> None:
        for node in self.nodes.values():
            node.close()

    def leader(self, topic_id: bytes, index: int) -> SimNode | None:
        record = self.controller.image.partition(topic_id, index)
        return None if record is None else self.nodes.get(record.leader)


def _inline(work: Any, done: Any = lambda _: None) -> None:
    done(work())
