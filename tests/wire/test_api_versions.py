"""ApiVersions by hand, against kio for every version."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mobula.protocol import messages
from mobula.protocol.api import ApiKey
from mobula.protocol.api_versions import (
    VERSIONS,
    ApiVersionsRequest,
    decode_api_versions_request,
    encode_api_versions_response,
    encode_unsupported_version,
)
from mobula.protocol.errors import DecodeError, ErrorCode, KafkaError
from tests.wire.served import kio_encode
from tests.wire.strategies import TEXT, signed

every_version = pytest.mark.parametrize("version", VERSIONS)


def request_body(version: int, name: str, software_version: str) -> memoryview:
    tree = {"client_software_name": name, "client_software_version": software_version}
    request = messages.build_request(ApiKey.API_VERSIONS, version, tree)
    return memoryview(bytearray(kio_encode(request)))


@every_version
@pytest.mark.parametrize("name", ["librdkafka", "a", "apache-kafka-java", "x.y", "A-1.b"])
def test_a_client_says_its_software_from_version_3(version: int, name: str) -> None:
    request = decode_api_versions_request(version, request_body(version, name, "2.4.0"))
    expected = ApiVersionsRequest(name, "2.4.0") if version >= 3 else ApiVersionsRequest()
    assert request == expected


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize("bad", ["", "-a", "a-", ".a", "a b", "a_b", "ä", "a\n", "a\x00"])
def test_a_name_that_no_software_may_have_is_an_invalid_request(version: int, bad: str) -> None:
    for name, software_version in ((bad, "1"), ("a", bad)):
        with pytest.raises(KafkaError) as error:
            decode_api_versions_request(version, request_body(version, name, software_version))
        assert error.value.code is ErrorCode.invalid_request


@pytest.mark.parametrize("version", [3, 4])
def test_garbage_is_a_decode_error(version: int) -> None:
    with pytest.raises(DecodeError):
        decode_api_versions_request(version, memoryview(b"\x7f\xff\xff\xff"))


@every_version
def test_what_follows_the_request_is_ignored(version: int) -> None:
    body = request_body(version, "a", "1")
    expected = decode_api_versions_request(version, body)
    assert decode_api_versions_request(version, memoryview(bytes(body) + b"more")) == expected


FEATURES = st.lists(st.tuples(TEXT, signed(16), signed(16)), max_size=3)


@every_version
@settings(deadline=None)
@given(
    apis=st.lists(st.tuples(signed(16), signed(16), signed(16)), max_size=5),
    error_code=st.sampled_from(ErrorCode),
    throttle_ms=signed(32),
    supported=FEATURES,
    finalized=FEATURES,
    epoch=st.just(-1) | signed(64),
)
def test_a_response_is_what_kio_writes(
    *,
    version: int,
    apis: Any,
    error_code: ErrorCode,
    throttle_ms: int,
    supported: Any,
    finalized: Any,
    epoch: int,
) -> None:
    tree = {
        "error_code": error_code,
        "api_keys": [
            {"api_key": key, "min_version": low, "max_version": high} for key, low, high in apis
        ],
        "throttle_time": throttle_ms,
        "supported_features": [
            {"name": name, "min_version": low, "max_version": high}
            for name, low, high in supported
            if version >= 4 or low > 0
        ],
        "finalized_features": [
            {"name": name, "max_version_level": high, "min_version_level": low}
            for name, high, low in finalized
        ],
        "finalized_features_epoch": epoch,
    }
    body = encode_api_versions_response(
        version,
        apis,
        error_code=error_code,
        throttle_ms=throttle_ms,
        supported_features=supported,
        finalized_features=finalized,
        finalized_features_epoch=epoch,
    )
    assert body == kio_encode(messages.build_response(ApiKey.API_VERSIONS, version, tree))


def test_features_from_version_0_are_kept_from_clients_that_cannot_read_them() -> None:
    features = [("kraft.version", 0, 1), ("metadata.version", 7, 25)]
    names = {
        version: [
            feature.name
            for feature in messages.decode_response(
                ApiKey.API_VERSIONS,
                version,
                encode_api_versions_response(version, [], supported_features=features),
            ).supported_features
        ]
        for version in (3, 4)
    }
    assert names == {3: ["metadata.version"], 4: ["kraft.version", "metadata.version"]}


def test_a_version_we_do_not_have_is_answered_in_version_0_with_this_apis_range() -> None:
    response = messages.decode_response(
        ApiKey.API_VERSIONS, 0, encode_unsupported_version(range(5))
    )
    (api,) = response.api_keys
    assert response.error_code is ErrorCode.unsupported_version
    assert (api.api_key, api.min_version, api.max_version) == (18, 0, 4)
