"""Starts client processes, lets them begin together and collects what they saw."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence

import msgspec
from confluent_kafka import Consumer, TopicPartition

from mobula.loadtest.jobs import Done, Failed, Job

_TIMEOUT_S = 300


def run_clients(
    jobs: Sequence[Job], on_begin: Callable[[], None], on_end: Callable[[], None]
) -> list[Done]:
    """One process a job. `on_begin` runs when all are connected, `on_end` when all are done.

    Raises Failed with what the first client that could not said.
    """
    clients = [_start(job) for job in jobs]
    try:
        for client in clients:
            _line(client)
        on_begin()
        for client in clients:
            assert client.stdin is not None
            client.stdin.write(b"go\n")
            client.stdin.flush()
        lines = [_line(client) for client in clients]
        on_end()
    finally:
        for client in clients:
            _end(client)
    return [msgspec.json.decode(line, type=Done) for line in lines]


def end_offsets(bootstrap: str, topic: str, partitions: int) -> dict[int, int]:
    """Of each partition, as a consumer sees it."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none"})
    try:
        return {
            index: consumer.get_watermark_offsets(TopicPartition(topic, index), timeout=60)[1]
            for index in range(partitions)
        }
    finally:
        consumer.close()


def _start(job: Job) -> subprocess.Popen[bytes]:
    client = subprocess.Popen(
        [sys.executable, "-m", "mobula.loadtest.client"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert client.stdin is not None
    client.stdin.write(msgspec.json.encode(job) + b"\n")
    client.stdin.flush()
    return client


def _line(client: subprocess.Popen[bytes]) -> bytes:
    """Clients bound their own waits, so one always says something or ends."""
    assert client.stdout is not None
    line = client.stdout.readline()
    if not line:
        _, said = client.communicate(timeout=_TIMEOUT_S)
        raise Failed(said.decode(errors="replace").strip()[-500:] or "a client ended early")
    return line


def _end(client: subprocess.Popen[bytes]) -> None:
    """Also of one that ended by itself: its pipes are closed here."""
    try:
        client.communicate(timeout=5)
    except subprocess.TimeoutExpired:
        client.kill()
        client.communicate()
