"""Kafka's error codes, and the two kinds of error that a request can end in."""

from __future__ import annotations

from typing import Final

from kio.schema.errors import ErrorCode

__all__ = ["DecodeError", "ErrorCode", "KafkaError"]


_MAX_DETAIL: Final = 1_000
"""Characters. A string of the older versions has at most 32,767 bytes, and what a detail
quotes may be as long as that itself."""


class KafkaError(Exception):
    """An answer that the client must see, per partition where the API has partitions.

    `detail` fits the error message of every version of every API.
    """

    def __init__(self, code: ErrorCode, detail: str | None = None) -> None:
        if detail is not None and len(detail) > _MAX_DETAIL:
            detail = detail[:_MAX_DETAIL] + "..."
        super().__init__(detail or code.name)
        self.code = code
        self.detail = detail


class DecodeError(Exception):
    """Bytes that are not the protocol: the connection is closed."""
