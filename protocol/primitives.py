"""The wire's own types: varints, strings, arrays and tagged fields.

Readers take `(buf, at)` and return `(value, next)`. `buf` is a frame's memory, so its
length bounds everything: a length that points past it is a DecodeError, raised before
anything of that length is made.

Invariant: on any bytes at all a reader returns or raises DecodeError.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final, TypeAlias

from mobula.protocol.errors import DecodeError

Buffer: TypeAlias = bytes | bytearray | memoryview

INT16: Final = struct.Struct(">h")
INT32: Final = struct.Struct(">i")
INT64: Final = struct.Struct(">q")
NULL_UUID: Final = bytes(16)
NO_TAGS: Final = b"\x00"
MAX_ITEMS: Final = 250_000
"""Most items, of all arrays together, in one message. The smallest item is two bytes on
the wire and a hundred in memory, so that bytes alone do not bound a message's memory."""

_unpack_int16 = INT16.unpack_from
_unpack_int32 = INT32.unpack_from
_pack_int16 = INT16.pack
_pack_int32 = INT32.pack


def truncated(what: str) -> DecodeError:
    return DecodeError(f"{what} ends past the end of the frame")


def read_uvarint(buf: memoryview, at: int) -> tuple[int, int]:
    """At most five bytes, at most 32 bits, as Kafka reads it."""
    try:
        byte = buf[at]
        if byte < 0x80:
            return byte, at + 1
        value = byte & 0x7F
        for shift in (7, 14, 21, 28):
            at += 1
            byte = buf[at]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if value > 0xFFFFFFFF:
                    break
                return value, at + 1
    except IndexError:
        raise truncated("a varint") from None
    raise DecodeError("a varint is longer than 32 bits")


def encode_uvarint(value: int) -> bytes:
    if value < 0x80:
        return _SMALL_VARINTS[value]
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


_SMALL_VARINTS: Final = [bytes((value,)) for value in range(0x80)]


def read_compact_length(buf: memoryview, at: int) -> tuple[int, int]:
    """The length of a compact string, bytes or array; -1 for null.

    An array of `n` items needs at least `n` bytes, so this bounds arrays as well.
    """
    length, at = read_uvarint(buf, at)
    if length - 1 > len(buf) - at:
        raise truncated(f"a field of length {length - 1}")
    return length - 1, at


def read_compact_nullable_string(buf: memoryview, at: int) -> tuple[str | None, int]:
    length, at = read_compact_length(buf, at)
    if length < 0:
        return None, at
    end = at + length
    return decode_utf8(buf[at:end]), end


def read_compact_string(buf: memoryview, at: int) -> tuple[str, int]:
    value, at = read_compact_nullable_string(buf, at)
    if value is None:
        raise DecodeError("null for a string that cannot be null")
    return value, at


def read_nullable_string(buf: memoryview, at: int) -> tuple[str | None, int]:
    try:
        (length,) = _unpack_int16(buf, at)
    except struct.error:
        raise truncated("a string") from None
    at += 2
    if length < 0:
        if length != -1:
            raise DecodeError(f"a string of length {length}")
        return None, at
    end = at + length
    if end > len(buf):
        raise truncated(f"a string of length {length}")
    return decode_utf8(buf[at:end]), end


def read_string(buf: memoryview, at: int) -> tuple[str, int]:
    value, at = read_nullable_string(buf, at)
    if value is None:
        raise DecodeError("null for a string that cannot be null")
    return value, at


def decode_utf8(view: memoryview) -> str:
    try:
        return str(view, "utf-8")
    except UnicodeDecodeError:
        raise DecodeError("a string that is not UTF-8") from None


def read_array_length(buf: memoryview, at: int) -> tuple[int, int]:
    """A 32-bit count of items, -1 for null, never more than the bytes that are left."""
    try:
        (count,) = _unpack_int32(buf, at)
    except struct.error:
        raise truncated("an array") from None
    at += 4
    if count < -1 or count > len(buf) - at:
        raise DecodeError(f"an array of {count} items in {len(buf) - at} bytes")
    return count, at


def too_many_items(count: int) -> DecodeError:
    return DecodeError(f"{count} items in one message, more than the {MAX_ITEMS} allowed")


def read_tags(buf: memoryview, at: int) -> tuple[list[tuple[int, int, int]], int]:
    """The tagged fields as (tag, start, end), and where they end."""
    count, at = read_uvarint(buf, at)
    if not count:
        return [], at
    if count > MAX_ITEMS:
        raise too_many_items(count)
    if count * 2 > len(buf) - at:
        raise truncated(f"{count} tagged fields")
    fields = []
    for _ in range(count):
        tag, at = read_uvarint(buf, at)
        size, at = read_uvarint(buf, at)
        if size > len(buf) - at:
            raise truncated(f"tagged field {tag}")
        fields.append((tag, at, at + size))
        at += size
    return fields, at


def skip_tags(buf: memoryview, at: int) -> int:
    """Where the tagged fields that start here end."""
    try:
        if not buf[at]:
            return at + 1
    except IndexError:
        raise truncated("a list of tagged fields") from None
    return read_tags(buf, at)[1]


def encode_string(value: str) -> bytes:
    data = value.encode()
    return _pack_int16(len(data)) + data


def encode_nullable_string(value: str | None) -> bytes:
    return b"\xff\xff" if value is None else encode_string(value)


def encode_compact_string(value: str) -> bytes:
    data = value.encode()
    return encode_uvarint(len(data) + 1) + data


def encode_compact_nullable_string(value: str | None) -> bytes:
    return b"\x00" if value is None else encode_compact_string(value)


def encode_tags(fields: Iterable[tuple[int, bytes]]) -> bytes:
    """Tagged fields, given in ascending order of tags."""
    parts: list[bytes] = []
    count = 0
    for tag, data in fields:
        parts += (encode_uvarint(tag), encode_uvarint(len(data)), data)
        count += 1
    return encode_uvarint(count) + b"".join(parts)
