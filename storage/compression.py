"""The four codecs of record batches, in the framings that Kafka's clients read and write.

Invariant: decompressing never makes more than the cap, whatever the bytes say.
"""

from __future__ import annotations

import struct
from enum import IntEnum

import cramjam

from mobula.protocol.errors import ErrorCode, KafkaError
from mobula.storage.batch import Buffer


class Codec(IntEnum):
    """The low three bits of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


CODEC_NAMES = {
    "uncompressed": Codec.NONE,
    "none": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}
"""As `compression.type` spells them; `producer` is not a codec."""

MAX_DECOMPRESSED_BYTES = 128 << 20
_FIRST_GUESS_BYTES = 64 << 10
_GROWTH = 8

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES = 32 << 10
_BIG_LENGTH = struct.Struct(">i")

_LZ4_HEADER = bytes.fromhex("04224d18604082")
"""Frame of independent 64 KiB blocks without checksums: Java reads no dependent ones."""
_LZ4_BLOCK_BYTES = 64 << 10
_LZ4_STORED = 0x80000000
_LZ4_DEFAULT_LEVEL = 9
_LITTLE_LENGTH = struct.Struct("<I")

_GZIP_DEFAULT_LEVEL = 6


def compress(codec: int, data: Buffer, level: int | None = None) -> bytes:
    """`level` None or Kafka's default of the codec means the codec's own default."""
    if codec == Codec.NONE:
        return bytes(data)
    if codec == Codec.GZIP:
        chosen = _GZIP_DEFAULT_LEVEL if level is None or level < 0 else level
        return bytes(cramjam.gzip.compress(data, level=chosen))
    if codec == Codec.SNAPPY:
        return _compress_xerial(data)
    if codec == Codec.LZ4:
        return _compress_lz4(data, level)
    if codec == Codec.ZSTD:
        return bytes(cramjam.zstd.compress(data, level=level))
    raise _unknown(codec)


def decompress(codec: int, data: Buffer, cap_bytes: int = MAX_DECOMPRESSED_BYTES) -> memoryview:
    """KafkaError corrupt_message when the bytes are damaged or grow over `cap_bytes`."""
    if codec == Codec.NONE:
        return memoryview(data)
    try:
        if codec == Codec.SNAPPY:
            return _decompress_snappy(memoryview(data), cap_bytes)
        if codec == Codec.GZIP:
            return _decompress_into(cramjam.gzip, data, cap_bytes)
        if codec == Codec.LZ4:
            return _decompress_into(cramjam.lz4, data, cap_bytes)
        if codec == Codec.ZSTD:
            return _decompress_into(cramjam.zstd, data, cap_bytes)
    except (cramjam.DecompressionError, struct.error) as error:
        raise KafkaError(
            ErrorCode.corrupt_message, f"{Codec(codec).name.lower()} data is damaged: {error}"
        ) from error
    raise _unknown(codec)


def _decompress_into(module: object, data: Buffer, cap_bytes: int) -> memoryview:
    """The frames need not say how much they hold: give room, and more when it was too
    little. A library that allocates by itself could be made to eat all memory."""
    room = min(cap_bytes, max(_FIRST_GUESS_BYTES, _GROWTH * len(data)))
    while True:
        out = bytearray(room)
        try:
            length: int = module.decompress_into(data, out)  # type: ignore[attr-defined]
        except cramjam.DecompressionError:
            if room == cap_bytes:
                raise
            room = min(cap_bytes, room * _GROWTH)
        else:
            return memoryview(out)[:length]


def _decompress_snappy(data: memoryview, cap_bytes: int) -> memoryview:
    """Java and its imitators frame by xerial's rules, librdkafka writes one bare block."""
    if not data:
        raise cramjam.DecompressionError("no data")
    if data[: len(_XERIAL_MAGIC)] != _XERIAL_MAGIC:
        return memoryview(_snappy_block(data, cap_bytes))
    out = bytearray()
    at = len(_XERIAL_HEADER)
    while at < len(data):
        (length,) = _BIG_LENGTH.unpack_from(data, at)
        at += 4
        if length < 0 or length > len(data) - at:
            raise cramjam.DecompressionError("snappy block is cut short")
        out += _snappy_block(data[at : at + length], cap_bytes - len(out))
        at += length
    return memoryview(out)


def _snappy_block(block: memoryview, cap_bytes: int) -> bytearray:
    length = cramjam.snappy.decompress_raw_len(block)
    if length > cap_bytes:
        raise cramjam.DecompressionError(f"grows over {cap_bytes} bytes")
    out = bytearray(length)
    if length:
        written = cramjam.snappy.decompress_raw_into(block, out)
        del out[written:]
    return out


def _compress_xerial(data: Buffer) -> bytes:
    view = memoryview(data)
    parts = [_XERIAL_HEADER]
    for at in range(0, len(view), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(view[at : at + _XERIAL_BLOCK_BYTES]))
        parts += (_BIG_LENGTH.pack(len(block)), block)
    return b"".join(parts)


def _compress_lz4(data: Buffer, level: int | None) -> bytes:
    view = memoryview(data)
    parts = [_LZ4_HEADER]
    for at in range(0, len(view), _LZ4_BLOCK_BYTES):
        block = view[at : at + _LZ4_BLOCK_BYTES]
        if level is None or level == _LZ4_DEFAULT_LEVEL:
            small = cramjam.lz4.compress_block(block, store_size=False)
        else:
            small = cramjam.lz4.compress_block(
                block, mode="high_compression", compression=level, store_size=False
            )
        packed = bytes(small)
        if len(packed) < len(block):
            parts += (_LITTLE_LENGTH.pack(len(packed)), packed)
        else:
            parts += (_LITTLE_LENGTH.pack(len(block) | _LZ4_STORED), bytes(block))
    parts.append(bytes(4))
    return b"".join(parts)


def _unknown(codec: int) -> KafkaError:
    return KafkaError(ErrorCode.invalid_record, f"unknown compression codec {codec}")
