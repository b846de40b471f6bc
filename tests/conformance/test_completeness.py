"""Every version of every API that is served has scenarios, and they are recorded."""

from __future__ import annotations

import pytest

from mobula.protocol.api import ApiKey
from tests.conformance import recording
from tests.conformance.scenario import SERVED, all_scenarios

NOT_YET = {
    ApiKey.DESCRIBE_CONFIGS,
    ApiKey.ALTER_CONFIGS,
    ApiKey.DESCRIBE_LOG_DIRS,
    ApiKey.CREATE_PARTITIONS,
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
}
"""Their scenarios are still to be written."""

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
@pytest.mark.parametrize("api", sorted(SERVED.keys() - NOT_YET), ids=lambda api: api.name)
def test_every_version_that_is_served_has_a_scenario(api: ApiKey, good: bool) -> None:
    assert without_scenario(api, good=good) == []


@pytest.mark.parametrize("api", sorted(NOT_YET), ids=lambda api: api.name)
def test_an_api_that_has_its_scenarios_is_not_excused(api: ApiKey) -> None:
    assert without_scenario(api, good=True) or without_scenario(api, good=False)


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
