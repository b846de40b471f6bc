"""Records that a test writes with one client and expects back from another."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sent:
    partition: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()
    timestamp_ms: int | None = None


BASE_TIME_MS = 1_750_000_000_000


def sample(tag: str, count: int = 120, partitions: int = 3) -> list[Sent]:
    """Keys, empty and null values, headers, own timestamps; the same for every codec."""
    return [
        Sent(
            partition=index % partitions,
            key=None if index % 11 == 0 else f"{tag}-key-{index}".encode(),
            value=f"{tag}-{index}-".encode() + b"x" * (index * 7 % 900),
            headers=(("tag", tag.encode()), ("index", str(index).encode())),
            timestamp_ms=BASE_TIME_MS + index * 1000,
        )
        for index in range(count)
    ]


def by_partition(records: list[Sent]) -> dict[int, list[Sent]]:
    found: dict[int, list[Sent]] = {}
    for record in records:
        found.setdefault(record.partition, []).append(record)
    return found
