"""The calling end by itself: bounds, deadlines, and each call ended exactly once."""

from __future__ import annotations

from typing import Any

import pytest

from mobula.actors.link.dial import Dialers
from mobula.actors.link.interface import LinkError
from mobula.actors.link.link import ActorLink
from mobula.actors.link.method import Message, Method, encode
from mobula.actors.link.pipe import LinkLimits
from mobula.actors.link.wire import CALL, CANCEL, HELLO, LAST_CALL_ID, NOTIFY, VERSION, Hello
from tests.unit.link.fakes import FakeDialer, FakeLoop, FakePipe, as_loop


class Word(Message, frozen=True, array_like=True):
    word: str


SAY = Method(1, "say", Word, Word)
LIMITS = LinkLimits(max_frame_bytes=1000, max_queued_bytes=500)


class Caller:
    """A link whose peer is the test."""

    def __init__(self, *, up: bool = True) -> None:
        self.loop = FakeLoop()
        self.dialer = FakeDialer()
        dialers = Dialers(Hello(VERSION, "caller", 1, "node-1"), self.dialer)
        self.link = ActorLink("callee", as_loop(self.loop), dialers, LIMITS)
        self.outcomes: list[tuple[str, Any]] = []
        if up:
            self.pipe.greet()

    @property
    def pipe(self) -> FakePipe:
        return self.dialer.pipes[-1]

    def call(self, word: str, *, bulk: bytes = b"", timeout_ms: int = 1000) -> int:
        return self.link.call(
            SAY,
            Word(word),
            lambda message, reply_bulk: self.outcomes.append((word, message.word)),
            lambda error: self.outcomes.append((word, error)),
            bulk=[bulk] if bulk else (),
            timeout_ms=timeout_ms,
        )

    def error(self, word: str) -> LinkError:
        [error] = [outcome for name, outcome in self.outcomes if name == word]
        assert isinstance(error, LinkError)
        return error

    def lose(self) -> None:
        self.pipe.receiver.lost("gone")


def test_the_first_frame_is_a_greeting_and_calls_follow_in_order() -> None:
    caller = Caller(up=False)
    caller.call("a")
    caller.call("b")
    assert caller.pipe.kinds() == [HELLO]
    assert caller.link.transport_name() == "down"
    caller.pipe.greet(incarnation=42)
    assert caller.pipe.kinds() == [HELLO, CALL, CALL]
    assert caller.link.transport_name() == "local"
    assert caller.link.peer_incarnation == 42


def test_a_call_over_the_frame_limit_fails_alone_and_was_not_sent() -> None:
    caller = Caller()
    caller.call("large", bulk=bytes(1000))
    assert caller.outcomes == [], "never before call() has returned"
    caller.loop.turn()
    assert not caller.error("large").sent
    assert caller.pipe.kinds() == [HELLO]
    assert caller.link.transport_name() == "local"


def test_calls_are_refused_while_too_much_waits_to_be_sent() -> None:
    caller = Caller()
    caller.pipe.queued_bytes = 501
    assert not caller.link.writable
    caller.call("refused")
    caller.loop.turn()
    assert not caller.error("refused").sent
    caller.pipe.queued_bytes = 0
    assert caller.link.writable
    caller.call("taken")
    assert caller.pipe.kinds() == [HELLO, CALL]


def test_calls_that_wait_for_the_link_are_bounded_by_bytes() -> None:
    caller = Caller(up=False)
    caller.call("first", bulk=bytes(600))
    caller.call("second")
    caller.loop.turn()
    assert "wait for the link" in caller.error("second").reason
    caller.pipe.greet()
    assert caller.pipe.kinds() == [HELLO, CALL]


def test_a_reply_after_the_deadline_or_a_cancel_is_ignored() -> None:
    caller = Caller()
    late = caller.call("late", timeout_ms=30)
    cancelled = caller.call("cancelled")
    caller.link.cancel(cancelled)
    caller.loop.advance(0.2)
    assert "deadline" in caller.error("late").reason
    caller.pipe.reply(late, encode(Word("x")))
    caller.pipe.reply(cancelled, encode(Word("x")))
    assert len(caller.outcomes) == 1
    assert caller.pipe.kinds() == [HELLO, CALL, CALL, CANCEL, CANCEL]


def test_deadlines_are_kept_in_the_order_of_their_times_not_of_the_calls() -> None:
    caller = Caller()
    caller.call("slow", timeout_ms=10_000)
    caller.call("quick", timeout_ms=100)
    caller.call("middle", timeout_ms=1000)
    caller.loop.advance(0.2)
    assert [name for name, _ in caller.outcomes] == ["quick"]
    caller.loop.advance(1.0)
    assert [name for name, _ in caller.outcomes] == ["quick", "middle"]
    caller.loop.advance(10.0)
    assert [name for name, _ in caller.outcomes] == ["quick", "middle", "slow"]


def test_an_idle_link_has_no_timer() -> None:
    caller = Caller()
    call_id = caller.call("a")
    caller.pipe.reply(call_id, encode(Word("x")))
    caller.loop.advance(1.0)
    assert caller.loop.next_timer_s() is None


def test_when_it_breaks_listeners_hear_first_and_sent_calls_fail_at_once() -> None:
    caller = Caller()
    caller.link.on_state(lambda up: caller.outcomes.append(("state", up)))
    caller.call("sent")
    caller.lose()
    assert caller.outcomes[:2] == [("state", True), ("state", False)]
    assert caller.error("sent").sent
    assert caller.link.transport_name() == "down"


def test_what_is_called_when_it_breaks_waits_for_the_next_pipe() -> None:
    caller = Caller()
    caller.call("sent")
    caller.link.on_state(lambda up: None if up else caller.call("from the listener") and None)
    caller.lose()
    caller.loop.advance(0.05)
    caller.pipe.greet(incarnation=8)
    assert caller.pipe.kinds() == [HELLO, CALL]
    assert [name for name, _ in caller.outcomes] == ["sent"]


def test_a_callback_that_raises_hurts_nobody_else(caplog: pytest.LogCaptureFixture) -> None:
    caller = Caller()

    def explode(*args: Any) -> None:
        raise RuntimeError("boom")

    call_id = caller.link.call(SAY, Word("x"), explode, explode)
    other = caller.call("other")
    caller.pipe.reply(call_id, encode(Word("x")))
    caller.pipe.reply(other, encode(Word("y")))
    assert caller.outcomes == [("other", "y")]
    assert "boom" in caplog.text


def test_a_reply_that_cannot_be_decoded_is_an_error_once() -> None:
    caller = Caller()
    caller.pipe.reply(caller.call("a"), encode(Word("x"))[:-1])
    assert "bad reply" in caller.error("a").reason


def test_closing_fails_every_call_and_dials_no_more() -> None:
    caller = Caller()
    caller.call("sent")
    caller.link.close()
    assert caller.error("sent").sent
    caller.call("late")
    caller.loop.advance(5.0)
    assert not caller.error("late").sent
    assert len(caller.dialer.pipes) == 1
    assert caller.pipe.closed


def test_closing_a_link_that_is_down_fails_what_waits_as_not_sent() -> None:
    caller = Caller(up=False)
    caller.call("waits")
    caller.link.close()
    assert not caller.error("waits").sent


def test_a_notify_while_the_link_is_down_is_lost() -> None:
    caller = Caller(up=False)
    caller.link.notify(SAY, Word("x"))
    caller.pipe.greet()
    caller.link.notify(SAY, Word("y"))
    assert caller.pipe.kinds() == [HELLO, NOTIFY]


def test_call_ids_start_over_after_the_last_one() -> None:
    caller = Caller()
    caller.link._last_id = LAST_CALL_ID - 1
    assert [caller.call("a"), caller.call("b")] == [LAST_CALL_ID, 1]
