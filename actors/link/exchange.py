"""Links carried by calls between two processes: post in bags, a few under way.

The exchange of an actor keeps one *outbox* per peer. It lives until a bag could not be
delivered, or the peer has come back in a new *life* (a new process); all pipes to that
peer end with it. So a bag says which life sent it and from which outbox of that life, and
who takes a bag answers with its own life.

Nothing here knows Ray: a `Courier` carries bags. `deliver` may be called on any thread,
everything else runs on the loop.
"""

from __future__ import annotations

import asyncio
import struct
import threading
from collections.abc import Callable

from mobula.actors.link.courier import NOT_TAKEN, Answered, Bag, Content, Courier, Source
from mobula.actors.link.peer import OPEN, ExchangePipe, Peer
from mobula.actors.link.pipe import Receiver
from mobula.actors.link.session import ServingSession

MAX_UNOPENED_BYTES = 64 * 1024 * 1024
"""What may wait for this actor's loop before senders have to wait."""
ROOM_TIMEOUT_S = 20.0
"""How long: then the loop stands still, and they start over."""
MAX_HELD = 24
"""Calls of others that wait for an answer; each takes a thread of the process."""
KEEPALIVE_S = 1.0
"""How often an idle pair of actors finds out whether the other is still there."""


class Exchange:
    """All the post of one actor."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        name: str,
        life: int,
        courier: Courier,
        new_id: Callable[[], int],
        accept: Callable[[], ServingSession],
    ) -> None:
        """`life` differs in each process; `new_id` gives numbers of 64 bits that nobody
        else gives; `accept` a session for a caller's new pipe."""
        self.loop = loop
        self.name = name
        self.life = life
        self.courier = courier
        self.new_id = new_id
        self.accept = accept
        self._peers: dict[str, Peer] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False
        self._known: dict[str, Source] = {}
        """Whose bags are taken: shared between threads, each access is atomic."""
        self._unopened_bytes = 0
        self._room = threading.Condition()
        """Guards the bytes; several threads deliver."""

    def deliver(self, bag: Bag, answered: Answered) -> None:
        """Take a bag, on a thread that is not the loop's.

        `answered` is called once, on any thread: with this life and perhaps a bag, or
        NOT_TAKEN, because the bag goes on with something that this life knows nothing of and
        the sender must start over. Waits while too much is unopened.
        """
        source = (bag.life, bag.outbox)
        if bag.sequence == 0:
            self._known[bag.from_name] = source
        elif self._known.get(bag.from_name) != source:
            answered(NOT_TAKEN)
            return
        size = len(bag.content)
        with self._room:
            if not self._room.wait_for(lambda: self._has_room(size), ROOM_TIMEOUT_S):
                answered(NOT_TAKEN)
                return
            self._unopened_bytes += size
        if not self.from_thread(
            self._arrived, bag.from_name, source, bag.sequence, bag.content, answered
        ):
            answered(NOT_TAKEN)

    def _has_room(self, size: int) -> bool:
        """A bag larger than the limit is let in alone: it cannot wait for itself."""
        unopened = self._unopened_bytes
        return self._closed or unopened == 0 or unopened + size <= MAX_UNOPENED_BYTES

    def may_hold(self) -> bool:
        """One call more."""
        return sum(peer.holds for peer in self._peers.values()) < MAX_HELD

    def from_thread(self, callback: Callable[..., None], *args: object) -> bool:
        if self._closed:
            return False
        try:
            self.loop.call_soon_threadsafe(callback, *args)
        except RuntimeError:
            # The loop was closed in between: this life of the actor is over.
            return False
        return True

    def _arrived(
        self,
        from_name: str,
        source: Source,
        sequence: int,
        content: Content,
        answered: Answered,
    ) -> None:
        with self._room:
            self._unopened_bytes -= len(content)
            self._room.notify_all()
        if self._closed:
            answered(NOT_TAKEN)
            return
        peer = self._peer(from_name)
        try:
            peer.arrived(source, sequence, content)
        except struct.error:
            self._known.pop(from_name, None)
            peer.broken("a bag that cannot be read")
        peer.hold(source, sequence, answered)

    def dial(self, target: str, receiver: Receiver) -> ExchangePipe:
        peer = self._peer(target)
        pipe = ExchangePipe(peer, self.new_id(), OPEN)
        pipe.receiver = receiver
        peer.pipes[pipe.pipe_id] = pipe
        return pipe

    def _peer(self, name: str) -> Peer:
        peer = self._peers.get(name)
        if peer is None:
            peer = self._peers[name] = Peer(self, name)
            if self._timer is None:
                self._timer = self.loop.call_later(KEEPALIVE_S, self._keep_alive)
        return peer

    def _keep_alive(self) -> None:
        for peer in self._peers.values():
            peer.keep_alive()
        self._timer = self.loop.call_later(KEEPALIVE_S, self._keep_alive)

    def close(self) -> None:
        """Nothing is sent or taken any more."""
        with self._room:
            self._closed = True
            self._room.notify_all()
        if self._timer is not None:
            self._timer.cancel()
        for peer in list(self._peers.values()):
            peer.last_post()
            peer.broken("the exchange is closed")
