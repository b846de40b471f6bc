"""Configuration: Kafka's keys, their defaults, and typed access to what was set.

Invariant: a `Config` never changes; a changed setting is a new `Config`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from mobula.actors.config.definitions import BROKER_KEYS, TOPIC_KEYS
from mobula.actors.config.key import ConfigError, Value

__all__ = ["Config", "ConfigError"]


class Config:
    """Settings over defaults. A key that is not set has its definition's default.

    Asking for a key that does not exist, in the wrong type, or for one that is neither set
    nor has a default, is a bug and raises LookupError or TypeError. A value that does not
    parse raises ConfigError; what the launcher or the controller let through always parses.
    """

    __slots__ = ("_parsed", "values")

    def __init__(self, values: Mapping[str, str]) -> None:
        self.values: Mapping[str, str] = dict(values)
        """What was set, without defaults."""
        self._parsed: dict[str, Value | None] = {}

    def integer(self, key: str) -> int:
        value = self._get(key)
        # bool is an int to Python, and never one to a caller here.
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{key} is no integer")
        return value

    def number(self, key: str) -> float:
        value = self._get(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise TypeError(f"{key} is no number")
        return float(value)

    def boolean(self, key: str) -> bool:
        value = self._get(key)
        if not isinstance(value, bool):
            raise TypeError(f"{key} is no boolean")
        return value

    def string(self, key: str) -> str:
        value = self._get(key)
        if not isinstance(value, str):
            raise TypeError(f"{key} is no string")
        return value

    def strings(self, key: str) -> list[str]:
        value = self._get(key)
        if not isinstance(value, list):
            raise TypeError(f"{key} is no list")
        return list(value)

    def has(self, key: str) -> bool:
        """Whether the key has a value: it was set, or has a default."""
        return self._lookup(key) is not None

    def is_set(self, key: str) -> bool:
        return key in self.values

    def overlaid(self, *layers: Mapping[str, str]) -> Config:
        """A new config in which later layers win over earlier ones, and over this."""
        values = dict(self.values)
        for layer in layers:
            values.update(layer)
        return Config(values)

    def _get(self, key: str) -> Value:
        value = self._lookup(key)
        if value is None:
            raise LookupError(f"{key} is not set and has no default")
        return value

    def _lookup(self, key: str) -> Value | None:
        try:
            return self._parsed[key]
        except KeyError:
            pass
        definition = BROKER_KEYS.get(key) or TOPIC_KEYS[key]
        text = self.values.get(key, definition.default)
        value = None if text is None else definition.parse(text)
        self._parsed[key] = value
        return value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Config) and self.values == other.values

    def __hash__(self) -> int:
        return hash(frozenset(cast("dict[str, str]", self.values).items()))

    def __repr__(self) -> str:
        return f"Config({dict(self.values)!r})"
