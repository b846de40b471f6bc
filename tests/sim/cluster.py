"""A simulated cluster: real replica managers over real logs, a controller, a fake network.

The controller's decisions are the project's own; its log is a list, and brokers reach it by
plain calls as long as nothing is cut. A crash drops processes: all of a broker, its replica
actor, its broker actor, the controller. What was written stays in its files, unless the test
takes some of it away.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import pytest

from mobula.actors.broker.messages import MetadataUpdate
from mobula.actors.config import Config
from mobula.actors.controller.core import ControllerCore
from mobula.actors.controller.election import changed, new_partition
from mobula.actors.controller.messages import (
    ALTER_PARTITION,
    REPLICA_ACTOR_STATE,
    AlterPartition,
    Heartbeat,
    RegisterBroker,
    ReplicaActorState,
)
from mobula.actors.controller.outcome import Outcome
from mobula.actors.link.interface import Reply
from mobula.actors.metadata.image import TOPIC_RESOURCE, MetadataImage
from mobula.actors.metadata.records import (
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
from mobula.storage.segment import Segment
from tests.sim.network import Host, Network
from tests.sim.virtual import VirtualLoop

LAG_MS = 400
SESSION_MS = 300
HEARTBEAT_MS = 50
_RETRY_S = 0.02

ResponseT = TypeVar("ResponseT")


class SimController:
    """The project's own controller core through its lives. Its log outlives it."""

    def __init__(self, cluster: SimCluster) -> None:
        self.log: list[Record] = []
        self.up = False
        self._cluster = cluster
        self._config = Config(
            {
                "broker.session.timeout.ms": str(SESSION_MS),
                "broker.heartbeat.interval.ms": str(HEARTBEAT_MS),
            }
        )
        self.start()
        self.commit([ClusterCreated("sim")])
        self._tick()

    def start(self) -> None:
        cluster = self._cluster
        self.image = MetadataImage()
        self.image.replay_all(self.log)
        self.core = ControllerCore(
            self.image, self._config, cluster.random, cluster.loop.monotonic_ms()
        )
        self.control = self.core.partitions
        self._host = Host(cluster.network, CONTROLLER_NAME)
        self._host.serve(ALTER_PARTITION, self._alter)
        self._host.serve(REPLICA_ACTOR_STATE, self._replica_state)
        self.up = True

    def crash(self) -> None:
        """What it decided is on disk; what it knew of sessions and actors is gone."""
        self._cluster.network.detach(self._host)
        self.up = False

    def commit(self, records: list[Record]) -> None:
        for record in records:
            self.log.append(record)
            self.image.replay(record)
        if records:
            for node in self._cluster.nodes.values():
                node.feed()

    def decide(self, outcome: Outcome[ResponseT]) -> ResponseT:
        self.commit(list(outcome.records))
        return outcome.response

    def fence(self, broker_id: int) -> None:
        broker = self.image.brokers[broker_id]
        if not broker.fenced:
            self.commit(self.core._brokers._fence([broker]))

    def _tick(self) -> None:
        loop = self._cluster.loop
        loop.call_later(HEARTBEAT_MS / 1_000, self._tick)
        if self.up:
            now_ms = loop.monotonic_ms()
            self.core.tick(now_ms, HEARTBEAT_MS)
            self.commit(self.core.fence_stale(now_ms))

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
        reply(self.decide(self.core.alter_partition(message)))

    def _replica_state(self, message: ReplicaActorState, _bulk: memoryview, reply: Reply) -> None:
        reply(self.decide(self.core.replica_actor_state(message)))


class SimNode:
    """A broker and its one replica actor, each through its lives."""

    def __init__(self, cluster: SimCluster, broker_id: int, data_dir: Path, config: Config) -> None:
        self.broker_id = broker_id
        self.name = replica_name(broker_id, 0)
        self.data_dir = data_dir
        self.host: Host | None = None
        self.lives = 0
        """Of the replica actor."""
        self.broker_epoch = -1
        self.broker_up = False
        self._broker_lives = 0
        self._cluster = cluster
        self._config = config
        self._known = self._fed = -1
        self._feeding = self._held = self._away = False

    @property
    def alive(self) -> bool:
        """The replica actor runs."""
        return self.host is not None

    def start(self) -> None:
        """Everything: the processes of the broker began anew."""
        self.start_actor()
        self.start_broker()

    def crash(self) -> None:
        """All processes die. Their page cache lives on."""
        self.crash_broker()
        if self.alive:
            self._end_actor()

    def start_broker(self) -> None:
        self._broker_lives += 1
        self.broker_up = True
        self._known = self._fed = -1
        self._feeding = self._held = self._away = False
        self._register(replicas_restarted=not (self.alive and self._serves))

    def crash_broker(self) -> None:
        """Only the broker actor dies: its replica actor goes on with what it knows."""
        self._broker_lives += 1
        self.broker_up = False

    def crash_actor(self) -> None:
        """Only the replica actor dies, and its broker sees it. `start_actor` comes next."""
        self._end_actor()
        if self.broker_up:
            self._held = self._away = True
            self._report(online=False)

    def _end_actor(self) -> None:
        host, self.host = self.host, None
        assert host is not None
        self._cluster.network.detach(host)
        for partition in self.replicas:
            partition.log.release_files()
        self._rows.close()

    def start_actor(self) -> None:
        cluster = self._cluster
        self.lives += 1
        self._serves = False
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
        self._fed = -1
        self.feed()

    # The broker actor.

    def _later(self, delay_s: float, work: Callable[[], None]) -> None:
        """Unless the broker has ended by then."""
        life = self._broker_lives
        self._cluster.loop.call_later(
            delay_s, lambda: work() if self._broker_lives == life and self.broker_up else None
        )

    def _reaches_controller(self) -> bool:
        cluster = self._cluster
        return cluster.controller.up and not cluster.network.is_cut(self.name, CONTROLLER_NAME)

    def _register(self, *, replicas_restarted: bool) -> None:
        cluster = self._cluster
        if not self._reaches_controller():
            self._later(_RETRY_S, lambda: self._register(replicas_restarted=replicas_restarted))
            return
        request = RegisterBroker(
            self.broker_id, "sim", f"{self.broker_id}/{self._broker_lives}", [], None, "node",
            str(self.data_dir), bytes([self.broker_id + 1] * 16), 1, replicas_restarted,
        )  # fmt: skip
        controller = cluster.controller
        accepted = controller.decide(
            controller.core.register_broker(request, cluster.loop.monotonic_ms())
        )
        assert accepted.error_code == 0, accepted
        self.broker_epoch = accepted.broker_epoch
        self.feed()
        self._heartbeat()

    def _heartbeat(self) -> None:
        cluster = self._cluster
        self._later(HEARTBEAT_MS / 1_000, self._heartbeat)
        if self._reaches_controller():
            beat = Heartbeat(
                self.broker_id, self.broker_epoch, self._known, not self._ever_served, False
            )
            controller = cluster.controller
            answer = controller.decide(controller.core.heartbeat(beat, cluster.loop.monotonic_ms()))
            assert answer.error_code == 0, "nobody else can have registered this broker"

    @property
    def _ever_served(self) -> bool:
        """Since the broker began: after that the controller hears of actors that go and come."""
        return self._away or (self.alive and self._serves and self.assignments.losses_noted())

    def _report(self, *, online: bool) -> None:
        cluster = self._cluster
        if not self._reaches_controller():
            self._later(_RETRY_S, lambda: self._report(online=online))
            return
        held = [(p.topic_id, p.partition) for p in cluster.controller.image.partitions()]
        state = ReplicaActorState(self.broker_id, self.broker_epoch, online, held)
        controller = cluster.controller
        noted = controller.decide(controller.core.replica_actor_state(state))
        assert noted.error_code == 0
        if not online:
            self._release_after(noted.metadata_offset)

    def _release_after(self, offset: int) -> None:
        if self._known < offset:
            self._later(_RETRY_S, lambda: self._release_after(offset))
            return
        self._held = False
        self.feed()

    def feed(self) -> None:
        """Metadata reaches the broker some time later, in order."""
        if self.broker_up and self.broker_epoch >= 0 and not self._feeding:
            self._feeding = True
            self._later(self._cluster.metadata_delay_s(), self._fed_now)

    def _fed_now(self) -> None:
        self._feeding = False
        if not self._reaches_controller():
            self.feed()
            return
        self._known = end = len(self._cluster.controller.log) - 1
        if self.host is None or self._held or end == self._fed or end < self.broker_epoch:
            return
        records = [encode_record(record) for record in self._cluster.controller.log]
        first = self._fed < 0
        update = MetadataUpdate(self.broker_epoch, first, end, records[self._fed + 1 :])
        for _ in self.assignments.apply(update):
            pass
        self._fed = end
        if not self._serves:
            self._serves = True
            self.host.serve(APPEND, self.replicas.append)
            self.host.serve(PULL, self.replicas.pull)
            self.maintenance.start()
            if self._away:
                self._away = False
                self._report(online=True)

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
        self.crash_broker()

    def partition(self, topic_id: bytes, index: int) -> Partition | None:
        return self.replicas.find((topic_id, index)) if self.alive else None


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
        self.full_disks: set[str] = set()
        """Data folders in which no segment grows."""
        self._disks = pytest.MonkeyPatch()
        self._disks.setattr(Segment, "write", self._write(Segment.write))
        self._disks.setattr(Segment, "create_file", self._write(Segment.create_file))
        self.controller = SimController(self)
        settings = Config(config or {})
        for broker_id in range(brokers):
            data_dir = directory / f"broker-{broker_id}"
            self.nodes[broker_id] = SimNode(self, broker_id, data_dir, settings)
            Host(self.network, purgatory_name(broker_id))
        for node in self.nodes.values():
            node.start()
        self.loop.run_for(200)

    def _write(self, real: Callable[..., None]) -> Callable[..., None]:
        def write(segment: Segment, *args: Any) -> None:
            if self.full_disks and any(str(segment.path).startswith(d) for d in self.full_disks):
                raise OSError(errno.ENOSPC, "No space left on device")
            real(segment, *args)

        return write

    def metadata_delay_s(self) -> float:
        return self.network.delay_s()

    def close(self) -> None:
        self.full_disks.clear()
        for node in self.nodes.values():
            node.close()
        self._disks.undo()

    def leader(self, topic_id: bytes, index: int) -> SimNode | None:
        record = self.controller.image.partition(topic_id, index)
        return None if record is None else self.nodes.get(record.leader)


def _inline(work: Any, done: Any = lambda _: None) -> None:
    done(work())
