"""What stands in `__consumer_offsets`, in Kafka's formats.

A key begins with its type, a value with its version. Kafka 4 writes the versions that are
written here; older ones are read.
"""

from __future__ import annotations

import struct
from typing import NamedTuple, TypeAlias

_SHORT = struct.Struct(">h")
_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")
_OFFSET_HEAD = struct.Struct(">hqi")

_OFFSET_KEYS = (0, 1)
_GROUP_KEY = 2
_OFFSET_VALUE = 3
_GROUP_VALUE = 3
NO_EXPIRY = -1


class OffsetKey(NamedTuple):
    group: str
    topic: str
    partition: int


class OffsetValue(NamedTuple):
    offset: int
    leader_epoch: int
    metadata: str
    commit_ms: int
    expire_ms: int = NO_EXPIRY
    """Only what clients of Kafka 2 and before asked for."""


class GroupKey(NamedTuple):
    """Of a classic group."""

    group: str


class MemberValue(NamedTuple):
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


class GroupValue(NamedTuple):
    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    state_ms: int
    """Since when the group is in its state; -1 in records of old versions."""
    members: tuple[MemberValue, ...]


class OffsetRecord(NamedTuple):
    key: OffsetKey
    value: OffsetValue | None
    """None: the offset is no more."""


class GroupRecord(NamedTuple):
    key: GroupKey
    value: GroupValue | None


Record: TypeAlias = OffsetRecord | GroupRecord


def encode(record: Record) -> tuple[bytes, bytes | None]:
    """Key and value."""
    if isinstance(record, OffsetRecord):
        group, topic, partition = record.key
        key = _SHORT.pack(1) + _text(group) + _text(topic) + _INT.pack(partition)
        return key, None if record.value is None else _offset_value(record.value)
    key = _SHORT.pack(_GROUP_KEY) + _text(record.key.group)
    return key, None if record.value is None else _group_value(record.value)


def decode(key: bytes, value: bytes | None) -> Record | None:
    """None: a record of a kind that is not known here, as a later version may write.

    ValueError: it is damaged.
    """
    try:
        reader = _Reader(key)
        kind = reader.i16()
        if kind in _OFFSET_KEYS:
            return OffsetRecord(
                OffsetKey(reader.text(), reader.text(), reader.i32()),
                None if value is None else _read_offset(value),
            )
        if kind == _GROUP_KEY:
            return GroupRecord(
                GroupKey(reader.text()), None if value is None else _read_group(value)
            )
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise ValueError(f"record of a coordinator cannot be read: {error}") from error
    return None


def _text(value: str) -> bytes:
    data = value.encode()
    return _SHORT.pack(len(data)) + data


def _nullable(value: str | None) -> bytes:
    return _SHORT.pack(-1) if value is None else _text(value)


def _bytes(value: bytes) -> bytes:
    return _INT.pack(len(value)) + value


def _offset_value(value: OffsetValue) -> bytes:
    if value.expire_ms != NO_EXPIRY:
        # Only version 1 has the field.
        return b"".join(
            (
                _SHORT.pack(1),
                _LONG.pack(value.offset),
                _text(value.metadata),
                _LONG.pack(value.commit_ms),
                _LONG.pack(value.expire_ms),
            )
        )
    head = _OFFSET_HEAD.pack(_OFFSET_VALUE, value.offset, value.leader_epoch)
    return head + _text(value.metadata) + _LONG.pack(value.commit_ms)


def _read_offset(data: bytes) -> OffsetValue:
    reader = _Reader(data)
    version = reader.i16()
    compact = version >= 4
    offset = reader.i64()
    leader_epoch = reader.i32() if version >= 3 else -1
    metadata = reader.compact_text() if compact else reader.text()
    commit_ms = reader.i64()
    expire_ms = reader.i64() if version == 1 else NO_EXPIRY
    return OffsetValue(offset, leader_epoch, metadata or "", commit_ms, expire_ms)


def _group_value(value: GroupValue) -> bytes:
    parts = [
        _SHORT.pack(_GROUP_VALUE),
        _text(value.protocol_type),
        _INT.pack(value.generation),
        _nullable(value.protocol),
        _nullable(value.leader),
        _LONG.pack(value.state_ms),
        _INT.pack(len(value.members)),
    ]
    for member in value.members:
        parts += (
            _text(member.member_id),
            _nullable(member.instance_id),
            _text(member.client_id),
            _text(member.client_host),
            _INT.pack(member.rebalance_timeout_ms),
            _INT.pack(member.session_timeout_ms),
            _bytes(member.subscription),
            _bytes(member.assignment),
        )
    return b"".join(parts)


def _read_group(data: bytes) -> GroupValue:
    reader = _Reader(data)
    version = reader.i16()
    if version >= 4:
        return _read_compact_group(reader)
    protocol_type = reader.text()
    generation = reader.i32()
    protocol = reader.nullable_text()
    leader = reader.nullable_text()
    state_ms = reader.i64() if version >= 2 else -1
    members = []
    for _ in range(reader.i32()):
        member_id = reader.text()
        instance_id = reader.nullable_text() if version >= 3 else None
        client_id = reader.text()
        client_host = reader.text()
        rebalance_ms = reader.i32() if version >= 1 else -1
        session_ms = reader.i32()
        members.append(
            MemberValue(
                member_id,
                instance_id,
                client_id,
                client_host,
                session_ms if rebalance_ms < 0 else rebalance_ms,
                session_ms,
                reader.blob(),
                reader.blob(),
            )
        )
    return GroupValue(protocol_type, generation, protocol, leader, state_ms, tuple(members))


def _read_compact_group(reader: _Reader) -> GroupValue:
    protocol_type = reader.compact_text() or ""
    generation = reader.i32()
    protocol = reader.compact_text()
    leader = reader.compact_text()
    state_ms = reader.i64()
    members = []
    for _ in range(reader.varint() - 1):
        members.append(
            MemberValue(
                reader.compact_text() or "",
                reader.compact_text(),
                reader.compact_text() or "",
                reader.compact_text() or "",
                reader.i32(),
                reader.i32(),
                reader.compact_bytes(),
                reader.compact_bytes(),
            )
        )
        reader.tags()
    return GroupValue(protocol_type, generation, protocol, leader, state_ms, tuple(members))


class _Reader:
    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def i16(self) -> int:
        (value,) = _SHORT.unpack_from(self._data, self._at)
        self._at += 2
        return int(value)

    def i32(self) -> int:
        (value,) = _INT.unpack_from(self._data, self._at)
        self._at += 4
        return int(value)

    def i64(self) -> int:
        (value,) = _LONG.unpack_from(self._data, self._at)
        self._at += 8
        return int(value)

    def take(self, length: int) -> bytes:
        data = self._data[self._at : self._at + length]
        if length < 0 or len(data) < length:
            raise IndexError(f"{length} bytes were expected")
        self._at += length
        return data

    def text(self) -> str:
        return self.take(self.i16()).decode()

    def nullable_text(self) -> str | None:
        length = self.i16()
        return None if length < 0 else self.take(length).decode()

    def blob(self) -> bytes:
        return self.take(self.i32())

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._data[self._at]
            self._at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def compact_text(self) -> str | None:
        length = self.varint() - 1
        return None if length < 0 else self.take(length).decode()

    def compact_bytes(self) -> bytes:
        return self.take(self.varint() - 1)

    def tags(self) -> None:
        for _ in range(self.varint()):
            self.varint()
            self.take(self.varint())
