"""ApiVersions (key 18, v0-4): the first thing a client says, and what it may say after.

Versions: v1 throttle time; v3 flexible, the client names its software (KIP-511), features
(KIP-584); v4 may say features whose lowest version is 0 (KIP-1022).

A client that starts with a version we do not have is answered in version 0 with
UNSUPPORTED_VERSION and the versions of this one API, so that it can try again.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence

import msgspec

from mobula.protocol.api import ApiKey
from mobula.protocol.errors import ErrorCode, KafkaError
from mobula.protocol.primitives import (
    INT16,
    INT32,
    INT64,
    NO_TAGS,
    encode_compact_string,
    encode_tags,
    encode_uvarint,
    read_compact_string,
    skip_tags,
)

VERSIONS = range(5)
FIRST_FLEXIBLE = 3

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
_pack_api = struct.Struct(">hhh").pack
_pack_api_v3 = struct.Struct(">hhhx").pack
_pack_levels = struct.Struct(">hhx").pack


class ApiVersionsRequest(msgspec.Struct, frozen=True, gc=False):
    """Empty names before v3."""

    client_software_name: str = ""
    client_software_version: str = ""


def decode_api_versions_request(version: int, body: memoryview) -> ApiVersionsRequest:
    """DecodeError: not such a request. KafkaError: a name that no software may have.

    What follows the request is ignored, as Kafka does.
    """
    if version < FIRST_FLEXIBLE:
        return ApiVersionsRequest()
    name, at = read_compact_string(body, 0)
    software_version, at = read_compact_string(body, at)
    skip_tags(body, at)
    for value in (name, software_version):
        if not _SOFTWARE.fullmatch(value):
            raise KafkaError(ErrorCode.invalid_request, f"{value[:80]!r} names no client software")
    return ApiVersionsRequest(name, software_version)


def encode_api_versions_response(
    version: int,
    apis: Sequence[tuple[int, int, int]],
    *,
    error_code: int = 0,
    throttle_ms: int = 0,
    supported_features: Sequence[tuple[str, int, int]] = (),
    finalized_features: Sequence[tuple[str, int, int]] = (),
    finalized_features_epoch: int = -1,
) -> bytes:
    """The body of a response.

    `apis` are (key, lowest, highest version), `supported_features` (name, lowest, highest
    version), `finalized_features` (name, highest, lowest level), as on the wire.
    """
    if version < FIRST_FLEXIBLE:
        parts = [INT16.pack(error_code), INT32.pack(len(apis))]
        parts += [_pack_api(*api) for api in apis]
        if version >= 1:
            parts.append(INT32.pack(throttle_ms))
        return b"".join(parts)
    if version < 4:
        # Clients of that time take a lowest version of 0 for a broken response.
        supported_features = [feature for feature in supported_features if feature[1] > 0]
    parts = [INT16.pack(error_code), encode_uvarint(len(apis) + 1)]
    parts += [_pack_api_v3(*api) for api in apis]
    parts.append(INT32.pack(throttle_ms))
    tags = []
    if supported_features:
        tags.append((0, _encode_features(supported_features)))
    if finalized_features_epoch != -1:
        tags.append((1, INT64.pack(finalized_features_epoch)))
    if finalized_features:
        tags.append((2, _encode_features(finalized_features)))
    parts.append(encode_tags(tags) if tags else NO_TAGS)
    return b"".join(parts)


def _encode_features(features: Sequence[tuple[str, int, int]]) -> bytes:
    parts = [encode_uvarint(len(features) + 1)]
    for name, first, second in features:
        parts += (encode_compact_string(name), _pack_levels(first, second))
    return b"".join(parts)


def encode_unsupported_version(versions: range) -> bytes:
    """The body, always v0, for a version of ApiVersions outside `versions`."""
    return encode_api_versions_response(
        0,
        [(ApiKey.API_VERSIONS, versions[0], versions[-1])],
        error_code=ErrorCode.unsupported_version,
    )
