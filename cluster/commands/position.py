"""Where consuming begins: `start`, `end`, an offset, the last N, or a time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from mobula.cluster.options import UsageError


@dataclass(frozen=True, slots=True)
class AtStart:
    pass


@dataclass(frozen=True, slots=True)
class AtEnd:
    pass


@dataclass(frozen=True, slots=True)
class AtOffset:
    offset: int


@dataclass(frozen=True, slots=True)
class LastRecords:
    """Of each partition."""

    count: int


@dataclass(frozen=True, slots=True)
class AtTime:
    timestamp_ms: int


Position: TypeAlias = AtStart | AtEnd | AtOffset | LastRecords | AtTime

_MOST = 2**63 - 1
"""Kafka's offsets and timestamps have 64 bits."""
_FORMS = "start, end, N, -N (the last N of each partition) or @TIME (ms, or ISO 8601)"


def parse_position(text: str) -> Position:
    if text in {"start", "beginning", "earliest"}:
        return AtStart()
    if text in {"end", "latest"}:
        return AtEnd()
    if text.startswith("@"):
        return AtTime(_time(text))
    number = _number(text)
    if number is not None:
        return LastRecords(-number) if text.startswith("-") else AtOffset(number)
    raise UsageError(f"-o {text}: must be {_FORMS}")


def _number(text: str) -> int | None:
    if not text.removeprefix("-").isdecimal():
        return None
    number = int(text)
    return number if abs(number) <= _MOST else None


def _time(text: str) -> int:
    value = text[1:]
    number = _number(value)
    if number is not None and number >= 0:
        return number
    try:
        # Without a zone it is the local time, as a user at a terminal means it.
        return int(datetime.fromisoformat(value).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise UsageError(f"-o {text}: must be {_FORMS}") from None
