"""What a comparison measured: values by figure and side, and what follows from them."""

from __future__ import annotations

import datetime
import os
import platform
from importlib.metadata import version
from pathlib import Path
from statistics import median

import msgspec
import psutil

from mobula.loadtest.loads import Figure

OURS = "ours"
KAFKA = "kafka"


def kafka_beside(side: str) -> str:
    """Under what name Kafka's values go that were measured in turns with that side."""
    return KAFKA if side == OURS else f"{KAFKA} beside {side}"


class Row(msgspec.Struct):
    """One figure: its values, round by round, for each side that was measured."""

    name: str
    title: str
    unit: str
    rate: bool
    """Higher is better."""
    values: dict[str, list[float]] = {}

    def median(self, side: str) -> float | None:
        values = self.values.get(side)
        return median(values) if values else None

    def spread(self, side: str) -> tuple[float, float] | None:
        values = self.values.get(side)
        return (min(values), max(values)) if values else None

    def ratio(self, side: str) -> float | None:
        """To Apache Kafka, in the same rounds."""
        ours, theirs = self.median(side), self.median(kafka_beside(side))
        return ours / theirs if ours is not None and theirs else None


class Measured(msgspec.Struct):
    date: str
    machine: str
    versions: dict[str, str]
    sides: dict[str, str]
    """Titles by name."""
    rounds: int
    rows: dict[str, Row] = {}

    def add(self, side: str, figure: Figure, value: float) -> None:
        row = self.rows.setdefault(
            figure.name, Row(figure.name, figure.title, figure.unit, figure.rate)
        )
        row.values.setdefault(side, []).append(value)

    def write(self, path: Path) -> None:
        path.write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n")

    @classmethod
    def read(cls, path: Path) -> Measured:
        return msgspec.json.decode(path.read_bytes(), type=cls)


def begin(sides: dict[str, str], rounds: int, kafka_version: str | None) -> Measured:
    versions = {name: version(name) for name in ("mobula", "ray", "confluent-kafka")}
    versions["python"] = platform.python_version()
    if kafka_version is not None:
        versions["kafka"] = kafka_version
    return Measured(
        datetime.datetime.now(datetime.UTC).date().isoformat(), _machine(), versions, sides, rounds
    )


def _machine() -> str:
    memory = psutil.virtual_memory().total / 2**30
    return f"{_cpu()}, {os.cpu_count()} cores, {memory:.0f} GiB, {platform.system()}"


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
