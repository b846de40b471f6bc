"""Scenarios: what a file in `scenarios/` declares, and how one is run.

A scenario is a plain function. It sets up what it needs by ordinary requests, and asks:

    @scenario(ApiKey.METADATA, good=True)
    def a_topic_by_name(on: Side, version: int) -> None:
        topic = on.topic("a")
        on.ask(0, ApiKey.METADATA, version, {"topics": [{"name": topic.name}]})

It runs once for every version that our brokers serve, or for `versions`. Every answer to
`on.ask` is compared with Apache Kafka's, field by field; what else it does is set-up.
The helpers of a scenario are the methods of `Side` (`side.py`): `topic`, `shared_topic`,
`name`, `produce`, `leader`, `wait_until...`, and `do` for any other request of the set-up.
A request is a tree by kio's field names, of which a version takes what it has; or the body's
bytes, where it shall be malformed (`encode_request`, `with_null` of `wire.py` help).

To add an API: write `scenarios/<api>.py`, run `make record-kafka ARGS=<api>`, look at what
Kafka answered in `recorded/<api>.json`, run `pytest tests/conformance`, and mend what
differs or, where that must be so, say why in `differences.py`; then `make docs`. Every version
that is served needs a good scenario and a bad one. Where two runs of Kafka itself answer
differently, the scenario asks wrongly, or `fields.py` lacks a field.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from mobula.actors.gateway.kafka_apis import HANDLERS
from mobula.protocol.api import ApiKey
from tests.conformance import scenarios
from tests.conformance.side import Brokers, Exchange, Side

Function: TypeAlias = Callable[[Side, int], None]

SERVED: dict[ApiKey, range] = {handler.API.key: handler.API.served for handler in HANDLERS}


@dataclass(frozen=True, slots=True)
class Scenario:
    group: str
    """The file it stands in, and the file of its recording."""
    api: ApiKey
    name: str
    good: bool
    versions: tuple[int, ...]
    function: Function

    def run(self, brokers: Brokers, version: int) -> list[Exchange]:
        """What was asked and answered, in order."""
        side = Side(brokers, self.api, f"{self.group}-{self.name}-v{version:02d}")
        self.function(side, version)
        assert side.exchanges, "the scenario asks nothing"
        return side.exchanges


_found: dict[tuple[str, str], Scenario] = {}


def scenario(
    api: ApiKey, *, good: bool, versions: Iterable[int] | None = None
) -> Callable[[Function], Function]:
    """Good: the request is one that succeeds. Bad: something about it is wrong."""

    def declare(function: Function) -> Function:
        group = function.__module__.rpartition(".")[2]
        key = (group, function.__name__)
        assert key not in _found, f"there are two scenarios {key}"
        chosen = tuple(SERVED[api] if versions is None else versions)
        _found[key] = Scenario(group, api, function.__name__, good, chosen, function)
        return function

    return declare


def all_scenarios() -> list[Scenario]:
    """Of every file in `scenarios/`, in a fixed order."""
    for module in pkgutil.iter_modules(scenarios.__path__):
        importlib.import_module(f"{scenarios.__name__}.{module.name}")
    return [_found[key] for key in sorted(_found)]


def just_outside(api: ApiKey) -> tuple[int, ...]:
    """The versions before the first and after the last that are served."""
    served = SERVED[api]
    return tuple(version for version in (served[0] - 1, served[-1] + 1) if version >= 0)
