"""DescribeConfigs: every default with its source, in every version."""

from __future__ import annotations

from typing import Any

import pytest

from mobula.actors.config.definitions import BROKER_KEYS, TOPIC_KEYS
from mobula.actors.gateway.handlers import describe_configs
from mobula.actors.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE
from mobula.actors.metadata.records import ConfigChanged
from mobula.protocol.errors import ErrorCode
from tests.unit.gateway_describe.fakes import Exchange, broker, cluster, services, topic

ALL_VERSIONS = pytest.mark.parametrize("version", list(describe_configs.API.versions))
SERVICES = services(
    cluster(
        broker(0),
        *topic("orders", 1),
        ConfigChanged(TOPIC_RESOURCE, "orders", "retention.ms", "5"),
        ConfigChanged(BROKER_RESOURCE, "", "message.max.bytes", "77"),
    ),
    settings={"log.segment.bytes": "1000"},
    data_dir="/data/broker-0",
)


def _describe(version: int, *resources: dict[str, Any], **options: bool) -> Any:
    tree = {"resources": list(resources), **options}
    return Exchange(describe_configs, version, tree, SERVICES).response


def _resource(kind: int, name: str, keys: list[str] | None = None) -> dict[str, Any]:
    return {"resource_type": kind, "resource_name": name, "configuration_keys": keys}


@ALL_VERSIONS
def test_a_topic_has_every_key_with_value_and_source(version: int) -> None:
    (result,) = _describe(version, _resource(TOPIC_RESOURCE, "orders")).results
    assert result.error_code is ErrorCode.none
    configs = {config.name: config for config in result.configs}
    assert configs.keys() == TOPIC_KEYS.keys()
    assert (configs["retention.ms"].value, configs["retention.ms"].config_source) == ("5", 1)
    assert (configs["segment.bytes"].value, configs["segment.bytes"].config_source) == ("1000", 4)
    assert (configs["max.message.bytes"].value, configs["max.message.bytes"].config_source) == (
        "77",
        3,
    )
    assert configs["cleanup.policy"].config_source == 5
    assert not any(config.read_only or config.is_sensitive for config in result.configs)


@ALL_VERSIONS
def test_a_broker_describes_itself(version: int) -> None:
    (result,) = _describe(version, _resource(BROKER_RESOURCE, "0")).results
    configs = {config.name: config for config in result.configs}
    assert configs.keys() == BROKER_KEYS.keys()
    assert configs["log.dirs"].value == "/data/broker-0"
    assert configs["node.id"].value == "0"
    assert configs["num.io.threads"].read_only
    assert not configs["log.segment.bytes"].read_only


@pytest.mark.parametrize("name", ["0", "00", "+0", "-0"])
def test_a_brokers_number_is_the_same_however_it_is_written(name: str) -> None:
    (result,) = _describe(4, _resource(BROKER_RESOURCE, name, ["node.id"])).results
    assert (result.error_code, result.resource_name) == (ErrorCode.none, name)
    assert [config.value for config in result.configs] == ["0"]


def test_synonyms_come_only_when_asked_for() -> None:
    resource = _resource(TOPIC_RESOURCE, "orders", ["retention.ms"])
    (without,) = _describe(4, resource).results
    assert without.configs[0].synonyms == ()
    (result,) = _describe(4, resource, include_synonyms=True).results
    assert [(s.name, s.value, s.source) for s in result.configs[0].synonyms] == [
        ("retention.ms", "5", 1),
    ]


@pytest.mark.parametrize("version", [3, 4])
def test_types_and_documentation_come_from_v3_on(version: int) -> None:
    resource = _resource(TOPIC_RESOURCE, "orders", ["retention.ms", "preallocate"])
    (result,) = _describe(version, resource, include_documentation=True).results
    by_name = {config.name: config for config in result.configs}
    assert by_name["retention.ms"].config_type == 5
    assert by_name["preallocate"].config_type == 1
    assert by_name["retention.ms"].documentation == TOPIC_KEYS["retention.ms"].doc
    (plain,) = _describe(version, resource).results
    assert plain.configs[0].documentation is None


@pytest.mark.parametrize("keys", [None, []])
def test_no_keys_at_all_ask_for_everything(keys: list[str] | None) -> None:
    (result,) = _describe(4, _resource(TOPIC_RESOURCE, "orders", keys)).results
    assert len(result.configs) == len(TOPIC_KEYS)


def test_a_key_that_does_not_exist_is_left_out() -> None:
    (result,) = _describe(4, _resource(TOPIC_RESOURCE, "orders", ["segment.ms", "nope"])).results
    assert [config.name for config in result.configs] == ["segment.ms"]


def test_a_resource_that_is_named_twice_is_described_once_with_the_keys_of_both() -> None:
    some = _resource(TOPIC_RESOURCE, "orders", ["segment.ms"])
    other = _resource(TOPIC_RESOURCE, "orders", ["retention.ms"])
    (result,) = _describe(4, some, other, some).results
    assert {config.name for config in result.configs} == {"segment.ms", "retention.ms"}
    (result,) = _describe(4, some, _resource(TOPIC_RESOURCE, "orders"), other).results
    assert len(result.configs) == len(TOPIC_KEYS)


def test_all_brokers_have_only_what_was_changed_for_them() -> None:
    (result,) = _describe(4, _resource(BROKER_RESOURCE, "")).results
    assert [(c.name, c.value, c.config_source) for c in result.configs] == [
        ("message.max.bytes", "77", 3)
    ]


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (TOPIC_RESOURCE, "missing", ErrorCode.unknown_topic_or_partition),
        (TOPIC_RESOURCE, "no good", ErrorCode.invalid_topic_exception),
        (BROKER_RESOURCE, "1", ErrorCode.invalid_request),
        (BROKER_RESOURCE, "zero", ErrorCode.invalid_request),
        (8, "0", ErrorCode.invalid_request),
        (0, "", ErrorCode.invalid_request),
    ],
)
def test_one_bad_resource_never_fails_the_rest(kind: int, name: str, code: ErrorCode) -> None:
    bad, good = _describe(4, _resource(kind, name), _resource(TOPIC_RESOURCE, "orders")).results
    assert bad.error_code is code
    assert bad.error_message
    assert (bad.resource_type, bad.resource_name, bad.configs) == (kind, name, ())
    assert good.error_code is ErrorCode.none


@ALL_VERSIONS
@pytest.mark.parametrize("kind", [TOPIC_RESOURCE, BROKER_RESOURCE])
def test_a_name_as_long_as_a_string_may_be_fails_for_itself_alone(version: int, kind: int) -> None:
    name = "\x01" * 32_767
    bad, good = _describe(
        version, _resource(kind, name), _resource(TOPIC_RESOURCE, "orders")
    ).results
    assert bad.error_code is not ErrorCode.none
    assert bad.resource_name == name
    assert len(bad.error_message) < 2000
    assert good.error_code is ErrorCode.none
