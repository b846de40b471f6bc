"""Kafka's checkpoint files: a version, a count, an entry a line; replaced as a whole.

A broker's data folder has three by offset: recovery points, log start offsets, and the
high watermarks (`replication-offset-checkpoint`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from mobula.storage.files import write_atomically

RECOVERY_POINT = "recovery-point-offset-checkpoint"
REPLICATION = "replication-offset-checkpoint"
LOG_START = "log-start-offset-checkpoint"
_VERSION = 0


def format_checkpoint(entries: Collection[tuple[object, ...]]) -> str:
    lines = [str(_VERSION), str(len(entries))]
    lines += (" ".join(map(str, entry)) for entry in entries)
    return "\n".join(lines) + "\n"


def parse_checkpoint(text: str, fields: int) -> list[list[str]]:
    """The fields of each entry. ValueError when the file is cut or of another version."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    if not lines:
        return []
    if lines[0] != str(_VERSION):
        raise ValueError(f"checkpoint of version {lines[0]!r}, expected {_VERSION}")
    entries = [line.split() for line in lines[2:]]
    if len(lines) < 2 or int(lines[1]) != len(entries):
        raise ValueError("checkpoint does not hold as many entries as it says")
    if any(len(entry) != fields for entry in entries):
        raise ValueError("checkpoint with a malformed line")
    return entries


class OffsetCheckpoint:
    """An offset for each (topic, partition)."""

    def __init__(self, directory: Path, name: str) -> None:
        self._path = directory / name

    def read(self) -> dict[tuple[str, int], int]:
        """Empty when there is no file. ValueError when it is damaged."""
        try:
            text = self._path.read_text()
        except FileNotFoundError:
            return {}
        return {
            (topic, int(partition)): int(offset)
            for topic, partition, offset in parse_checkpoint(text, 3)
        }

    def write(self, offsets: Mapping[tuple[str, int], int], *, sync: bool = True) -> None:
        entries = [(topic, part, offset) for (topic, part), offset in sorted(offsets.items())]
        write_atomically(self._path, format_checkpoint(entries).encode(), sync=sync)
