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

_FORMS = "start, end, N, -N (the last N of each partition) or @TIME (ms, or ISO 8601)"


def parse_position(text: str) -> Position:
    if text in {"start", "beginning", "earliest"}:
        return AtStart()
    if text in {"end", "latest"}:
        return AtEnd()
    if text.startswith("@"):
        return AtTime(_time(text))
    if text.removeprefix("-").isdecimal():
        number = int(text)
        return LastRecords(-number) if text.startswith("-") else AtOffset(number)
    raise UsageError(f"-o {text}: must be {_FORMS}")


def _time(text: str) -> int:
    value = text[1:]
    if value.isdecimal():
        return int(value)
    try:
        # Without a zone it is the local time, as a user at a terminal means it.
        return int(datetime.fromisoformat(value).timestamp() * 1000)
    except ValueError:
        raise UsageError(f"-o {text}: must be {_FORMS}") from None
