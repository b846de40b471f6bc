"""Three nodes of Apache Kafka on this machine, as its own start script would run them."""

from __future__ import annotations

import os
import signal
import subprocess
import uuid
from base64 import urlsafe_b64encode
from pathlib import Path

import psutil

from mobula.cluster.local import free_ports
from mobula.loadtest.jobs import Failed
from mobula.loadtest.kafka_jars import NoKafkaError

_JVM = (
    "-Xmx1G", "-Xms1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent",
    "-XX:MaxInlineLevel=15", "-Djava.awt.headless=true",
)  # fmt: skip
_FORMAT_TIMEOUT_S = 60
_STOP_TIMEOUT_S = 30


class KafkaCluster:
    """Combined brokers and controllers (KRaft). Data goes with the folder, which the caller
    owns."""

    def __init__(self, jars: Path, folder: Path, settings: dict[str, str], nodes: int = 3) -> None:
        self._jars = jars
        self._folder = folder
        self._settings = settings
        self._nodes = nodes
        first = free_ports(2 * nodes)
        self._ports = range(first, first + nodes)
        self._controller_ports = range(first + nodes, first + 2 * nodes)
        self._running: list[subprocess.Popen[bytes]] = []

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self._ports)

    def format(self) -> None:
        """Once, before the first start. NoKafkaError when Java cannot run Kafka's tool."""
        cluster_id = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        for node in range(self._nodes):
            folder = self._folder / f"kafka-{node}"
            folder.mkdir(parents=True)
            self._file(node).write_text(self._properties(node))
            log = folder / "format.log"
            tool = self._java(
                ["-Xmx256m"], "kafka.tools.StorageTool", "format", "-t", cluster_id,
                "-c", str(self._file(node)), out=log,
            )  # fmt: skip
            try:
                code = tool.wait(_FORMAT_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                tool.kill()
                tool.wait()
                raise NoKafkaError(f"no disk format within {_FORMAT_TIMEOUT_S} s") from None
            if code != 0:
                raise NoKafkaError(f"its disk format fails: {_last_line(log)}")

    def start(self) -> None:
        """Returns at once; a client finds out when it is ready."""
        for node in range(self._nodes):
            arguments = "kafka.Kafka", str(self._file(node))
            self._running.append(self._java(_JVM, *arguments, out=self._log(node)))

    def stop(self) -> None:
        for process in self._running:
            process.send_signal(signal.SIGTERM)
        for process in self._running:
            try:
                process.wait(_STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._running.clear()

    def processes(self) -> list[psutil.Process]:
        return [psutil.Process(process.pid) for process in self._running]

    def check_alive(self) -> None:
        """Raises Failed with the last of its log when a node has ended by itself."""
        for node, process in enumerate(self._running):
            if process.poll() is not None:
                said = self._log(node).read_text(errors="replace")[-2000:]
                raise Failed(f"node {node} of Apache Kafka ended by itself: {said}")

    def _log(self, node: int) -> Path:
        return self._folder / f"kafka-{node}" / "server.log"

    def _file(self, node: int) -> Path:
        return self._folder / f"kafka-{node}" / "server.properties"

    def _properties(self, node: int) -> str:
        voters = ",".join(
            f"{voter}@127.0.0.1:{port}" for voter, port in enumerate(self._controller_ports)
        )
        settings = {
            "process.roles": "broker,controller",
            "node.id": str(node),
            "controller.quorum.voters": voters,
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://127.0.0.1:{self._ports[node]},"
            f"CONTROLLER://127.0.0.1:{self._controller_ports[node]}",
            "log.dirs": str(self._folder / f"kafka-{node}" / "data"),
            "offsets.topic.replication.factor": "3",
            "transaction.state.log.replication.factor": "3",
            **self._settings,
        }
        return "".join(f"{key}={value}\n" for key, value in settings.items())

    def _java(
        self, options: tuple[str, ...] | list[str], main: str, *arguments: str, out: Path
    ) -> subprocess.Popen[bytes]:
        with out.open("ab") as log:
            return subprocess.Popen(
                ["java", *options, "-cp", f"{self._jars}/*", main, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                env={key: value for key, value in os.environ.items() if key != "CLASSPATH"},
                start_new_session=True,
            )


def _last_line(log: Path) -> str:
    """That says something: Java ends what it says with where it came from."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines()]
    said = [line for line in lines if line and not line.startswith(("at ", "... "))]
    return said[-1] if said else "it said nothing"
