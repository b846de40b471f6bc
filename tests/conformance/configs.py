"""Requests about configurations, and waiting until a change is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from mobula.protocol.api import ApiKey
from tests.conformance.side import Side
from tests.conformance.wire import Tree

TOPIC: Final = 2
BROKER: Final = 4
BROKER_LOGGER: Final = 8
CLIENT_METRICS: Final = 16
GROUP: Final = 32
SET, DELETE, APPEND, SUBTRACT = range(4)

_DESCRIBE_VERSION, _CHANGE_VERSION = 4, 1


def resource(kind: int, name: str, *keys: str) -> Tree:
    """To describe: all of its keys, or these."""
    return {"resource_type": kind, "resource_name": name, "configuration_keys": keys or None}


def resources(*wanted: Tree, **more: Any) -> Tree:
    return {"resources": wanted, **more}


def change(kind: int, name: str, *operations: tuple[str, int, str | None]) -> Tree:
    """For IncrementalAlterConfigs: (key, operation, value) each."""
    configs = [
        {"name": key, "config_operation": operation, "value": value}
        for key, operation, value in operations
    ]
    return {"resource_type": kind, "resource_name": name, "configs": configs}


def changes(*wanted: Tree, validate_only: bool = False) -> Tree:
    """For AlterConfigs too."""
    return {"resources": wanted, "validate_only": validate_only}


def describe(on: Side, kind: int, name: str, *keys: str) -> None:
    """Compared: these keys as broker 0 knows them."""
    tree = resources(resource(kind, name, *keys), include_synonyms=True)
    on.ask(0, ApiKey.DESCRIBE_CONFIGS, _DESCRIBE_VERSION, tree)


def set_now(on: Side, kind: int, name: str, settings: Mapping[str, str | None]) -> None:
    """By set-up; None takes the setting away. Broker 0 describes it when this returns."""
    operations = [(key, DELETE if value is None else SET, value) for key, value in settings.items()]
    tree = changes(change(kind, name, *operations))
    (answer,) = on.do(0, ApiKey.INCREMENTAL_ALTER_CONFIGS, _CHANGE_VERSION, tree)["responses"]
    assert answer["error_code"] == "none", answer
    wait_until_set(on, kind, name, settings)


def wait_until_set(on: Side, kind: int, name: str, settings: Mapping[str, str | None]) -> None:
    """Broker 0 describes the resource so; None: what it is has another source."""
    on.wait_until(
        lambda: own_settings(on, kind, name, list(settings)) == settings,
        f"broker 0 to describe {settings} of {name!r}",
    )


def own_settings(on: Side, kind: int, name: str, keys: Sequence[str]) -> dict[str, str | None]:
    """What is set for the resource itself, None where nothing is."""
    tree = resources(resource(kind, name, *keys), include_synonyms=True)
    (answer,) = on.do(0, ApiKey.DESCRIBE_CONFIGS, _DESCRIBE_VERSION, tree)["results"]
    assert answer["error_code"] == "none", answer
    source = _SOURCES[kind, bool(name)]
    found = {config["name"]: config for config in answer["configs"]}
    return {
        key: found[key]["value"] if key in found and found[key]["config_source"] == source else None
        for key in keys
    }


_SOURCES = {(TOPIC, True): 1, (BROKER, True): 2, (BROKER, False): 3}
"""The numbers of dynamic sources, by type and whether the resource has a name."""
