"""Fetch (key 1, v4-18): the request's decoder and the response's encoder, in one place."""

from __future__ import annotations

from mobula.protocol.fetch_request import (
    HIGH_WATERMARK_UNSUPPORTED,
    VERSIONS,
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    decode_fetch_request,
)
from mobula.protocol.fetch_response import (
    FetchPartitionResponse,
    FetchTopicResponse,
    encode_fetch_response,
)

__all__ = [
    "HIGH_WATERMARK_UNSUPPORTED",
    "VERSIONS",
    "FetchPartition",
    "FetchPartitionResponse",
    "FetchRequest",
    "FetchTopic",
    "FetchTopicResponse",
    "ForgottenTopic",
    "decode_fetch_request",
    "encode_fetch_response",
]
