"""What is compared with Apache Kafka, counted: for the pages that `make docs` writes."""

from __future__ import annotations

from dataclasses import dataclass

from mobula.protocol.api import ApiKey
from tests.conformance import recording
from tests.conformance.differences import EXPLAINED
from tests.conformance.explained import Explained
from tests.conformance.scenario import SERVED, all_scenarios


@dataclass(frozen=True, slots=True)
class Compared:
    api: ApiKey
    versions: range
    scenarios: int
    exchanges: int
    """Recorded of Kafka, and replayed by every `make test`."""
    explained: tuple[Explained, ...]


def compared() -> list[Compared]:
    """A row for every API that is served, in the order of their keys."""
    scenarios = dict.fromkeys(SERVED, 0)
    exchanges = dict.fromkeys(SERVED, 0)
    recorded = {group: recording.load(group) for group in recording.groups()}
    for scenario in all_scenarios():
        scenarios[scenario.api] += 1
        by_version = recorded.get(scenario.group, {}).get(scenario.name, {})
        exchanges[scenario.api] += sum(len(answers) for answers in by_version.values())
    return [
        Compared(
            api=api,
            versions=SERVED[api],
            scenarios=scenarios[api],
            exchanges=exchanges[api],
            explained=tuple(line for line in EXPLAINED if line.api == api),
        )
        for api in sorted(SERVED)
    ]
