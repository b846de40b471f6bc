"""Our brokers give the answers that Apache Kafka was recorded to give."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache

import pytest

from mobula.cluster import LocalCluster
from tests.conformance import recording
from tests.conformance.compare import MISSING, Differs, differences
from tests.conformance.differences import EXPLAINED
from tests.conformance.explained import Explained
from tests.conformance.requests import digest
from tests.conformance.scenario import Scenario, all_scenarios
from tests.conformance.settings import SETTINGS
from tests.conformance.side import Brokers, Exchange

SCENARIOS = all_scenarios()
CASES = [
    pytest.param(scenario, version, id=f"{scenario.group}-{scenario.name}-v{version}")
    for scenario in SCENARIOS
    for version in scenario.versions
]
recorded = cache(recording.load)
asked_then = cache(recording.load_requests)


@pytest.fixture(scope="module")
def brokers() -> Iterator[Brokers]:
    """A cluster of its own: answers about all topics must not hold those of other tests."""
    with LocalCluster(brokers=3, config=SETTINGS | {"num.network.threads": "2"}) as cluster:
        brokers = Brokers(cluster.bootstrap)
        yield brokers
        brokers.close()


@pytest.fixture(scope="module")
def replayed() -> set[tuple[Scenario, int]]:
    """The scenarios and versions that ran."""
    return set()


@pytest.fixture(scope="module")
def needed() -> set[Explained]:
    """The lines of `differences.py` that explained something."""
    return set()


@pytest.mark.parametrize(("scenario", "version"), CASES)
def test_the_answers_are_those_of_apache_kafka(
    brokers: Brokers,
    scenario: Scenario,
    version: int,
    needed: set[Explained],
    replayed: set[tuple[Scenario, int]],
) -> None:
    kafka = recorded(scenario.group).get(scenario.name, {}).get(version)
    assert kafka is not None, f"not recorded: run `make record-kafka ARGS={scenario.group}`"
    exchanges = scenario.run(brokers, version)
    asked = digest(exchange.asked for exchange in exchanges)
    assert asked == asked_then(scenario.group)[scenario.name][version], (
        f"it was recorded when it asked otherwise: run `make record-kafka ARGS={scenario.group}`"
    )
    unexplained = []
    for exchange, answer in zip(exchanges, kafka, strict=True):
        for differs in differences(answer, exchange.answer):
            reasons = [
                line
                for line in EXPLAINED
                if line.covers(scenario.api, scenario.name, version, differs)
            ]
            needed.update(reasons)
            if not reasons:
                unexplained.append(_described(exchange, differs))
    replayed.add((scenario, version))
    assert not unexplained, "\n" + "\n".join(unexplained)


def test_every_explained_difference_is_still_there(
    brokers: Brokers, needed: set[Explained], replayed: set[tuple[Scenario, int]]
) -> None:
    if len(replayed) < len(CASES):
        pytest.skip("says something only after all scenarios have run to their end")
    assert [line for line in EXPLAINED if line not in needed] == []


def _described(exchange: Exchange, differs: Differs) -> str:
    return (
        f"{differs.path or 'the answer'}\n"
        f"  Kafka: {_short(differs.kafka)}\n"
        f"  ours:  {_short(differs.ours)}\n"
        f"  to:    {_short(exchange.request)}"
    )


def _short(value: recording.Json) -> str:
    if value == MISSING:
        return MISSING
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) < 2000 else text[:2000] + " ..."
