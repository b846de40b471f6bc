"""Links between simulated actors: in order, with seeded delays, broken now and then.

Messages are encoded and decoded as on a real link. A link that breaks loses what is under
way in both directions, and its open calls fail.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from mobula.actors.link.interface import Buffer, Handler, LinkError
from mobula.actors.link.method import Message, Method, encode
from tests.sim.virtual import VirtualLoop, VirtualTimer


class Network:
    def __init__(self, loop: VirtualLoop, random: Random, max_delay_ms: int) -> None:
        self.loop = loop
        self.random = random
        self.max_delay_ms = max_delay_ms
        self._hosts: dict[str, Host] = {}
        self._links: dict[tuple[str, str], SimLink] = {}
        self._cut: set[frozenset[str]] = set()

    def attach(self, host: Host) -> None:
        """A life of an actor begins."""
        self._hosts[host.name] = host
        for link in self._links.values():
            if host.name in (link.caller, link.target):
                link.reconsider()

    def detach(self, host: Host) -> None:
        """The actor is dead: nothing of it is heard any more, and it hears nothing."""
        host.alive = False
        if self._hosts.get(host.name) is host:
            del self._hosts[host.name]
        for key in [key for key in self._links if key[0] == host.name]:
            self._links.pop(key).end()
        for link in list(self._links.values()):
            if link.target == host.name:
                link.reconsider()

    def link(self, caller: str, target: str) -> SimLink:
        key = (caller, target)
        if key not in self._links:
            self._links[key] = SimLink(self, caller, target)
        return self._links[key]

    def host(self, name: str) -> Host | None:
        return self._hosts.get(name)

    def connected(self, one: str, other: str) -> bool:
        return frozenset((one, other)) not in self._cut and other in self._hosts

    def is_cut(self, one: str, other: str) -> bool:
        return frozenset((one, other)) in self._cut

    def cut(self, one: str, other: str) -> None:
        self._cut.add(frozenset((one, other)))
        self._reconsider(one, other)

    def heal(self, one: str, other: str) -> None:
        self._cut.discard(frozenset((one, other)))
        self._reconsider(one, other)

    def heal_all(self) -> None:
        for pair in list(self._cut):
            self.heal(*pair)

    def delay_s(self) -> float:
        return self.random.random() ** 2 * self.max_delay_ms / 1_000

    def _reconsider(self, one: str, other: str) -> None:
        for key in ((one, other), (other, one)):
            if key in self._links:
                self._links[key].reconsider()


class Host:
    """One life of an actor, as its peers see it."""

    def __init__(self, network: Network, name: str) -> None:
        self.name = name
        self.alive = True
        self._network = network
        self._handlers: dict[int, Handler] = {}
        network.attach(self)

    def serve(self, method: Method[Any, Any], handler: Handler) -> None:
        self._handlers[method.id] = handler

    def handler(self, method: Method[Any, Any]) -> Handler | None:
        return self._handlers.get(method.id)

    def link(self, target: str) -> SimLink:
        return self._network.link(self.name, target)

    # A scheduler that ends with the life.

    def call_soon(self, callback: Callable[[], object], /) -> None:
        self._network.loop.call_soon(lambda: callback() if self.alive else None)

    def call_later(self, delay: float, callback: Callable[[], object], /) -> VirtualTimer:
        return self._network.loop.call_later(delay, lambda: callback() if self.alive else None)


class _Call:
    def __init__(
        self,
        method: Method[Any, Any],
        on_reply: Callable[[Any, memoryview], None],
        on_error: Callable[[LinkError], None],
    ) -> None:
        self.method = method
        self.on_reply = on_reply
        self.on_error = on_error
        self.reply: SimReply | None = None


class SimLink:
    def __init__(self, network: Network, caller: str, target: str) -> None:
        self.caller = caller
        self.target = target
        self._network = network
        self._calls: dict[int, _Call] = {}
        self._waiting: list[Callable[[], None]] = []
        self._last = 0
        self._life = 0
        self._there_s = self._back_s = 0.0
        self._listeners: list[Callable[[bool], None]] = []
        self._peer: Host | None = None
        self.reconsider()

    def call(
        self,
        method: Method[Any, Any],
        message: Any,
        on_reply: Callable[[Any, memoryview], None],
        on_error: Callable[[LinkError], None],
        *,
        bulk: Sequence[Buffer] = (),
        timeout_ms: int = 30_000,
    ) -> int:
        self._last += 1
        handle = self._last
        call = self._calls[handle] = _Call(method, on_reply, on_error)
        frame, data = encode(message), b"".join(bulk)

        def send() -> None:
            self._there(lambda: self._deliver(handle, call, frame, data))

        if self._peer is None:
            self._waiting.append(send)
        else:
            send()
        self._network.loop.call_later(
            timeout_ms / 1_000, lambda: self._fail(handle, "no answer before the deadline")
        )
        return handle

    def notify(
        self, method: Method[Any, Any], message: Any, *, bulk: Sequence[Buffer] = ()
    ) -> None:
        if self._peer is not None:
            call = _Call(method, lambda *_: None, lambda _: None)
            frame, data = encode(message), b"".join(bulk)
            self._there(lambda: self._deliver(0, call, frame, data))

    def cancel(self, handle: int) -> None:
        call = self._calls.pop(handle, None)
        if call is not None:

            def tell() -> None:
                if call.reply is not None:
                    call.reply.cancelled()

            self._there(tell)

    def on_state(self, listener: Callable[[bool], None]) -> None:
        self._listeners.append(listener)
        if self._peer is not None:
            listener(True)

    def transport_name(self) -> str:
        return "down" if self._peer is None else "local"

    def close(self) -> None:
        self.end()

    # What the network does.

    def reconsider(self) -> None:
        """The peer came, went or began anew, or the way to it did."""
        network = self._network
        peer = network.host(self.target) if network.connected(self.caller, self.target) else None
        if peer is self._peer:
            return
        if self._peer is not None:
            self._break("the link broke")
        self._peer = peer
        if peer is not None:
            waiting, self._waiting = self._waiting, []
            for send in waiting:
                send()
            self._tell(True)

    def end(self) -> None:
        """The caller is dead."""
        self._listeners.clear()
        self._break("")

    def _break(self, reason: str) -> None:
        self._life += 1
        self._peer = None
        calls, self._calls = self._calls, {}
        for call in calls.values():
            if call.reply is not None:
                call.reply.cancelled()
        if reason:
            self._tell(False)
            for call in calls.values():
                call.on_error(LinkError(self.target, reason, sent=True))

    def _tell(self, up: bool) -> None:
        for listener in list(self._listeners):
            listener(up)

    def _fail(self, handle: int, reason: str) -> None:
        call = self._calls.pop(handle, None)
        if call is not None:
            if call.reply is not None:
                call.reply.cancelled()
            call.on_error(LinkError(self.target, reason, sent=True))

    def _there(self, deliver: Callable[[], None]) -> None:
        self._there_s = self._after(self._there_s, deliver)

    def _back(self, deliver: Callable[[], None]) -> None:
        self._back_s = self._after(self._back_s, deliver)

    def _after(self, last_s: float, deliver: Callable[[], None]) -> float:
        """Not before what was sent earlier; never when the link broke meanwhile."""
        life, loop = self._life, self._network.loop
        now_s = loop.now_us / 1_000_000
        at_s = max(last_s, now_s + self._network.delay_s())
        loop.call_later(at_s - now_s, lambda: deliver() if self._life == life else None)
        return at_s

    def _deliver(self, handle: int, call: _Call, frame: bytes, data: bytes) -> None:
        if handle and handle not in self._calls:
            return
        assert self._peer is not None
        call.reply = reply = SimReply(self, handle, call)
        handler = self._peer.handler(call.method)
        if handler is None:
            reply.fail("not served")
            return
        handler(call.method.decode_request.decode(frame), memoryview(bytearray(data)), reply)

    def _answer(self, handle: int, call: _Call, message: Message, bulk: Sequence[Buffer]) -> None:
        frame, data = encode(message), b"".join(bulk)

        def deliver() -> None:
            if self._calls.pop(handle, None) is not None:
                decoded = call.method.decode_reply.decode(frame)
                call.on_reply(decoded, memoryview(bytearray(data)))

        self._back(deliver)


class SimReply:
    def __init__(self, link: SimLink, handle: int, call: _Call) -> None:
        self.caller = link.caller
        self.on_cancel: Callable[[], None] | None = None
        self._link = link
        self._handle = handle
        self._call = call
        self._done = False

    def __call__(self, message: Message, bulk: Sequence[Buffer] = ()) -> None:
        if not self._done:
            self._done = True
            self._link._answer(self._handle, self._call, message, bulk)

    def fail(self, reason: str) -> None:
        if not self._done:
            self._done = True
            self._link._back(lambda: self._link._fail(self._handle, reason))

    def cancelled(self) -> None:
        if not self._done:
            self._done = True
            if self.on_cancel is not None:
                self.on_cancel()
