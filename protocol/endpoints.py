"""The endpoints of new leaders, which Produce (v10+) and Fetch (v16+) answer with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mobula.protocol.primitives import (
    INT32,
    NO_TAGS,
    encode_compact_nullable_string,
    encode_compact_string,
    encode_tags,
    encode_uvarint,
)


class NodeEndpoint(NamedTuple):
    node_id: int
    host: str
    port: int
    rack: str | None


def encode_endpoint_tags(endpoints: Sequence[tuple[int, str, int, str | None]]) -> bytes:
    """The tagged fields of a response whose only one, tag 0, is the endpoints."""
    if not endpoints:
        return NO_TAGS
    parts = [encode_uvarint(len(endpoints) + 1)]
    for node_id, host, port, rack in endpoints:
        parts += (
            INT32.pack(node_id),
            encode_compact_string(host),
            INT32.pack(port),
            encode_compact_nullable_string(rack),
            NO_TAGS,
        )
    return encode_tags([(0, b"".join(parts))])
