"""The frames of a link, the same whatever carries them.

    u32 length | u8 kind | u32 call id | u16 method id | u32 message length | message | bulk

The length counts what follows it. A message is msgpack; bulk is opaque bytes.

Invariant: the first frame of each direction is a HELLO; everything else comes after.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import msgspec

from mobula.actors.link.interface import Buffer
from mobula.actors.link.method import Message, encode

VERSION = 1

HELLO = 0
CALL = 1
NOTIFY = 2
REPLY = 3
FAILURE = 4
"""The call will get no reply; the message is a string that says why."""
CANCEL = 5
"""The caller wants no reply any more."""

_HEAD = struct.Struct(">IBIHI")
_REST = struct.Struct(">BIHI")

pack_head = _HEAD.pack
unpack_rest = _REST.unpack_from
"""Kind, call id, method id, message length; of a frame without its length."""

LENGTH_BYTES = 4
REST_BYTES = _REST.size
LAST_CALL_ID = 0xFFFF_FFFF

MAX_FRAME_BYTES = 256 * 1024 * 1024
"""More than any request that `socket.request.max.bytes` lets in by default (100 MB)."""


class Hello(Message, frozen=True, array_like=True, gc=False):
    """Who speaks. `incarnation` differs in each life of a process."""

    version: int
    name: str
    incarnation: int
    ray_node_id: str


decode_hello = msgspec.msgpack.Decoder(Hello).decode
decode_reason = msgspec.msgpack.Decoder(str).decode


def small_frame(kind: int, call_id: int, message: bytes = b"") -> bytes:
    """A frame without bulk and method."""
    return pack_head(REST_BYTES + len(message), kind, call_id, 0, len(message)) + message


def hello_frame(hello: Hello) -> bytes:
    return small_frame(HELLO, 0, encode(hello))


def failure_frame(call_id: int, reason: str) -> bytes:
    return small_frame(FAILURE, call_id, msgspec.msgpack.encode(reason))


def bulk_bytes(bulk: Sequence[Buffer]) -> int:
    return sum(map(len, bulk))
