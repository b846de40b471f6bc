"""What a scenario asked, as one hash: a recording holds for the very requests it answers.

Names, topic ids, member ids, session ids and producer ids are replaced as in recorded answers;
all else counts, the order of lists too.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterable
from typing import Any, TypeAlias

from tests.conformance.fields import OWN_PREFIX, Roles, without_uuid

Json: TypeAlias = Any

_LENGTH_AT, _MAGIC_AT, _CRC_AT, _PRODUCER_ID_AT, _HEADER_BYTES = 8, 16, 17, 43, 61
_DIGITS = 12


def digest(asked: Iterable[Json]) -> str:
    """Of all requests of one run of a scenario, as `stable` has them, in order."""
    text = json.dumps(list(asked), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def stable(request: Json, own_prefix: str, roles: Roles, field: str = "") -> Json:
    """The request as any run on any cluster has it. `request` is JSON but for bytes."""
    if isinstance(request, dict):
        return {name: stable(value, own_prefix, roles, name) for name, value in request.items()}
    if isinstance(request, list):
        return [stable(item, own_prefix, roles, field) for item in request]
    if isinstance(request, bytes):
        request = roles.without_topic_ids(request)
        return _without_producer_ids(request.replace(own_prefix.encode(), OWN_PREFIX.encode()))
    if isinstance(request, str):
        return without_uuid(roles.topic_id(request)).replace(own_prefix, OWN_PREFIX)
    if field in ("session_id", "producer_id") and request > 0:
        return f"<a {field}>"
    return request


def _without_producer_ids(data: bytes) -> str:
    """In hex. The id of a batch is in its CRC too."""
    found = bytearray(data)
    at = 0
    while at + _HEADER_BYTES <= len(found) and found[at + _MAGIC_AT] == 2:
        (producer_id,) = struct.unpack_from(">q", found, at + _PRODUCER_ID_AT)
        if producer_id >= 0:
            struct.pack_into(">q", found, at + _PRODUCER_ID_AT, 0)
            struct.pack_into(">I", found, at + _CRC_AT, 0)
        (length,) = struct.unpack_from(">i", found, at + _LENGTH_AT)
        at += max(length, 0) + _LENGTH_AT + 4
    return found.hex()
