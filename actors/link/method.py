"""What can be called over a link: a method's number, its request and its reply.

A message is a small frozen struct, encoded as msgpack; bulk bytes (record batches)
travel beside it, never inside it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

import msgspec


class Message(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Base of every message between actors. Fields are positional on the wire."""


class Nothing(Message, frozen=True, array_like=True, gc=False):
    """A reply that says only that the call was carried out."""


RequestT = TypeVar("RequestT", bound=Message)
ReplyT = TypeVar("ReplyT", bound=Message)


@dataclass(frozen=True, slots=True, eq=False)
class Method(Generic[RequestT, ReplyT]):
    """One callable of an actor. `id` is unique among all methods of the project."""

    id: int
    name: str
    request: type[RequestT]
    reply: type[ReplyT]
    decode_request: msgspec.msgpack.Decoder[RequestT] = field(init=False, repr=False)
    decode_reply: msgspec.msgpack.Decoder[ReplyT] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "decode_request", msgspec.msgpack.Decoder(self.request))
        object.__setattr__(self, "decode_reply", msgspec.msgpack.Decoder(self.reply))


encode = msgspec.msgpack.Encoder().encode
