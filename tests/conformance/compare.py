"""Two answers, field by field: where they differ, as paths.

A path names fields and, of a list, the item by what tells it apart: `topics[~a].error_code`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from tests.conformance.fields import identity

Json: TypeAlias = Any

MISSING: Final = "<nothing>"
"""In place of an item that one side does not have."""


@dataclass(frozen=True, slots=True)
class Differs:
    path: str
    kafka: Json
    ours: Json


def differences(kafka: Json, ours: Json, path: str = "") -> Iterator[Differs]:
    if isinstance(kafka, dict) and isinstance(ours, dict):
        for field in sorted({*kafka, *ours}):
            below = f"{path}.{field}" if path else field
            yield from differences(kafka.get(field, MISSING), ours.get(field, MISSING), below)
    elif isinstance(kafka, list) and isinstance(ours, list):
        yield from _items(_labelled(kafka), _labelled(ours), path)
    elif kafka != ours or type(kafka) is not type(ours):
        yield Differs(path, kafka, ours)


def _items(kafka: dict[str, Json], ours: dict[str, Json], path: str) -> Iterator[Differs]:
    if kafka.keys() == ours.keys() and list(kafka) != list(ours):
        yield Differs(f"{path}[order]", list(kafka), list(ours))
    for label in {**kafka, **ours}:
        yield from differences(
            kafka.get(label, MISSING), ours.get(label, MISSING), f"{path}[{label}]"
        )


def _labelled(items: list[Json]) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for index, item in enumerate(items):
        label = identity(item) or str(index)
        found[label if label not in found else f"{label}#{index}"] = item
    return found
