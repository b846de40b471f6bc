"""The records inside a batch: reading them, and building a batch of one's own.

The data path never comes here: a batch is opaque there. Used where a setting or a
question needs single records (compacted topics, time lookup), and by tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from mobula.protocol.errors import ErrorCode, KafkaError
from mobula.storage.batch import (
    CODEC_MASK,
    CONTROL_FLAG,
    HEADER_BYTES,
    LOG_APPEND_TIME_FLAG,
    LOG_OVERHEAD,
    MAGIC,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    Buffer,
    pack_header,
    parse_header,
    reseal,
)
from mobula.storage.compression import MAX_DECOMPRESSED_BYTES, compress, decompress

Headers = tuple[tuple[str, bytes | None], ...]


class Record(NamedTuple):
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class NewRecord(NamedTuple):
    """A record before it has an offset."""

    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class RecordKey(NamedTuple):
    """The little of a record that checks and time lookup need."""

    offset: int
    timestamp: int
    has_key: bool


def iter_records(batch: Buffer, cap_bytes: int = MAX_DECOMPRESSED_BYTES) -> Iterator[Record]:
    """All records of the batch. KafkaError corrupt_message or invalid_record if damaged."""
    header, body = _open(batch, cap_bytes)
    for offset, timestamp, key_at, end in _frames(header, body):
        key, at = _bytes(body, key_at, end)
        value, at = _bytes(body, at, end)
        count, at = _varint(body, at, end)
        if count < 0:
            raise _damaged()
        headers = []
        for _ in range(count):
            name, at = _bytes(body, at, end)
            content, at = _bytes(body, at, end)
            headers.append(((name or b"").decode("utf-8", "replace"), content))
        yield Record(offset, timestamp, key, value, tuple(headers))


def iter_record_keys(batch: Buffer, cap_bytes: int = MAX_DECOMPRESSED_BYTES) -> Iterator[RecordKey]:
    """The same without making keys, values and headers."""
    header, body = _open(batch, cap_bytes)
    for offset, timestamp, at, end in _frames(header, body):
        length, _ = _varint(body, at, end)
        yield RecordKey(offset, timestamp, length >= 0)


def _open(batch: Buffer, cap_bytes: int) -> tuple[BatchHeader, memoryview]:
    header = parse_header(batch)
    payload = memoryview(batch)[HEADER_BYTES : header.size_bytes]
    return header, decompress(header.attributes & CODEC_MASK, payload, cap_bytes)


def _frames(header: BatchHeader, body: memoryview) -> Iterator[tuple[int, int, int, int]]:
    """(offset, timestamp, where the key's length stands, end) of each record."""
    at = 0
    log_append_time = header.is_log_append_time
    for _ in range(header.record_count):
        length, at = _varint(body, at, len(body))
        end = at + length
        if length < 1 or end > len(body):
            raise _damaged()
        timestamp_delta, at = _varint(body, at + 1, end)
        offset_delta, at = _varint(body, at, end)
        timestamp = (
            header.max_timestamp if log_append_time else header.base_timestamp + timestamp_delta
        )
        yield header.base_offset + offset_delta, timestamp, at, end
        at = end


def _varint(data: memoryview, at: int, end: int) -> tuple[int, int]:
    """A zigzag varint and where it ends."""
    raw = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        at += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (raw >> 1) ^ -(raw & 1), at
        shift += 7
    raise _damaged()


def _bytes(data: memoryview, at: int, end: int) -> tuple[bytes | None, int]:
    length, at = _varint(data, at, end)
    if length < 0:
        return None, at
    if at + length > end:
        raise _damaged()
    return bytes(data[at : at + length]), at + length


def _damaged() -> KafkaError:
    return KafkaError(ErrorCode.invalid_record, "records of the batch are damaged")


def build_batch(
    records: Iterable[NewRecord],
    *,
    base_offset: int = 0,
    codec: int = 0,
    level: int | None = None,
    leader_epoch: int = -1,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    control: bool = False,
    log_append_time_ms: int | None = None,
) -> bytearray:
    """One batch of these records, sealed."""
    chosen = list(records)
    if not chosen:
        raise ValueError("a batch holds at least one record")
    base_timestamp = chosen[0].timestamp
    body = bytearray()
    for delta, record in enumerate(chosen):
        _put_record(body, record, record.timestamp - base_timestamp, delta)
    attributes = codec
    attributes |= TRANSACTIONAL_FLAG if transactional else 0
    attributes |= CONTROL_FLAG if control else 0
    max_timestamp = max(record.timestamp for record in chosen)
    if log_append_time_ms is not None:
        attributes |= LOG_APPEND_TIME_FLAG
        max_timestamp = log_append_time_ms
    header = BatchHeader(
        base_offset=base_offset,
        batch_length=0,
        partition_leader_epoch=leader_epoch,
        magic=MAGIC,
        crc=0,
        attributes=attributes,
        last_offset_delta=len(chosen) - 1,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=len(chosen),
    )
    return _seal(header, compress(codec, body, level))


def recompress(
    batch: Buffer,
    codec: int,
    level: int | None = None,
    cap_bytes: int = MAX_DECOMPRESSED_BYTES,
) -> bytearray:
    """The same records in another codec; all else of the header stays."""
    header, body = _open(batch, cap_bytes)
    attributes = header.attributes & ~CODEC_MASK | codec
    return _seal(header._replace(attributes=attributes), compress(codec, body, level))


def _seal(header: BatchHeader, payload: bytes) -> bytearray:
    length = HEADER_BYTES - LOG_OVERHEAD + len(payload)
    batch = bytearray(pack_header(header._replace(batch_length=length)))
    batch += payload
    reseal(memoryview(batch))
    return batch


def _put_record(out: bytearray, record: NewRecord, timestamp_delta: int, delta: int) -> None:
    body = bytearray(1)
    _put_varint(body, timestamp_delta)
    _put_varint(body, delta)
    _put_bytes(body, record.key)
    _put_bytes(body, record.value)
    _put_varint(body, len(record.headers))
    for name, content in record.headers:
        _put_bytes(body, name.encode())
        _put_bytes(body, content)
    _put_varint(out, len(body))
    out += body


def _put_bytes(out: bytearray, data: bytes | None) -> None:
    if data is None:
        _put_varint(out, -1)
    else:
        _put_varint(out, len(data))
        out += data


def _put_varint(out: bytearray, value: int) -> None:
    raw = (value << 1) ^ (value >> 63)
    while raw > 0x7F:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)
