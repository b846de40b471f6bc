"""The serving end by itself: who is answered, who is cut off, who is told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mobula.actors.link.endpoint import Endpoint
from mobula.actors.link.interface import Reply
from mobula.actors.link.local import new_scratch
from mobula.actors.link.method import Message, Method, encode
from mobula.actors.link.pipe import LinkLimits
from mobula.actors.link.session import OpenReply
from mobula.actors.link.wire import (
    CALL,
    FAILURE,
    HELLO,
    REPLY,
    REST_BYTES,
    VERSION,
    Hello,
    decode_reason,
    hello_frame,
    pack_head,
    small_frame,
    unpack_rest,
)
from tests.unit.link.fakes import FakeLoop, FakePipe, as_loop


class Word(Message, frozen=True, array_like=True):
    word: str


SAY = Method(1, "say", Word, Word)
LIMITS = LinkLimits(max_frame_bytes=1000, max_unread_bytes=500)


class Server:
    def __init__(self) -> None:
        hello = Hello(VERSION, "callee", 7, "node-1")
        self.callers: list[str] = []
        loop = as_loop(FakeLoop())
        self.endpoint = Endpoint(loop, hello, LIMITS, new_scratch(), self.callers.append, turn=loop)
        self.replies: list[OpenReply] = []
        self.cancelled: list[str] = []
        self.endpoint.serve(SAY, self._say)

    def _say(self, message: Word, bulk: memoryview, reply: Any) -> None:
        reply.on_cancel = lambda: self.cancelled.append(message.word)
        self.replies.append(reply)

    def connect(self, name: str = "caller", incarnation: int = 1) -> FakePipe:
        session = self.endpoint.new_session()
        session.pipe = pipe = FakePipe(session)
        pipe.receive(hello_frame(Hello(VERSION, name, incarnation, "node-1")))
        return pipe


def call(pipe: FakePipe, call_id: int, word: str, method: int = 1) -> None:
    body = encode(Word(word))
    pipe.receive(pack_head(REST_BYTES + len(body), CALL, call_id, method, len(body)) + body)


def reason_of(frame: bytes) -> str:
    kind, _, _, length = unpack_rest(frame)
    assert kind == FAILURE
    return decode_reason(frame[REST_BYTES : REST_BYTES + length])


def test_a_caller_is_greeted_back_and_heard_of() -> None:
    server = Server()
    pipe = server.connect()
    assert pipe.kinds() == [HELLO]
    assert server.callers == server.endpoint.callers() == ["caller"]


def test_a_new_life_of_a_caller_ends_what_the_former_left_open() -> None:
    server = Server()
    former = server.connect(incarnation=1)
    other = server.connect("somebody else", incarnation=1)
    call(former, 1, "parked")
    call(other, 1, "not concerned")
    server.connect(incarnation=2)
    assert server.cancelled == ["parked"]
    assert former.closed
    assert not other.closed
    assert server.endpoint.callers() == ["caller", "somebody else"]


def test_a_caller_that_is_gone_cancels_its_open_calls_alone() -> None:
    server = Server()
    pipe, other = server.connect(), server.connect("other")
    call(pipe, 1, "one")
    call(pipe, 2, "two")
    call(other, 1, "three")
    server.replies[0](Word("done"))
    pipe.receiver.lost("gone")
    assert server.cancelled == ["two"]
    server.replies[1](Word("too late"))
    assert pipe.kinds() == [HELLO, REPLY]


def test_a_caller_that_takes_no_replies_is_cut_off() -> None:
    server = Server()
    pipe = server.connect()
    call(pipe, 1, "one")
    call(pipe, 2, "two")
    pipe.queued_bytes = 501
    server.replies[0](Word("x"))
    assert pipe.closed
    assert server.cancelled == ["two"]


def test_a_reply_over_the_frame_limit_becomes_a_failure() -> None:
    server = Server()
    pipe = server.connect()
    call(pipe, 1, "one")
    server.replies[0](Word("x"), [bytes(1000)])
    assert "too large" in reason_of(pipe.sent[-1])
    assert not pipe.closed


def test_a_message_that_cannot_be_decoded_fails_its_call_alone() -> None:
    server = Server()
    pipe = server.connect()
    pipe.receive(pack_head(REST_BYTES + 1, CALL, 5, SAY.id, 1) + b"\xc1")
    assert "bad message" in reason_of(pipe.sent[-1])
    call(pipe, 6, "fine")
    assert len(server.replies) == 1


def test_a_frame_that_breaks_the_rules_ends_the_session() -> None:
    too_long = pack_head(REST_BYTES, CALL, 1, SAY.id, 99)
    for frame in (small_frame(77, 1), too_long, hello_frame(Hello(99, "x", 1, ""))):
        server = Server()
        pipe = server.connect()
        pipe.receive(frame)
        assert pipe.closed
        assert server.endpoint.callers() == []


def test_a_call_parked_by_a_handler_that_lost_its_caller_meanwhile_is_cancelled() -> None:
    server = Server()
    pipe = server.connect()

    def park_and_lose(message: Word, bulk: memoryview, reply: Reply) -> None:
        reply.on_cancel = lambda: server.cancelled.append("parked")
        pipe.receiver.lost("gone")

    server.endpoint.serve(SAY, park_and_lose)
    call(pipe, 1, "x")
    assert server.cancelled == ["parked"]


def test_closing_the_endpoint_cancels_what_is_open() -> None:
    server = Server()
    pipe = server.connect()
    call(pipe, 1, "one")
    server.endpoint.close()
    assert server.cancelled == ["one"]
    assert pipe.closed


def test_bulk_belongs_to_the_handler() -> None:
    server = Server()
    pipe = server.connect()
    kept: list[memoryview] = []

    def keep(message: Word, bulk: memoryview, reply: Any, more: Sequence[int] = ()) -> None:
        kept.append(bulk)

    server.endpoint.serve(SAY, keep)
    body = encode(Word("x"))
    frame = pack_head(REST_BYTES + len(body) + 2, CALL, 1, SAY.id, len(body)) + body
    pipe.receive(frame + b"\0\1")
    pipe.receive(frame + b"\2\3")
    assert [bytes(view) for view in kept] == [b"\0\1", b"\2\3"]
