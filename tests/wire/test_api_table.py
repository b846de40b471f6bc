"""The API table against kio's schemas, which come from Kafka's own."""

from __future__ import annotations

import pytest
from kio.schema.index import api_key_map, schema_name_map

from mobula.protocol.api import (
    FIRST_FLEXIBLE,
    Api,
    ApiKey,
    flexible,
    request_header_version,
    response_header_version,
)
from tests.wire.served import SERVED_VERSIONS, request_class, response_class

ALL = [
    (key, version)
    for key, name in sorted(api_key_map.items())
    for version in sorted(schema_name_map[name])
]


def test_every_api_that_kio_knows_has_kafkas_name() -> None:
    assert {key.value: key.name.lower() for key in ApiKey if key in api_key_map} == dict(
        api_key_map
    )


def test_every_key_has_a_first_flexible_version() -> None:
    assert set(FIRST_FLEXIBLE) == set(ApiKey)


@pytest.mark.parametrize("key", sorted(api_key_map), ids=lambda key: api_key_map[key])
def test_header_versions_are_those_of_the_schemas(key: int) -> None:
    for version in sorted(schema_name_map[api_key_map[key]]):
        request, response = request_class(key, version), response_class(key, version)
        assert flexible(key, version) == request.__flexible__ == response.__flexible__
        assert request_header_version(key, version) == request.__header_schema__.__version__
        assert response_header_version(key, version) == response.__header_schema__.__version__


def test_the_schemas_have_every_version_we_serve() -> None:
    assert set(SERVED_VERSIONS) <= set(ALL)


def test_an_api_versions_response_has_header_version_0_in_every_version() -> None:
    assert {response_header_version(ApiKey.API_VERSIONS, v) for v in range(100)} == {0}


def test_an_api_serves_what_it_advertises_unless_it_says_otherwise() -> None:
    metadata = Api(ApiKey.METADATA, range(14))
    produce = Api(ApiKey.PRODUCE, range(14), served=range(3, 14))
    assert metadata.served == metadata.versions == range(14)
    assert (produce.versions, produce.served) == (range(14), range(3, 14))


def test_an_api_without_a_version_is_refused() -> None:
    with pytest.raises(ValueError, match="METADATA declares no version"):
        Api(ApiKey.METADATA, range(0))
