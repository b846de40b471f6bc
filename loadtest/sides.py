"""The clusters that are compared: how each starts, where its clients go, what it uses."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import psutil
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from mobula.cluster import LocalCluster
from mobula.cluster.options import LaunchError
from mobula.cluster.state import find_cluster
from mobula.loadtest.apache_kafka import KafkaCluster
from mobula.loadtest.jobs import Failed
from mobula.loadtest.kafka_jars import NoKafkaError

COMMON = {
    "min.insync.replicas": "2",
    "default.replication.factor": "3",
    "log.segment.delete.delay.ms": "500",
}
"""What both sides are told; all else is as `make up`, and Kafka's own start script, have it.
The last one lets the files of a finished load go before the next begins."""

_ADMIN_TIMEOUT_S = 120
_DELETED_S = 60
_DESTROY_BROKER = -137
"""Of librdkafka; its Python binding has no name for it."""


class Cluster(Protocol):
    @property
    def bootstrap(self) -> str: ...
    def start(self) -> object: ...
    def stop(self) -> None: ...
    def processes(self) -> list[psutil.Process]: ...
    def check_alive(self) -> None:
        """Raises Failed when a process has ended by itself."""


class OurCluster:
    def __init__(self, folder: Path, settings: Mapping[str, str], brokers: int) -> None:
        self._cluster = LocalCluster(brokers, data_dir=folder, config={**COMMON, **settings})

    @property
    def bootstrap(self) -> str:
        return self._cluster.bootstrap

    def start(self) -> None:
        self._cluster.start()

    def stop(self) -> None:
        self._cluster.stop()

    def check_alive(self) -> None:
        """Only of the supervisor: an actor that ends is made anew."""
        try:
            find_cluster(self._cluster.name)
        except LaunchError as error:
            raise Failed(f"the supervisor of Mobula ended by itself: {error}") from None

    def processes(self) -> list[psutil.Process]:
        """Every process: Ray's own and the supervisor too."""
        supervisor = psutil.Process(find_cluster(self._cluster.name).pid)
        return [supervisor, *supervisor.children(recursive=True)]


@dataclass(frozen=True, slots=True)
class Usage:
    """Of all processes of a side together."""

    cpu_s: float
    uss_mb: float


class Side:
    """One cluster under comparison; its data goes when it stops."""

    def __init__(self, name: str, title: str, cluster: Cluster, folder: Path) -> None:
        self.name = name
        self.title = title
        self._cluster = cluster
        self._folder = folder
        self._admin: AdminClient | None = None

    @property
    def bootstrap(self) -> str:
        return self._cluster.bootstrap

    def start(self) -> None:
        """Returns when clients see every broker."""
        self._cluster.start()
        self._admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 2})
        end = time.monotonic() + _ADMIN_TIMEOUT_S
        while not self._sees_all(self._admin):
            if time.monotonic() > end:
                raise Failed(f"{self.title} was not ready after {_ADMIN_TIMEOUT_S} s")
            self._cluster.check_alive()
            time.sleep(0.02)

    def _sees_all(self, admin: AdminClient) -> bool:
        try:
            return len(admin.list_topics(timeout=1).brokers) == self.bootstrap.count(",") + 1
        except KafkaException:
            return False

    def stop(self) -> None:
        self._admin = None
        self._cluster.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def cpu_s(self) -> float:
        return sum(_cpu_s(process) for process in self._cluster.processes())

    def uss_mb(self) -> float:
        return sum(_uss(process) for process in self._cluster.processes()) / 1e6

    def create_topic(self, topic: str, partitions: int) -> None:
        """Returns when every partition has a leader."""
        assert self._admin is not None
        new = NewTopic(topic, partitions, replication_factor=3)
        end = time.monotonic() + _ADMIN_TIMEOUT_S
        while not self._created(self._admin, new) and time.monotonic() < end:
            time.sleep(0.02)
        while time.monotonic() < end:
            found = self._admin.list_topics(topic, timeout=60).topics[topic].partitions
            if len(found) == partitions and all(p.leader >= 0 for p in found.values()):
                return
        raise Failed(f"{topic} has no leaders after {_ADMIN_TIMEOUT_S} s")

    def _created(self, admin: AdminClient, new: NewTopic) -> bool:
        """False: librdkafka let go of the connection that it had asked on, as it does with
        those to bootstrap servers; the topic may be there or not."""
        try:
            admin.create_topics([new], operation_timeout=60)[new.topic].result(_ADMIN_TIMEOUT_S)
        except KafkaException as error:
            code = error.args[0].code()
            if code in (KafkaError._TRANSPORT, _DESTROY_BROKER):
                return False
            if code != KafkaError.TOPIC_ALREADY_EXISTS:
                raise
        return True

    def delete_topic(self, topic: str) -> None:
        """Returns when its files are gone: the next load finds the disk as this one did."""
        assert self._admin is not None
        self._admin.delete_topics([topic], operation_timeout=60)[topic].result(60)
        end = time.monotonic() + _DELETED_S
        while any(self._folder.glob(f"*/**/{topic}-*")):
            if time.monotonic() > end:
                raise Failed(f"{self.title} still has files of {topic} after {_DELETED_S} s")
            time.sleep(0.1)


def our_side(name: str, title: str, settings: Mapping[str, str], brokers: int = 3) -> Side:
    folder = _folder()
    return Side(name, title, OurCluster(folder, settings, brokers), folder)


def kafka_side(jars: Path) -> Side:
    """NoKafkaError when Java cannot run it."""
    folder = _folder()
    cluster = KafkaCluster(jars, folder, COMMON)
    try:
        cluster.format()
    except NoKafkaError:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return Side("kafka", "Apache Kafka", cluster, folder)


def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="mobula-versus-"))


def _cpu_s(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system)


def _uss(process: psutil.Process) -> float:
    try:
        return float(process.memory_full_info().uss)
    except psutil.NoSuchProcess:
        return 0.0
