"""What holds for a link whatever carries it: scenarios that run on any transport.

A scenario is a coroutine that gets a `World`: a caller's runtime, and a callee named
`callee` that hosts an `EchoActor`. Run in one loop with local links, in one loop through
the exchange, and between two Ray actors (tests/interop/test_links_on_ray.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from mobula.actors.broker.messages import STATUS, AskStatus
from mobula.actors.link.interface import Buffer, LinkError, Reply
from mobula.actors.link.method import Message, Method, Nothing
from mobula.actors.runtime import Runtime

CALLER = "caller"
CALLEE = "callee"
PATIENCE_S = 20.0


class Text(Message, frozen=True, array_like=True):
    text: str
    number: int = 0


class Texts(Message, frozen=True, array_like=True):
    texts: list[str] = msgspec.field(default_factory=list)


ECHO = Method(901, "echo", Text, Text)
"""The same message; the bulk comes back with its first byte changed."""
PARK = Method(902, "park", Text, Text)
RELEASE = Method(903, "release", Text, Nothing)
"""Answers the parked call of that text."""
RAISE = Method(904, "raise", Text, Text)
EVENTS = Method(905, "events", Nothing, Texts)
NOTE = Method(906, "note", Text, Nothing)
GIVE = Method(907, "give", Text, Nothing)
"""As many bytes of bulk as the number says."""
TWICE = Method(908, "twice", Text, Text)
CALL_BACK = Method(909, "call_back", Text, Text)
"""The callee echoes through its own link to the caller."""
UNKNOWN = Method(999, "unknown", Text, Text)


class EchoActor:
    """The callee."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._parked: dict[str, Reply] = {}
        self._events: list[str] = []

    async def start(self) -> None:
        serve = self._runtime.serve
        serve(ECHO, self._echo)
        serve(PARK, self._park)
        serve(RELEASE, self._release)
        serve(RAISE, self._raise)
        serve(EVENTS, lambda message, bulk, reply: reply(Texts(list(self._events))))
        serve(NOTE, lambda message, bulk, reply: self._note(message, bulk))
        serve(GIVE, lambda message, bulk, reply: reply(Nothing(), [bytes(message.number)]))
        serve(TWICE, self._twice)
        serve(CALL_BACK, self._call_back)

    async def stop(self) -> None:
        self._parked.clear()

    def state(self) -> tuple[str, Mapping[str, int]]:
        return "running", {"parked": len(self._parked)}

    def _echo(self, message: Text, bulk: memoryview, reply: Reply) -> None:
        answer: Sequence[Buffer] = ()
        if bulk:
            answer = (bytes([(bulk[0] + 1) % 256]), bulk[1:])
        reply(message, answer)

    def _park(self, message: Text, bulk: memoryview, reply: Reply) -> None:
        self._parked[message.text] = reply

        def cancelled() -> None:
            del self._parked[message.text]
            self._events.append(f"cancelled {message.text} of {reply.caller}")

        reply.on_cancel = cancelled

    def _release(self, message: Text, bulk: memoryview, reply: Reply) -> None:
        self._parked.pop(message.text)(message)
        reply(Nothing())

    def _raise(self, message: Text, bulk: memoryview, reply: Reply) -> None:
        raise RuntimeError(message.text)

    def _note(self, message: Text, bulk: memoryview) -> None:
        self._events.append(f"note {message.text} {bytes(bulk).decode()}")

    def _twice(self, message: Text, bulk: memoryview, reply: Reply) -> None:
        reply(message)
        reply(message)
        reply.fail("third")

    def _call_back(self, message: Text, bulk: memoryview, reply: Reply) -> None:
        self._runtime.link(reply.caller).call(
            ECHO,
            message,
            lambda answer, answer_bulk: reply(answer),
            lambda error: reply.fail(str(error)),
        )


class World(Protocol):
    runtime: Runtime
    """The caller's."""
    transport: str

    async def kill_callee(self) -> None:
        """Suddenly; it does not come back by itself."""

    async def start_callee(self) -> None: ...


class Waiter:
    """Callbacks of one call, and what they got."""

    def __init__(self) -> None:
        self.outcomes: list[Any] = []
        self._future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def on_reply(self, message: Any, bulk: memoryview) -> None:
        self._end((message, bytes(bulk)))

    def on_error(self, error: LinkError) -> None:
        self._end(error)

    def _end(self, outcome: Any) -> None:
        self.outcomes.append(outcome)
        if not self._future.done():
            self._future.set_result(outcome)

    async def outcome(self) -> Any:
        return await asyncio.wait_for(asyncio.shield(self._future), PATIENCE_S)

    async def reply(self) -> tuple[Any, bytes]:
        outcome = await self.outcome()
        if isinstance(outcome, LinkError):
            raise outcome
        return outcome  # type: ignore[no-any-return]

    async def error(self) -> LinkError:
        outcome = await self.outcome()
        assert isinstance(outcome, LinkError), outcome
        return outcome


def call(
    world: World,
    method: Method[Any, Any],
    message: Message,
    bulk: Sequence[Buffer] = (),
    timeout_ms: int = 20_000,
) -> tuple[Waiter, int]:
    waiter = Waiter()
    handle = world.runtime.link(CALLEE).call(
        method, message, waiter.on_reply, waiter.on_error, bulk=bulk, timeout_ms=timeout_ms
    )
    return waiter, handle


async def ask(
    world: World,
    method: Method[Any, Any],
    message: Message,
    bulk: Sequence[Buffer] = (),
    timeout_ms: int = 20_000,
) -> tuple[Any, bytes]:
    return await call(world, method, message, bulk, timeout_ms)[0].reply()


class States:
    """The states that a link went through."""

    def __init__(self, world: World) -> None:
        self.seen: list[bool] = []
        self._changed = asyncio.Event()
        world.runtime.link(CALLEE).on_state(self._listen)

    def _listen(self, up: bool) -> None:
        self.seen.append(up)
        self._changed.set()

    async def until(self, states: list[bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while self.seen[: len(states)] != states:
                self._changed.clear()
                await self._changed.wait()


async def eventually(world: World, event: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while event not in (await ask(world, EVENTS, Nothing()))[0].texts:
            await asyncio.sleep(0.005)


async def a_call_is_answered_with_its_bulk(world: World) -> None:
    message, bulk = await ask(world, ECHO, Text("hello", 7), [b"\x01one", bytearray(b"two")])
    assert (message, bulk) == (Text("hello", 7), b"\x02onetwo")
    assert world.runtime.link(CALLEE).transport_name() == world.transport


async def calls_of_one_turn_are_answered_in_order(world: World) -> None:
    order: list[int] = []
    waiters = []
    for number in range(200):
        waiter, _ = call(world, ECHO, Text("n", number), [b"x" * (number * 100)] if number else ())
        waiters.append(waiter)
    for waiter in waiters:
        message, bulk = await waiter.reply()
        order.append(message.number)
        assert len(bulk) == message.number * 100
    assert order == list(range(200))
    assert all(len(waiter.outcomes) == 1 for waiter in waiters)


async def replies_overtake_a_parked_call(world: World) -> None:
    parked, _ = call(world, PARK, Text("a"))
    assert (await ask(world, ECHO, Text("b")))[0] == Text("b")
    assert parked.outcomes == []
    await ask(world, RELEASE, Text("a"))
    assert (await parked.reply())[0] == Text("a")


async def a_cancelled_call_is_silent_and_the_callee_is_told(world: World) -> None:
    parked, handle = call(world, PARK, Text("c"))
    await ask(world, ECHO, Text("flush"))
    world.runtime.link(CALLEE).cancel(handle)
    world.runtime.link(CALLEE).cancel(handle)
    await eventually(world, f"cancelled c of {CALLER}")
    assert parked.outcomes == []


async def a_call_past_its_deadline_fails_once_and_the_callee_is_told(world: World) -> None:
    await ask(world, ECHO, Text("up"))
    parked, _ = call(world, PARK, Text("late"), timeout_ms=60)
    error = await parked.error()
    assert error.sent
    assert "deadline" in error.reason
    await eventually(world, f"cancelled late of {CALLER}")
    assert len(parked.outcomes) == 1


async def a_handler_that_raises_fails_its_call_alone(world: World) -> None:
    waiter, _ = call(world, RAISE, Text("boom"))
    error = await waiter.error()
    assert (error.reason, error.sent) == ("internal error", True)
    assert (await ask(world, ECHO, Text("still here")))[0] == Text("still here")


async def a_method_that_is_not_served_is_refused(world: World) -> None:
    waiter, _ = call(world, UNKNOWN, Text("?"))
    assert "not served" in (await waiter.error()).reason


async def a_second_answer_to_a_call_is_ignored(world: World) -> None:
    waiter, _ = call(world, TWICE, Text("x"))
    assert (await waiter.reply())[0] == Text("x")
    await ask(world, ECHO, Text("after"))
    assert len(waiter.outcomes) == 1


async def a_notify_arrives_with_its_bulk_and_gets_no_answer(world: World) -> None:
    await ask(world, ECHO, Text("up"))
    world.runtime.link(CALLEE).notify(NOTE, Text("n"), bulk=[b"bulk"])
    await eventually(world, "note n bulk")


async def large_bulk_goes_both_ways(world: World) -> None:
    payload = bytes(range(256)) * 12_000
    _, bulk = await ask(world, ECHO, Text("large"), [payload[:10], memoryview(payload)[10:]])
    assert bulk == b"\x01" + payload[1:]
    sizes = [0, 1, 90_000, 150_000, 700_000, 5_000_000]
    waiters = [call(world, GIVE, Text("g", size))[0] for size in sizes]
    assert [len((await waiter.reply())[1]) for waiter in waiters] == sizes


async def calls_in_flight_fail_at_once_when_the_callee_is_killed(world: World) -> None:
    await ask(world, ECHO, Text("up"))
    states = States(world)
    parked = [call(world, PARK, Text(f"p{number}"))[0] for number in range(3)]
    await ask(world, ECHO, Text("flush"))
    await world.kill_callee()
    errors = [await waiter.error() for waiter in parked]
    assert all(error.sent for error in errors)
    assert states.seen[:2] == [True, False]
    assert world.runtime.link(CALLEE).transport_name() == "down"
    await world.start_callee()


async def a_call_made_while_the_link_is_down_waits_for_it(world: World) -> None:
    states = States(world)
    await states.until([True])
    await world.kill_callee()
    await states.until([True, False])
    first, _ = call(world, ECHO, Text("waits", 1), [b"\x05bulk"])
    second, _ = call(world, ECHO, Text("waits", 2))
    gone, handle = call(world, ECHO, Text("cancelled", 3))
    world.runtime.link(CALLEE).cancel(handle)
    await world.start_callee()
    assert await first.reply() == (Text("waits", 1), b"\x06bulk")
    assert await second.reply() == (Text("waits", 2), b"")
    assert gone.outcomes == []
    assert states.seen == [True, False, True]


async def a_call_that_waits_for_a_link_too_long_was_not_sent(world: World) -> None:
    states = States(world)
    await states.until([True])
    await world.kill_callee()
    await states.until([True, False])
    waiter, _ = call(world, ECHO, Text("never"), timeout_ms=60)
    assert not (await waiter.error()).sent
    await world.start_callee()
    await states.until([True, False, True])
    assert len(waiter.outcomes) == 1


async def two_actors_call_each_other(world: World) -> None:
    world.runtime.serve(ECHO, lambda message, bulk, reply: reply(Text(message.text + "!", 1)))
    waiters = [call(world, CALL_BACK, Text(f"t{number}"))[0] for number in range(50)]
    texts = [(await waiter.reply())[0].text for waiter in waiters]
    assert texts == [f"t{number}!" for number in range(50)]


async def an_actor_tells_its_status(world: World) -> None:
    _, handle = call(world, PARK, Text("s"))
    status, _ = await ask(world, STATUS, AskStatus())
    assert (status.name, status.state, status.counters) == (CALLEE, "running", {"parked": 1})
    world.runtime.link(CALLEE).cancel(handle)


SCENARIOS: list[Callable[[World], Awaitable[None]]] = [
    a_call_is_answered_with_its_bulk,
    calls_of_one_turn_are_answered_in_order,
    replies_overtake_a_parked_call,
    a_cancelled_call_is_silent_and_the_callee_is_told,
    a_call_past_its_deadline_fails_once_and_the_callee_is_told,
    a_handler_that_raises_fails_its_call_alone,
    a_method_that_is_not_served_is_refused,
    a_second_answer_to_a_call_is_ignored,
    a_notify_arrives_with_its_bulk_and_gets_no_answer,
    large_bulk_goes_both_ways,
    two_actors_call_each_other,
    an_actor_tells_its_status,
    calls_in_flight_fail_at_once_when_the_callee_is_killed,
    a_call_made_while_the_link_is_down_waits_for_it,
    a_call_that_waits_for_a_link_too_long_was_not_sent,
]
