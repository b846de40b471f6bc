"""Kafka's error codes, and the two kinds of error that a request can end in."""

from __future__ import annotations

from kio.schema.errors import ErrorCode

__all__ = ["DecodeError", "ErrorCode", "KafkaError"]


class KafkaError(Exception):
    """An answer that the client must see, per partition where the API has partitions."""

    def __init__(self, code: ErrorCode, detail: str | None = None) -> None:
        super().__init__(detail or code.name)
        self.code = code
        self.detail = detail


class DecodeError(Exception):
    """Bytes that are not the protocol: the connection is closed."""
