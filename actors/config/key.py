"""What a configuration key is: its type, its default, what it accepts and what it does.

Invariant: a key's own default passes the key's own checks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Any, TypeAlias

Value: TypeAlias = bool | int | float | str | list[str]

MAX_INT = 2**31 - 1
MAX_LONG = 2**63 - 1


class ConfigError(Exception):
    """Settings that are refused: one sentence for each problem."""

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class ConfigType(IntEnum):
    """Kafka's numbers, as DescribeConfigs sends them."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7


class Scope(Enum):
    BROKER = "broker"
    TOPIC = "topic"


@dataclass(frozen=True, slots=True)
class Check:
    """A value is good when `holds`; otherwise the sentence is "KEY must be <wants>"."""

    holds: Callable[[Any], bool]
    wants: str


@dataclass(frozen=True, slots=True)
class Synonym:
    """A broker key that gives a topic key its default, in the topic key's unit."""

    key: str
    factor: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    name: str
    type: ConfigType
    default: str | None
    """None: unset unless someone sets it."""
    doc: str
    """What it does, in plain words."""
    scope: Scope = Scope.BROKER
    checks: tuple[Check, ...] = ()
    why: str = ""
    """Why the default is not Kafka's, where it is not."""
    ours: bool = False
    """Kafka has no such key."""
    synonyms: tuple[Synonym, ...] = ()
    """Of a topic key: the first of these that is set gives the default."""
    dynamic: bool = False
    """Can be changed while the cluster runs."""
    given_by: str = ""
    """Set by the launcher from this option, so never by hand."""

    def parse(self, text: str) -> Value:
        """The value in its type; ConfigError with one sentence when it is none."""
        value = self._typed(text)
        for check in self.checks:
            if not check.holds(value):
                raise ConfigError(f"{self.name} must be {check.wants}, but is {text!r}")
        return value

    def shown(self, text: str) -> str:
        """A good value as Kafka writes it: one spelling, however it was set."""
        match self._typed(text):
            case bool() as value:
                return str(value).lower()
            case list() as value:
                return ",".join(value)
            case value:
                return str(value)

    def _typed(self, text: str) -> Value:
        text = text.strip()
        match self.type:
            case ConfigType.BOOLEAN:
                lowered = text.lower()
                if lowered not in {"true", "false"}:
                    raise self._wrong("true or false", text)
                return lowered == "true"
            case ConfigType.INT | ConfigType.LONG | ConfigType.SHORT:
                return self._integer(text)
            case ConfigType.DOUBLE:
                try:
                    return float(text)
                except ValueError:
                    raise self._wrong("a number", text) from None
            case ConfigType.LIST:
                return [item for part in text.split(",") if (item := part.strip())]
            case ConfigType.STRING:
                return text

    def _integer(self, text: str) -> int:
        bits = _BITS[self.type]
        try:
            # int() also takes "1_000", which no other Kafka tool does.
            value = int(text) if "_" not in text else None
        except ValueError:
            value = None
        if value is None:
            raise self._wrong("a whole number", text)
        if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
            raise self._wrong(f"a whole number of {bits} bits", text)
        return value

    def _wrong(self, wants: str, text: str) -> ConfigError:
        return ConfigError(f"{self.name} must be {wants}, but is {text!r}")


def broker_key(
    name: str,
    kind: ConfigType,
    default: str | None,
    doc: str,
    *checks: Check,
    why: str = "",
    ours: bool = False,
    given_by: str = "",
) -> Key:
    return Key(
        name=name,
        type=kind,
        default=default,
        doc=doc,
        checks=checks,
        why=why,
        ours=ours,
        given_by=given_by,
    )


_BITS = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}


def at_least(low: float) -> Check:
    return Check(lambda value: value >= low, f"at least {low}")


def between(low: float, high: float) -> Check:
    return Check(lambda value: low <= value <= high, f"between {low} and {high}")


def one_of(*allowed: str) -> Check:
    return Check(lambda value: value in allowed, "one of " + ", ".join(allowed))


def all_of(*allowed: str) -> Check:
    """For lists: nothing but these."""
    return Check(
        lambda value: set(value) <= set(allowed),
        "a list of " + " and ".join(allowed),
    )


def either(exact: float, other: Check) -> Check:
    """A special value (-1 for "no limit"), or what `other` accepts."""
    return Check(lambda value: value == exact or other.holds(value), f"{exact} or {other.wants}")


def only(value: bool, reason: str) -> Check:
    """A switch that has one position so far."""
    return Check(lambda given: given is value, f"{str(value).lower()} ({reason})")


def by_name(keys: Iterable[Key]) -> dict[str, Key]:
    table: dict[str, Key] = {}
    for key in keys:
        assert key.name not in table, f"{key.name} is defined twice"
        table[key.name] = key
    return table
