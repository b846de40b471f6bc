"""Record batch v2: the 61-byte header, and nothing of what follows it.

The CRC covers everything from the attributes on. Base offset, length, leader epoch and
magic stand before it, so a leader assigns offsets without touching the checksum.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from crc32c import crc32c

from mobula.protocol.errors import ErrorCode, KafkaError

Buffer: TypeAlias = bytes | bytearray | memoryview

HEADER_BYTES = 61
LOG_OVERHEAD = 12
"""Base offset and length: what the length field does not count."""
MAGIC = 2
NO_PRODUCER_ID = -1
NO_TIMESTAMP = -1

CODEC_MASK = 0x07
LOG_APPEND_TIME_FLAG = 0x08
TRANSACTIONAL_FLAG = 0x10
CONTROL_FLAG = 0x20
DELETE_HORIZON_FLAG = 0x40

_HEADER = struct.Struct(">qiibIhiqqqhii")
_OFFSET_AND_LENGTH = struct.Struct(">qi")
_PLACE = struct.Struct(">qii")
_CRC = struct.Struct(">I")
_ATTRIBUTES = struct.Struct(">h")
_TIMESTAMP = struct.Struct(">q")
_MAGIC_AT = 16
_CRC_AT = 17
CRC_COVERS_FROM = 21
_MAX_TIMESTAMP_AT = 35
_HIGHEST_CODEC = 4


class BatchHeader(NamedTuple):
    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size_bytes(self) -> int:
        return LOG_OVERHEAD + self.batch_length

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """Sequences wrap from the largest int to 0."""
        if self.base_sequence < 0:
            return self.base_sequence
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def is_log_append_time(self) -> bool:
        return bool(self.attributes & LOG_APPEND_TIME_FLAG)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_FLAG)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_FLAG)


def parse_header(buf: Buffer, at: int = 0) -> BatchHeader:
    """The header at `at`. struct.error when fewer than 61 bytes are there."""
    return BatchHeader._make(_HEADER.unpack_from(buf, at))


def iter_headers(buf: Buffer, at: int = 0) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of each whole batch from `at` on.

    Stops before the first one that is torn or cannot be a batch; CRCs are not checked.
    """
    end = len(buf)
    while end - at >= HEADER_BYTES:
        header = BatchHeader._make(_HEADER.unpack_from(buf, at))
        size = LOG_OVERHEAD + header.batch_length
        if header.magic != MAGIC or size < HEADER_BYTES or size > end - at:
            return
        yield at, header
        at += size


def crc_holds(buf: memoryview, at: int, header: BatchHeader) -> bool:
    """Whether the batch at `at`, all of it in `buf`, has the checksum its header says."""
    end = at + LOG_OVERHEAD + header.batch_length
    return bool(crc32c(buf[at + CRC_COVERS_FROM : end]) == header.crc)


def validate_client_batch(records: memoryview) -> BatchHeader:
    """The header of the one batch a client sent for a partition, found to be sound.

    Everything but the records themselves is checked. KafkaError otherwise, mostly
    invalid_record or corrupt_message.
    """
    length = len(records)
    if length < HEADER_BYTES:
        if length > _MAGIC_AT and records[_MAGIC_AT] != MAGIC:
            raise _bad_magic(records[_MAGIC_AT])
        raise _invalid("no record batch" if not length else "record batch is cut short")
    header = BatchHeader._make(_HEADER.unpack_from(records, 0))
    if header.magic != MAGIC:
        raise _bad_magic(header.magic)
    size = LOG_OVERHEAD + header.batch_length
    if size < HEADER_BYTES:
        raise _corrupt(f"record batch says {size} bytes, a header has {HEADER_BYTES}")
    if size > length:
        raise _invalid(f"record batch says {size} bytes, {length} came")
    if size < length:
        raise _invalid("more than one record batch for a partition")
    if crc32c(records[CRC_COVERS_FROM:]) != header.crc:
        raise _corrupt("record batch's CRC does not match its bytes")
    attributes = header.attributes
    if attributes & CONTROL_FLAG:
        raise _invalid("clients may not write control batches")
    if attributes & CODEC_MASK > _HIGHEST_CODEC:
        raise _invalid(f"unknown compression codec {attributes & CODEC_MASK}")
    if header.record_count <= 0 or header.last_offset_delta != header.record_count - 1:
        raise _invalid(
            f"record batch counts {header.record_count} records, its last offset delta is "
            f"{header.last_offset_delta}"
        )
    if header.producer_id >= 0 and (header.base_sequence < 0 or header.producer_epoch < 0):
        raise _invalid("record batch with a producer id but without sequence or epoch")
    if header.base_offset:
        raise _invalid(f"record batch has base offset {header.base_offset}, only 0 is accepted")
    if attributes & LOG_APPEND_TIME_FLAG:
        raise KafkaError(
            ErrorCode.invalid_timestamp, "a producer may not say that a batch has log append time"
        )
    return header


def place(batch: memoryview, batch_length: int, base_offset: int, leader_epoch: int) -> None:
    """The leader's rewrite: where the batch stands in the log. The CRC stays as it is."""
    _PLACE.pack_into(batch, 0, base_offset, batch_length, leader_epoch)


def stamp_log_append_time(batch: memoryview, attributes: int, now_ms: int) -> int:
    """Give the batch the time of the append, for all of its records. Its new CRC."""
    _ATTRIBUTES.pack_into(batch, CRC_COVERS_FROM, attributes | LOG_APPEND_TIME_FLAG)
    _TIMESTAMP.pack_into(batch, _MAX_TIMESTAMP_AT, now_ms)
    return reseal(batch)


def reseal(batch: memoryview) -> int:
    """Write the CRC that the batch's bytes have now."""
    crc: int = crc32c(batch[CRC_COVERS_FROM:])
    _CRC.pack_into(batch, _CRC_AT, crc)
    return crc


def pack_header(header: BatchHeader) -> bytes:
    return _HEADER.pack(*header)


def _bad_magic(magic: int) -> KafkaError:
    """Of a format that is no more, or of one that never was."""
    detail = f"record batch has magic {magic}, only {MAGIC} is accepted"
    return _invalid(detail) if 0 <= magic < MAGIC else _corrupt(detail)


def _invalid(detail: str) -> KafkaError:
    return KafkaError(ErrorCode.invalid_record, detail)


def _corrupt(detail: str) -> KafkaError:
    return KafkaError(ErrorCode.corrupt_message, detail)
