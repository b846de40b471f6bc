"""Record batches as trees, for answers that hold records.

The CRC is part of the tree, so that two answers with the same tree have the same bytes.
"""

from __future__ import annotations

import struct
from typing import Any, TypeAlias

from mobula.storage.records import iter_records

Json: TypeAlias = Any

_HEADER = struct.Struct(">qiibIhiqqqhii")
_FIELDS = (
    "base_offset",
    "batch_length",
    "partition_leader_epoch",
    "magic",
    "crc",
    "attributes",
    "last_offset_delta",
    "base_timestamp",
    "max_timestamp",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "record_count",
)
_BEFORE_LENGTH_COUNTS = 12
_LOG_APPEND_TIME = 8


def described(data: bytes) -> Json:
    """A list of batches; what is no whole batch comes last, in hex."""
    found: list[Json] = []
    at = 0
    while at + _HEADER.size <= len(data):
        header = dict(zip(_FIELDS, _HEADER.unpack_from(data, at), strict=True))
        end = at + _BEFORE_LENGTH_COUNTS + header["batch_length"]
        if header["magic"] != 2 or end > len(data):
            break
        found.append({**_comparable(header), "records": _records(data[at:end])})
        at = end
    return [*found, data[at:].hex()] if at < len(data) else found


def _comparable(header: dict[str, Json]) -> dict[str, Json]:
    """Times and ids that a broker gave out are in the CRC too."""
    given: dict[str, Json] = {}
    if header["attributes"] & _LOG_APPEND_TIME:
        given["max_timestamp"] = "<a time>"
    if header["producer_id"] >= 0:
        given["producer_id"] = "<a producer id>"
    return {**header, **given, "crc": "<a crc>"} if given else header


def _records(batch: bytes) -> Json:
    return [
        {
            "offset": record.offset,
            "key": _text(record.key),
            "value": _text(record.value),
            "headers": [[name, _text(value)] for name, value in record.headers],
            **({} if batch[22] & _LOG_APPEND_TIME else {"timestamp": record.timestamp}),
        }
        for record in iter_records(batch)
    ]


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("latin-1")
