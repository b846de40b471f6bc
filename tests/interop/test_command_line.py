"""The command line as a user types it, against a cluster that it started itself."""

from __future__ import annotations

import json
import os
import pty
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer

from mobula.cluster.local import free_ports
from mobula.cluster.state import find_cluster

MOBULA = [sys.executable, "-c", "from mobula.cluster.cli import main; main()"]
NAME = f"cli-{os.getpid()}"


def mobula(*arguments: str, stdin: str | None = None, status: int = 0) -> str:
    """What it printed on standard output (on success) or standard error."""
    done = subprocess.run(
        [*MOBULA, *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == status, f"{arguments}: {done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    return done.stdout if status == 0 else done.stderr


def here(*arguments: str, stdin: str | None = None, status: int = 0) -> str:
    return mobula(*arguments, "--name", NAME, stdin=stdin, status=status)


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Started detached with the command itself; yields what it printed."""
    data = tmp_path_factory.mktemp("data")
    port = free_ports(3)
    printed = here(
        "up", "--detach", "--port", str(port), "--data-dir", str(data),
        "--set", "num.partitions=2",
    )  # fmt: skip
    supervisor = psutil.Process(find_cluster(NAME).pid)
    yield printed
    here("down")
    assert not supervisor.is_running()


def test_up_says_ready_and_where(up: str) -> None:
    last = up.strip().splitlines()[-1]
    assert last.startswith("READY bootstrap=127.0.0.1:")
    assert last.removeprefix("READY bootstrap=") == find_cluster(NAME).bootstrap


@pytest.mark.usefixtures("up")
def test_only_this_machine_can_connect_to_any_of_its_processes() -> None:
    supervisor = psutil.Process(find_cluster(NAME).pid)
    listening = {
        connection.laddr.ip
        for process in (supervisor, *supervisor.children(recursive=True))
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    }
    assert listening
    assert {ip.removeprefix("::ffff:") for ip in listening} == {"127.0.0.1"}


@pytest.mark.usefixtures("up")
def test_status_as_json_has_what_it_promises() -> None:
    document = json.loads(here("status", "--json"))
    assert document["bootstrap"] == find_cluster(NAME).bootstrap
    assert [broker["id"] for broker in document["brokers"]] == [0, 1, 2]
    for broker in document["brokers"]:
        assert broker["state"] == "running"
        assert {actor["kind"] for actor in broker["actors"]} == {
            "broker",
            "gateway",
            "purgatory",
            "replica",
        }
        for actor in broker["actors"]:
            assert {"name", "kind", "pid", "node", "restarts"} <= actor.keys()
            assert psutil.pid_exists(actor["pid"])
    assert psutil.pid_exists(document["controller"]["pid"])
    assert {link["transport"] for link in document["links"]} == {"local"}
    assert {"from", "to", "transport"} == document["links"][0].keys()
    assert document["partitions"].keys() == {"total", "under_replicated", "offline"}
    assert "broker-0" in here("status")


@pytest.mark.usefixtures("up")
def test_a_topic_is_created_described_changed_grown_and_deleted() -> None:
    here("topic", "create", "orders", "-p", "3", "-r", "3", "-c", "retention.ms=3600000")
    assert "orders" in here("topic", "list")
    described = json.loads(here("topic", "describe", "orders", "--json"))
    assert len(described["partitions"]) == 3
    assert "3600000" in here("topic", "config", "orders")
    here("topic", "config", "orders", "--set", "max.message.bytes=2000000")
    assert "2000000" in here("topic", "config", "orders")
    here("topic", "add-partitions", "orders", "-n", "2")
    assert len(json.loads(here("topic", "describe", "orders", "--json"))["partitions"]) == 5
    error = here("topic", "create", "orders", status=1)
    assert "exists" in error
    error = here("topic", "create", "bad", "-c", "retention.mss=1", status=1)
    assert "retention.ms" in error
    here("topic", "delete", "orders")
    assert "orders" not in here("topic", "list")


@pytest.mark.usefixtures("up")
def test_a_group_is_listed_described_moved_and_deleted() -> None:
    here("topic", "create", "read", "-p", "2")
    here("produce", "read", stdin="".join(f"{index}\n" for index in range(10)))
    consumer = Consumer(
        {
            "bootstrap.servers": find_cluster(NAME).bootstrap,
            "group.id": "readers",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe(["read"])
    left = 10
    while left:
        found = consumer.consume(left, 30.0)
        assert found
        left -= len(found)
    consumer.commit(asynchronous=False)
    groups = json.loads(here("group", "list", "--json"))
    assert groups == [{"name": "readers", "state": "stable", "type": "classic"}]
    described = json.loads(here("group", "describe", "readers", "--json"))
    assert described["state"] == "stable"
    assert len(described["members"]) == 1
    assert sum(row["committed"] or 0 for row in described["partitions"]) == 10
    assert {row["lag"] for row in described["partitions"]} <= {0, None}
    error = here("group", "seek", "readers", "-t", "read", "-o", "start", status=1)
    assert "has members" in error
    error = here("group", "delete", "readers", status=1)
    assert "readers" in error
    consumer.close()
    here("group", "seek", "readers", "-t", "read", "-o", "start")
    described = json.loads(here("group", "describe", "readers", "--json"))
    assert sum(row["lag"] for row in described["partitions"]) == 10
    here("group", "delete", "readers")
    assert "readers" not in here("group", "list")
    assert "does not exist" in here("group", "describe", "readers", status=1)


@pytest.mark.usefixtures("up")
def test_lines_from_stdin_come_back_with_keys_headers_and_positions() -> None:
    here("topic", "create", "lines", "-p", "1")
    lines = "".join(f"k{index}:value {index}\n" for index in range(100))
    here("produce", "lines", "-k", ":", "-H", "origin=test", "-z", "zstd", stdin=lines)
    assert here("consume", "lines", "-e", "-f", "%k:%s\n") == lines
    assert here("consume", "lines", "-o", "-2", "-e", "-f", "%o %s %h\n") == (
        "98 value 98 origin=test\n99 value 99 origin=test\n"
    )
    assert here("consume", "lines", "-o", "10", "-n", "1") == "value 10\n"
    record = json.loads(here("consume", "lines", "-n", "1", "--json"))
    assert record["value"] == "value 0"
    at = record["timestamp"]
    later = here("consume", "lines", "-o", f"@{at}", "-n", "1", "-f", "%o\n")
    assert later == "0\n"


@pytest.mark.usefixtures("up")
def test_what_cannot_work_is_said_in_one_sentence(tmp_path: Path) -> None:
    state = find_cluster(NAME)
    port = state.bootstrap.split(",", maxsplit=1)[0].rpartition(":")[2]
    other = ("--data-dir", str(tmp_path), "--name", f"{NAME}-2")
    cases = [
        (("up", "--port", port, *other), f"127.0.0.1:{port}"),
        (("up", "--name", NAME, "--data-dir", str(tmp_path)), "runs already"),
        (
            ("up", "--port", str(free_ports(3)), "--name", f"{NAME}-2", "--data-dir",
             state.data_dir), "in use",
        ),
        (("up", "--set", "num.network.thread=2", *other), "num.network.threads"),
        (("up", "--set", "num.network.threads=zero", *other), "num.network.threads"),
        (("up", "--address", "127.0.0.1:1", *other), "Ray"),
        (("topic", "list", "--name", "nobody"), "nobody"),
        (("consume", "nothing", "--bootstrap", "127.0.0.1:1"), "127.0.0.1:1"),
        (("config", "explain", "num.io.thread"), "num.io.threads"),
    ]  # fmt: skip
    for arguments, hint in cases:
        error = mobula(*arguments, status=2)
        assert hint in error, f"{arguments}: {error}"
        assert len(error.strip().splitlines()) == 1, error


def test_a_missing_ray_is_said_in_one_sentence(tmp_path: Path) -> None:
    without_ray = "import sys; sys.modules['ray'] = None; " + MOBULA[-1]
    done = subprocess.run(
        [*MOBULA[:-1], without_ray, "up", "--data-dir", str(tmp_path), "--name", f"{NAME}-6"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "Ray is not installed" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr


def test_a_folder_of_another_broker_is_refused(tmp_path: Path) -> None:
    from mobula.storage.meta_properties import MetaProperties

    folder = tmp_path / "broker-0"
    folder.mkdir()
    MetaProperties(cluster_id="x", node_id=7, directory_id=bytes(16)).store(folder)
    error = mobula(
        "up", "--port", str(free_ports(3)), "--data-dir", str(tmp_path), "--name", f"{NAME}-3",
        status=2,
    )  # fmt: skip
    assert "belongs to broker 7" in error


def test_a_taken_port_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        error = mobula(
            "up", "-n", "1", "--port", str(port), "--data-dir", str(tmp_path),
            "--name", f"{NAME}-4", status=2,
        )  # fmt: skip
    assert f"cannot listen on 127.0.0.1:{port}" in error


def test_a_start_keeps_its_name_and_leaves_nothing_when_it_is_interrupted(tmp_path: Path) -> None:
    name = f"{NAME}-5"
    terminal, end = pty.openpty()
    with subprocess.Popen(
        [*MOBULA, "up", "--port", str(free_ports(3)), "--data-dir", str(tmp_path), "--name", name],
        stdout=subprocess.DEVNULL,
        stderr=end,
    ) as process:
        os.close(end)
        said = _read_until(terminal, b"starting actors")
        started = psutil.Process(process.pid).children(recursive=True)
        other = ("--port", str(free_ports(3)), "--data-dir", str(tmp_path / "other"))
        assert "is starting" in mobula("up", *other, "--name", name, status=2)
        process.send_signal(signal.SIGINT)
        said += _read_until(terminal, None)
        os.close(terminal)
        assert process.wait(timeout=60) == 130
    assert b"not stopped" not in said
    assert psutil.wait_procs(started, timeout=10)[1] == []


def _read_until(terminal: int, text: bytes | None) -> bytes:
    """What the terminal showed up to the text, or up to the end of who wrote to it."""
    shown = b""
    while text is None or text not in shown:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # Linux's way to say that nobody has the other end any more.
            piece = b""
        if not piece:
            assert text is None, shown
            break
        shown += piece
    return shown
