"""What stands in `__transaction_state`, in Kafka's formats."""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

_SHORT = struct.Struct(">h")
_KEY_VERSION = 0
_FIXED = struct.Struct(">hqhib")
_TIMES = struct.Struct(">qq")
_COUNT = struct.Struct(">i")
_VALUE_VERSION = 0
_FLEXIBLE_VERSION = 1

Place = tuple[str, int]
"""Topic and partition."""


class State(IntEnum):
    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    """Expired: its id may be forgotten."""
    PREPARE_EPOCH_FENCE = 7


class TransactionValue(NamedTuple):
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: State
    partitions: frozenset[Place]
    """That take part: none where no transaction is open."""
    updated_ms: int
    started_ms: int
    """-1 while none was begun."""
    previous_producer_id: int = -1
    """Of the epoch before this producer id was given, while a client may yet ask with it."""
    next_producer_id: int = -1
    """To go on with when the transaction is complete, because the epochs are used up."""
    client_version: int = 0
    """transaction.version, as the client that began it speaks it."""
    next_producer_epoch: int = -1


class TransactionRecord(NamedTuple):
    transactional_id: str
    value: TransactionValue | None
    """None: the id is forgotten."""


def encode(record: TransactionRecord) -> tuple[bytes, bytes | None]:
    """Key and value."""
    text = record.transactional_id.encode()
    key = _SHORT.pack(_KEY_VERSION) + _SHORT.pack(len(text)) + text
    if record.value is None:
        return key, None
    value = record.value
    if value.client_version or value.previous_producer_id >= 0 or value.next_producer_id >= 0:
        return key, _flexible(value)
    parts = [_FIXED.pack(_VALUE_VERSION, *_head(value))]
    topics = _by_topic(value.partitions)
    parts.append(_COUNT.pack(-1 if value.state is State.EMPTY else len(topics)))
    if value.state is not State.EMPTY:
        for topic, indexes in topics.items():
            name = topic.encode()
            parts += (_SHORT.pack(len(name)), name, _COUNT.pack(len(indexes)))
            parts += (_COUNT.pack(index) for index in indexes)
    parts.append(_TIMES.pack(value.updated_ms, value.started_ms))
    return key, b"".join(parts)


def decode(key: bytes, value: bytes | None) -> TransactionRecord | None:
    """None: a record of a kind that is not known here. ValueError: it is damaged."""
    try:
        (version,) = _SHORT.unpack_from(key)
        if version != _KEY_VERSION:
            return None
        (length,) = _SHORT.unpack_from(key, 2)
        transactional_id = key[4 : 4 + length].decode()
        if value is None:
            return TransactionRecord(transactional_id, None)
        (version,) = _SHORT.unpack_from(value)
        if version > _FLEXIBLE_VERSION:
            return None
        read = _read_flexible if version == _FLEXIBLE_VERSION else _read
        return TransactionRecord(transactional_id, read(value))
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise ValueError(f"record of a transaction cannot be read: {error}") from error


def _head(value: TransactionValue) -> tuple[int, int, int, int]:
    return value.producer_id, value.producer_epoch, value.timeout_ms, value.state


def _by_topic(partitions: frozenset[Place]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(partitions):
        topics.setdefault(topic, []).append(index)
    return topics


def _read(data: bytes) -> TransactionValue:
    _, producer_id, epoch, timeout_ms, state = _FIXED.unpack_from(data)
    at = _FIXED.size
    (count,) = _COUNT.unpack_from(data, at)
    at += _COUNT.size
    places: list[Place] = []
    for _ in range(max(count, 0)):
        (length,) = _SHORT.unpack_from(data, at)
        at += 2
        topic = data[at : at + length].decode()
        at += length
        (indexes,) = _COUNT.unpack_from(data, at)
        at += _COUNT.size
        places += ((topic, index) for (index,) in _COUNT.iter_unpack(data[at : at + 4 * indexes]))
        at += 4 * indexes
    updated_ms, started_ms = _TIMES.unpack_from(data, at)
    return TransactionValue(
        producer_id, epoch, timeout_ms, State(state), frozenset(places), updated_ms, started_ms
    )


_PREVIOUS_ID, _NEXT_ID, _CLIENT_VERSION, _NEXT_EPOCH = range(4)
_TAGS = {
    _PREVIOUS_ID: ("previous_producer_id", struct.Struct(">q")),
    _NEXT_ID: ("next_producer_id", struct.Struct(">q")),
    _CLIENT_VERSION: ("client_version", _SHORT),
    _NEXT_EPOCH: ("next_producer_epoch", _SHORT),
}
_DEFAULTS = {"client_version": 0}


def _flexible(value: TransactionValue) -> bytes:
    parts = [_FIXED.pack(_FLEXIBLE_VERSION, *_head(value))]
    if value.state is State.EMPTY:
        parts.append(_unsigned(0))
    else:
        topics = _by_topic(value.partitions)
        parts.append(_unsigned(len(topics) + 1))
        for topic, indexes in topics.items():
            name = topic.encode()
            parts += (_unsigned(len(name) + 1), name, _unsigned(len(indexes) + 1))
            parts += (_COUNT.pack(index) for index in indexes)
            parts.append(_unsigned(0))
    parts.append(_TIMES.pack(value.updated_ms, value.started_ms))
    tags = [
        (tag, packer.pack(content))
        for tag, (field, packer) in _TAGS.items()
        if (content := getattr(value, field)) != _DEFAULTS.get(field, -1)
    ]
    parts.append(_unsigned(len(tags)))
    for tag, content in tags:
        parts += (_unsigned(tag), _unsigned(len(content)), content)
    return b"".join(parts)


def _read_flexible(data: bytes) -> TransactionValue:
    _, producer_id, epoch, timeout_ms, state = _FIXED.unpack_from(data)
    at = _FIXED.size
    count, at = _read_unsigned(data, at)
    places: list[Place] = []
    for _ in range(count - 1):
        length, at = _read_unsigned(data, at)
        topic = data[at : at + length - 1].decode()
        at += length - 1
        indexes, at = _read_unsigned(data, at)
        for _ in range(indexes - 1):
            places.append((topic, _COUNT.unpack_from(data, at)[0]))
            at += _COUNT.size
        _, at = _read_tags(data, at)
    updated_ms, started_ms = _TIMES.unpack_from(data, at)
    tags, _ = _read_tags(data, at + _TIMES.size)
    value = TransactionValue(
        producer_id, epoch, timeout_ms, State(state), frozenset(places), updated_ms, started_ms
    )
    known = {
        field: packer.unpack(tags[tag])[0] for tag, (field, packer) in _TAGS.items() if tag in tags
    }
    return value._replace(**known)


def _read_tags(data: bytes, at: int) -> tuple[dict[int, bytes], int]:
    tags = {}
    count, at = _read_unsigned(data, at)
    for _ in range(count):
        tag, at = _read_unsigned(data, at)
        length, at = _read_unsigned(data, at)
        tags[tag] = data[at : at + length]
        at += length
    return tags, at


def _unsigned(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _read_unsigned(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
