"""Every key that is honoured, found by name; and the sentence for one that is not.

Invariant: a setting that passes `validate` does something, or states a fact. Nothing is
accepted and ignored.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable, Mapping
from typing import cast

from mobula.actors.config import unsupported
from mobula.actors.config.broker_keys import BROKER
from mobula.actors.config.key import ConfigError, ConfigType, Key, Scope, Value, by_name
from mobula.actors.config.topic_keys import TOPIC

__all__ = [
    "BROKER_KEYS",
    "TOPIC_KEYS",
    "ConfigError",
    "ConfigType",
    "Key",
    "Scope",
    "definition",
    "nearest",
    "problems",
    "problems_by_key",
    "unknown_key",
    "validate",
]

TOPIC_KEYS = by_name(TOPIC)

_TOPIC_DEFAULTS = {key.synonyms[0].key for key in TOPIC if key.synonyms}

# What gives topics their defaults is looked up when it is used, so it can be changed at
# any time; everything else is read once, when an actor starts. Of several keys for one
# default the finest can be changed, which is enough and what Kafka allows.
BROKER_KEYS = by_name(
    dataclasses.replace(key, dynamic=key.name in _TOPIC_DEFAULTS) for key in BROKER
)


def keys_of(scope: Scope) -> Mapping[str, Key]:
    return BROKER_KEYS if scope is Scope.BROKER else TOPIC_KEYS


def definition(name: str, scope: Scope) -> Key:
    """ConfigError with the nearest match when there is no such key in this scope."""
    key = keys_of(scope).get(name)
    if key is not None:
        return key
    other = Scope.TOPIC if scope is Scope.BROKER else Scope.BROKER
    if name in keys_of(other):
        raise ConfigError(_wrong_scope(name, scope))
    raise unknown_key(name, keys_of(scope), f"{scope.value} configuration key")


def unknown_key(name: str, among: Iterable[str], kind: str = "configuration key") -> ConfigError:
    """The sentence for a key that is not among ours: why, or which one is nearest."""
    why = unsupported.reason(name)
    if why is not None:
        return ConfigError(f"{name} is a key of Kafka that Mobula does not have: {why}")
    near = nearest(name, among)
    hint = f"; the nearest match is {near}" if near else ""
    return ConfigError(f"there is no {kind} {name!r}{hint}")


def nearest(name: str, among: Iterable[str]) -> str | None:
    found = difflib.get_close_matches(name.lower(), list(among), n=1, cutoff=0.5)
    return found[0] if found else None


def validate(name: str, value: str, scope: Scope = Scope.BROKER) -> Value:
    """The value in its type. ConfigError with one sentence when it must be refused."""
    return definition(name, scope).parse(value)


def problems(settings: Mapping[str, str]) -> list[str]:
    """All that is wrong with what a user set for the brokers: one sentence each."""
    return [sentence for _, sentence in problems_by_key(settings)]


def problems_by_key(settings: Mapping[str, str]) -> list[tuple[str, str]]:
    """The same with the key that each sentence is about."""
    found: list[tuple[str, str]] = []
    values: dict[str, Value] = {}
    for name, text in settings.items():
        try:
            key = definition(name, Scope.BROKER)
            values[name] = key.parse(text)
        except ConfigError as error:
            found += [(name, problem) for problem in error.problems]
            continue
        if key.given_by:
            found.append((name, f"{name} cannot be set: {key.given_by}"))
    return found or list(_contradictions(values))


def _contradictions(values: Mapping[str, Value]) -> Iterable[tuple[str, str]]:
    def number(name: str) -> int:
        if name in values:
            return cast("int", values[name])
        default = BROKER_KEYS[name].default
        assert default is not None
        return int(default)

    for small, large in _ORDERED:
        if number(small) >= number(large):
            # The sentence names both; it is about the one that was set.
            name = small if small in values else large
            yield (
                name,
                f"{small} ({number(small)}) must be less than {large} ({number(large)})",
            )


_ORDERED = (
    ("broker.heartbeat.interval.ms", "broker.session.timeout.ms"),
    ("replica.fetch.wait.max.ms", "replica.lag.time.max.ms"),
)


def _wrong_scope(name: str, scope: Scope) -> str:
    if scope is Scope.BROKER:
        brokers = [synonym.key for synonym in TOPIC_KEYS[name].synonyms]
        hint = f"; for all topics set {brokers[0]}" if brokers else ""
        return f"{name} is a key of topics, not of brokers{hint}"
    topics = [key.name for key in TOPIC if any(synonym.key == name for synonym in key.synonyms)]
    hint = f"; a topic's own is {topics[0]}" if topics else ""
    return f"{name} is a key of brokers, not of topics{hint}"
