"""The last value of each key in a partition's log: all of it that a coordinator needs.

Until a cleaner has run, most records of such a log are old news: each commit of an offset
supersedes the one before it. So records are told apart by the bytes of their keys, and only
those that count are decoded.

Invariant: keys stand in the order of their last records.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from mobula.storage.batch import HEADER_BYTES, LOG_OVERHEAD, MAGIC
from mobula.storage.errors import StorageError
from mobula.storage.records import iter_records

_HEAD = struct.Struct(">qi5x4xhi30xi")
"""Of a batch: base offset, length, attributes, last offset delta, record count."""
_PLAIN = 0
_CODEC_MASK = 0x07
_CONTROL = 0x20


class LastValues:
    def __init__(self) -> None:
        self.records = 0
        """That were looked at."""
        self._values: dict[bytes, bytes | None] = {}

    def __iter__(self) -> Iterator[tuple[bytes, bytes | None]]:
        return iter(self._values.items())

    def add(self, data: memoryview) -> tuple[int, int]:
        """Take in whole batches; (bytes taken, offset after them). A torn batch is left.

        KafkaError or StorageError: the records are damaged.
        """
        at, next_offset, size = 0, -1, len(data)
        while size - at >= HEADER_BYTES:
            base_offset, length, attributes, last_delta, count = _HEAD.unpack_from(data, at)
            end = at + LOG_OVERHEAD + length
            if data[at + 16] != MAGIC or length < HEADER_BYTES - LOG_OVERHEAD:
                raise StorageError(f"no record batch at offset {base_offset}")
            if end > size:
                break
            if not attributes & _CONTROL:
                if attributes & _CODEC_MASK == _PLAIN:
                    self._add_plain(data, at + HEADER_BYTES, end, count)
                else:
                    self._add_any(data[at:end])
            at, next_offset = end, base_offset + last_delta + 1
        return at, next_offset

    def _put(self, key: bytes, value: bytes | None) -> None:
        values = self._values
        # Out and in again, so that it comes last.
        values.pop(key, None)
        values[key] = value

    def _add_any(self, batch: memoryview) -> None:
        for record in iter_records(batch):
            self.records += 1
            if record.key is not None:
                self._put(record.key, record.value)

    def _add_plain(self, data: memoryview, at: int, end: int, count: int) -> None:
        self.records += count
        for _ in range(count):
            length, at = _varint(data, at)
            after = at + length
            if length < 0 or after > end:
                raise StorageError("a record reaches past its batch")
            _, at = _varint(data, at + 1)
            _, at = _varint(data, at)
            length, at = _varint(data, at)
            if length >= 0:
                key = bytes(data[at : at + length])
                at += length
                length, at = _varint(data, at)
                if at + length > after:
                    raise StorageError("a record's value reaches past its end")
                self._put(key, None if length < 0 else bytes(data[at : at + length]))
            at = after


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    byte = data[at]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), at + 1
    raw = byte & 0x7F
    shift = 7
    while True:
        at += 1
        byte = data[at]
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (raw >> 1) ^ -(raw & 1), at + 1
        shift += 7
        if shift > 63:
            raise StorageError("a number of a record has no end")
