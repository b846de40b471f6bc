"""Bags and answers as bytes, for Ray: a bytes object it passes as it is, all else it pickles.

bag:    u64 life | u64 outbox | u64 sequence | u16 length | name | content
answer: u64 life | u64 outbox | u64 sequence | content
"""

from __future__ import annotations

import struct

from mobula.actors.link.courier import Answer, Bag

_BAG = struct.Struct(">QQQH")
_ANSWER = struct.Struct(">QQQ")


def pack_bag(bag: Bag) -> bytes:
    name = bag.from_name.encode()
    head = _BAG.pack(bag.life, bag.outbox, bag.sequence, len(name))
    return b"".join((head, name, bag.content))


def unpack_bag(packed: bytes) -> Bag:
    life, outbox, sequence, length = _BAG.unpack_from(packed)
    end = _BAG.size + length
    return Bag(packed[_BAG.size : end].decode(), life, outbox, sequence, memoryview(packed)[end:])


def pack_answer(answer: Answer) -> bytes:
    head = _ANSWER.pack(answer.life, answer.outbox, answer.sequence)
    return b"".join((head, answer.content))


def unpack_answer(packed: bytes) -> Answer:
    life, outbox, sequence = _ANSWER.unpack_from(packed)
    return Answer(life, outbox, sequence, memoryview(packed)[_ANSWER.size :])
