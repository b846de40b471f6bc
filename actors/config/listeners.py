"""Listener addresses: `PLAINTEXT://HOST:PORT`, a list of them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from mobula.actors.config.key import Check, ConfigError

_LISTENER = re.compile(r"(?P<name>\w+)://(?P<host>\[[0-9a-fA-F:.]*\]|[^:/\[\]]*):(?P<port>\d+)")
_NAMES = ("PLAINTEXT",)


@dataclass(frozen=True, slots=True)
class Listener:
    name: str
    host: str
    """Empty: every address."""
    port: int


def parse_listeners(items: Iterable[str]) -> list[Listener]:
    """ConfigError with a sentence that names the entry that is wrong."""
    listeners = []
    for item in items:
        match = _LISTENER.fullmatch(item)
        if match is None:
            raise ConfigError(f"{item!r} is not a listener like PLAINTEXT://127.0.0.1:9092")
        name, port = match["name"].upper(), int(match["port"])
        if name not in _NAMES:
            raise ConfigError(
                f"{item!r} names the listener {name}, and only PLAINTEXT is supported"
            )
        if port > 65535:
            raise ConfigError(f"{item!r} has a port above 65535")
        listeners.append(Listener(name, match["host"].strip("[]"), port))
    return listeners


def _usable(items: list[str]) -> bool:
    try:
        listeners = parse_listeners(items)
    except ConfigError:
        return False
    return len(listeners) == len({listener.name for listener in listeners}) > 0


LISTENERS = Check(_usable, "one listener like PLAINTEXT://127.0.0.1:9092")
