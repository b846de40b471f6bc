"""`mobula up` as `make up` runs it: what it prints, what it costs, how it ends."""

from __future__ import annotations

import os
import re
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from confluent_kafka.admin import AdminClient

from mobula.cluster.launch import status
from mobula.cluster.local import free_ports
from mobula.protocol.api import ApiKey
from mobula.protocol.messages import build_request, decode_response, encode
from tests.interop.clients import Confluent
from tests.support.records import by_partition, sample
from tests.support.waiting import wait_for

NAME = f"foreground-{os.getpid()}"
ALL_ACTORS_BYTES = 1_200_000_000


@contextmanager
def up(port: int, data_dir: Path) -> Iterator[subprocess.Popen[str]]:
    """The command under way; it is asked to end afterwards, if it has not ended by then."""
    command = "from mobula.cluster.cli import main; main()"
    options = ["--port", str(port), "--data-dir", str(data_dir), "--name", NAME]
    with subprocess.Popen(
        [sys.executable, "-c", command, "up", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGINT)


def read_until_ready(process: subprocess.Popen[str]) -> list[str]:
    assert process.stdout is not None
    lines: list[str] = []
    for line in process.stdout:
        lines.append(line.rstrip("\n"))
        if line.startswith("READY"):
            return lines
    assert process.stderr is not None
    raise AssertionError(f"it ended: {lines} {process.stderr.read()}")


def leader_of(bootstrap: str, topic: str) -> tuple[str, int]:
    """Where the leader of its first partition listens."""
    cluster = AdminClient({"bootstrap.servers": bootstrap}).list_topics(topic, timeout=30)
    leader = cluster.brokers[cluster.topics[topic].partitions[0].leader]
    return leader.host, leader.port


def ask_for_more(sock: socket.socket, topic: str, offset: int) -> None:
    """A fetch at the end of the topic's first partition that waits for half a minute."""
    partition = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
    tree = {
        "replica_id": -1,
        "max_wait": 30_000,
        "min_bytes": 1,
        "max_bytes": 1 << 20,
        "isolation_level": 0,
        "topics": [{"topic": topic, "partitions": [partition]}],
    }
    body = encode(build_request(ApiKey.FETCH, 4, tree))
    payload = struct.pack(">hhih", ApiKey.FETCH, 4, 7, -1) + body
    sock.sendall(struct.pack(">i", len(payload)) + payload)


def parked_fetches() -> int:
    return sum(
        actor["counters"]["fetch_waiting"]
        for broker in status(NAME)["brokers"]
        for actor in broker["actors"]
        if actor["kind"] == "purgatory"
    )


def memory_of_all_actors() -> int:
    document = status(NAME)
    pids = [actor["pid"] for broker in document["brokers"] for actor in broker["actors"]]
    assert document["controller"] is not None
    pids.append(document["controller"]["pid"])
    return sum(psutil.Process(pid).memory_full_info().uss for pid in pids)


def check_printed(lines: list[str], port: int, data_dir: Path) -> str:
    """The bootstrap that the last line names."""
    addresses = [f"127.0.0.1:{port + broker_id}" for broker_id in range(3)]
    assert lines[0].split() == ["BROKER", "ADDRESS", "DATA", "ACTORS"]
    for broker_id, row in enumerate(lines[1:4]):
        folder = str(data_dir / f"broker-{broker_id}")
        assert row.split(maxsplit=3)[:3] == [str(broker_id), addresses[broker_id], folder]
        assert re.search(r"broker, (2 )?gateway, purgatory, replica$", row)
    bootstrap = ",".join(addresses)
    assert any(line.startswith("kcat:") and addresses[0] in line for line in lines)
    assert any(line.startswith("Python:") and bootstrap in line for line in lines)
    assert lines[-1] == f"READY bootstrap={bootstrap}"
    return bootstrap


def test_it_says_where_everything_is_stays_and_ends_cleanly_with_ctrl_c(tmp_path: Path) -> None:
    port = free_ports(3)
    with up(port, tmp_path) as process:
        bootstrap = check_printed(read_until_ready(process), port, tmp_path)
        client, records = Confluent(), sample("kept", partitions=1)
        client.create_topic(bootstrap, "kept", 1)
        client.produce(bootstrap, "kept", "none", records)
        assert memory_of_all_actors() < ALL_ACTORS_BYTES
        started = psutil.Process(process.pid).children(recursive=True)
        with socket.create_connection(leader_of(bootstrap, "kept"), timeout=20) as waiting:
            ask_for_more(waiting, "kept", len(records))
            wait_for(lambda: parked_fetches() == 1, "the fetch to be parked")
            process.send_signal(signal.SIGINT)
            # What is parked is answered, not cut off.
            size, correlation_id = struct.unpack(">ii", waiting.recv(8, socket.MSG_WAITALL))
            answer = waiting.recv(size - 4, socket.MSG_WAITALL)
        rest, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "Traceback" not in rest + errors
    assert psutil.wait_procs(started, timeout=10)[1] == []
    assert correlation_id == 7
    (partition,) = decode_response(ApiKey.FETCH, 4, answer).responses[0].partitions
    assert (partition.error_code, partition.high_watermark) == (0, len(records))

    with up(port, tmp_path) as process:
        bootstrap = check_printed(read_until_ready(process), port, tmp_path)
        found = client.read_all(bootstrap, "kept", len(records))
    assert by_partition(found) == by_partition(records)
    assert process.returncode == 0
