"""Every version of every API that is served has scenarios, and they are recorded."""

from __future__ import annotations

import pytest

from mobula.actors.config.definitions import BROKER_KEYS, TOPIC_KEYS
from mobula.actors.config.unsupported import reason
from mobula.protocol.api import ApiKey
from tests.conformance import recording
from tests.conformance.configs import BROKER, TOPIC
from tests.conformance.scenario import SERVED, all_scenarios
from tests.conformance.side import CLOSED

SCENARIOS = all_scenarios()


def without_scenario(api: ApiKey, *, good: bool) -> list[int]:
    covered = {
        version
        for scenario in SCENARIOS
        if scenario.api == api and scenario.good == good
        for version in scenario.versions
    }
    return [version for version in SERVED[api] if version not in covered]


@pytest.mark.parametrize("good", [True, False], ids=["good", "bad"])
@pytest.mark.parametrize("api", sorted(SERVED), ids=lambda api: api.name)
def test_every_version_that_is_served_has_a_scenario(api: ApiKey, good: bool) -> None:
    assert without_scenario(api, good=good) == []


def test_what_is_recorded_is_what_there_are_scenarios_for() -> None:
    declared = {
        (scenario.group, scenario.name, version)
        for scenario in SCENARIOS
        for version in scenario.versions
    }
    recorded = {
        (group, name, version)
        for group in recording.groups()
        for name, versions in recording.load(group).items()
        for version in versions
    }
    assert recorded == declared, "run `make record-kafka`"


def test_of_every_key_of_kafkas_that_we_have_not_it_is_known_why() -> None:
    described = [
        result
        for versions in recording.load("describe_configs").values()
        for answers in versions.values()
        for answer in answers
        if answer != CLOSED
        for result in answer["results"]
        if result["resource_type"] in (TOPIC, BROKER)
    ]
    keys = {config["name"] for result in described for config in result["configs"]}
    assert len(keys) > len(BROKER_KEYS)
    unknown = keys - BROKER_KEYS.keys() - TOPIC_KEYS.keys()
    assert [key for key in sorted(unknown) if reason(key) is None] == []
