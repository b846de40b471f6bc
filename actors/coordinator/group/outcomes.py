"""What decisions about groups consist of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from mobula.actors.coordinator.group.records import Record
from mobula.actors.coordinator.outcome import Outcome

Answer: TypeAlias = Mapping[str, Any]
"""The fields of a response."""

GroupOutcome: TypeAlias = Outcome[Record, Any]
