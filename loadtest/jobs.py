"""What a client process is told to do, and what it answers: one JSON line each."""

from __future__ import annotations

import msgspec


class Produce(msgspec.Struct, frozen=True, tag=True):
    """As much as the cluster takes, for some time or up to a size, whichever comes first."""

    bootstrap: str
    topic: str
    record_bytes: int
    producers: int
    seconds: float
    settings: dict[str, str]
    most_bytes: int = 0
    """0: no bound."""


class OneAtATime(msgspec.Struct, frozen=True, tag=True):
    """A record is sent when the one before it has been acknowledged."""

    bootstrap: str
    topic: str
    record_bytes: int
    seconds: float


class Paced(msgspec.Struct, frozen=True, tag=True):
    """So many records a second, whatever the cluster does; each carries when it was due."""

    bootstrap: str
    topic: str
    record_bytes: int
    a_second: int
    seconds: float


class Consume(msgspec.Struct, frozen=True, tag=True):
    """Everything in these partitions, from the start up to those offsets."""

    bootstrap: str
    topic: str
    ends: dict[int, int]


class Receive(msgspec.Struct, frozen=True, tag=True):
    """What `Paced` sends from now on, and how long after it was due."""

    bootstrap: str
    topic: str
    partitions: int
    records: int
    timeout_s: float


Job = Produce | OneAtATime | Paced | Consume | Receive


class Done(msgspec.Struct, frozen=True):
    records: int = 0
    bytes: int = 0
    seconds: float = 0.0
    latencies_ms: list[float] = []


class Failed(Exception):
    """A client could not do its job; the text says why."""
