"""All the pipes between this actor and one other, and the bags that carry them.

What pipes send in a turn goes into one bag (one bytes object), and what is sent while
bags are under way goes with the next. A bag goes in a call, or in the answer to a call of
the peer, which is held back for that: a call and its answer cost half of two calls. Bags
are numbered, so they are opened in order. A bag holds chunks, one per pipe:

    u64 pipe | u8 kind (open, data, close) | u32 length | frames

Invariant: a pipe sees the peer's frames in order and without a gap, or is lost.
"""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from mobula.actors.link.courier import Answer, Answered, Bag, Content, Courier, Source
from mobula.actors.link.interface import Buffer
from mobula.actors.link.pipe import Receiver
from mobula.actors.link.session import ServingSession

OPEN = 0
DATA = 1
CLOSE = 2

MAX_BAGS_UNDER_WAY = 3
"""One of them may be held by the peer."""
MAX_BAG_BYTES = 4 * 1024 * 1024
"""A bag is closed when it has this much; a larger frame travels alone."""

_NO_PIPE = 0
_NOTICES = 5
_CHUNK = struct.Struct(">QBI")
_LENGTH = struct.Struct(">I")


class Office(Protocol):
    """What the exchange does for all its peers."""

    loop: asyncio.AbstractEventLoop
    name: str
    life: int
    courier: Courier
    accept: Callable[[], ServingSession]

    def from_thread(self, callback: Callable[..., None], *args: object) -> bool: ...
    def may_hold(self) -> bool: ...


class ExchangePipe:
    """One link's connection through the exchange."""

    transport_name = "ray"

    def __init__(self, peer: Peer, pipe_id: int, first_kind: int) -> None:
        self.receiver: Receiver
        self.queued_bytes = 0
        self.pipe_id = pipe_id
        self.bound_to: Source | None = None
        """Where this pipe hears from; None until it has."""
        self._peer = peer
        self._next_kind = first_kind
        self._frames: deque[tuple[bytes, Sequence[Buffer], int]] = deque()

    def send(self, head: bytes, bulk: Sequence[Buffer], size: int) -> None:
        self.queued_bytes += size
        self._frames.append((head, bulk, size))
        self._peer.has_post(self)

    def close(self) -> None:
        self._peer.close_pipe(self)

    def pack(self, bag: list[Buffer], room: int) -> int:
        """Move whole frames into the bag: at least one, then while there is room."""
        at = len(bag)
        bag.append(b"")
        frames = self._frames
        packed = 0
        while frames and (packed == 0 or packed + frames[0][2] <= room):
            head, bulk, size = frames.popleft()
            bag.append(head)
            bag.extend(bulk)
            packed += size
        self.queued_bytes -= packed
        bag[at] = _CHUNK.pack(self.pipe_id, self._next_kind, packed)
        self._next_kind = DATA
        return packed


class _Outbox:
    """The way to a peer, until it fails."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.sequence = 0
        self.under_way = 0
        self.peer_life = 0
        """Of the peer that takes the bags; 0 until the first is taken."""
        self.used = False
        """Since the last keepalive."""
        self.answered = False
        """A bag went in an answer: nobody says whether it was taken."""


class _Inbox:
    """One outbox of the peer, as seen from here."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.next_sequence = 0
        self.early: dict[int, Content] = {}


class Peer:
    """All pipes with one other actor."""

    def __init__(self, office: Office, name: str) -> None:
        self.name = name
        self.pipes: dict[int, ExchangePipe] = {}
        self._office = office
        self._outbox = _Outbox(1)
        self._inbox: _Inbox | None = None
        self._ready: dict[int, ExchangePipe] = {}
        self._closing: list[int] = []
        self._scheduled = False
        self._held: Answered | None = None
        """A call of the peer that waits for post of ours."""
        self._held_life = 0
        """Of the peer that made it: a former one takes nothing any more."""
        self._held_long = False
        self._notices = 0
        """How often the peer may yet be told of a new outbox, once a keepalive."""

    @property
    def holds(self) -> bool:
        return self._held is not None

    def has_post(self, pipe: ExchangePipe) -> None:
        if pipe.pipe_id in self.pipes:
            self._ready[pipe.pipe_id] = pipe
            self._schedule()

    def close_pipe(self, pipe: ExchangePipe) -> None:
        if pipe.pipe_id in self.pipes:
            self._flush()
            self._forget(pipe)
            self._say_close(pipe.pipe_id)

    def _forget(self, pipe: ExchangePipe) -> None:
        self.pipes.pop(pipe.pipe_id, None)
        self._ready.pop(pipe.pipe_id, None)

    def _say_close(self, pipe_id: int) -> None:
        self._closing.append(pipe_id)
        self._schedule()

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._office.loop.call_soon(self._flush_turn)

    def _flush_turn(self) -> None:
        self._scheduled = False
        self._flush()

    def _flush(self) -> None:
        """Send bags while some may be under way. Until the first one was taken there is
        only that one, in a call: the peer learns from it which outbox of ours it deals with."""
        outbox = self._outbox
        while self._ready or self._closing:
            if self._held is not None and self._held_life == outbox.peer_life:
                sequence = outbox.sequence
                outbox.sequence += 1
                outbox.used = outbox.answered = True
                self._release(Answer(self._office.life, outbox.number, sequence, self._pack()))
            elif outbox.under_way < (MAX_BAGS_UNDER_WAY if outbox.peer_life else 1):
                self._send(self._pack())
            else:
                return

    def _pack(self) -> bytes:
        bag: list[Buffer] = []
        room = MAX_BAG_BYTES
        ready, self._ready = self._ready, {}
        for pipe_id, pipe in ready.items():
            if room <= 0:
                self._ready[pipe_id] = pipe
                continue
            room -= pipe.pack(bag, room)
            if pipe.queued_bytes:
                self._ready[pipe_id] = pipe
        bag.extend(_CHUNK.pack(pipe_id, CLOSE, 0) for pipe_id in self._closing)
        self._closing.clear()
        return b"".join(bag)

    def _send(self, content: bytes) -> None:
        outbox = self._outbox
        sequence = outbox.sequence
        outbox.sequence += 1
        outbox.under_way += 1
        outbox.used = True
        office = self._office

        def done(answer: Answer, reason: str) -> None:
            office.from_thread(self._delivered, outbox, answer, reason)

        bag = Bag(office.name, office.life, outbox.number, sequence, content)
        office.courier.deliver(self.name, bag, done)

    def _delivered(self, outbox: _Outbox, answer: Answer, reason: str) -> None:
        life = answer.life
        follows = True
        if answer.outbox:
            source = (life, answer.outbox)
            try:
                follows = self.arrived(source, answer.sequence, answer.content)
            except struct.error:
                self.broken("a bag that cannot be read")
        if outbox is not self._outbox:
            return
        if not follows:
            self.broken("the peer goes on with something unknown here")
            return
        if outbox.peer_life not in {0, life} or life == 0:
            self.broken(reason or "the peer has a new life")
            return
        outbox.peer_life = life
        outbox.under_way -= 1
        self._notices = 0
        self._flush()

    def hold(self, source: Source, sequence: int, answered: Answered) -> None:
        """A bag has arrived: answer it with post of ours, when there is some. The first bag is
        answered at once, for its sender waits with the rest; and one is held at a time."""
        at_once = Answer(self._office.life)
        self._release(at_once)
        inbox = self._inbox
        known = inbox is not None and inbox.source == source
        if known and sequence and self._office.may_hold():
            self._held, self._held_life, self._held_long = answered, source[0], False
        else:
            answered(at_once)

    def _release(self, answer: Answer) -> None:
        held, self._held = self._held, None
        if held is not None:
            held(answer)

    def broken(self, reason: str) -> None:
        """Start over with a new outbox; every pipe is lost, here and at the peer."""
        self._release(Answer(self._office.life))
        former, self._outbox = self._outbox, _Outbox(self._outbox.number + 1)
        self._ready.clear()
        self._closing.clear()
        pipes = list(self.pipes.values())
        self._lose(pipes, reason)
        # The peer may be well and only the way to it was not.
        for pipe in pipes:
            if pipe.bound_to is not None:
                self._say_close(pipe.pipe_id)
        # And it must hear of the new outbox: what it said in an answer may be lost.
        if former.peer_life:
            self._notices = _NOTICES
            self._say_close(_NO_PIPE)

    def _lose(self, pipes: list[ExchangePipe], reason: str) -> None:
        for pipe in pipes:
            if pipe.pipe_id in self.pipes:
                self._forget(pipe)
                pipe.receiver.lost(reason)

    def arrived(self, source: Source, sequence: int, content: Content) -> bool:
        """False: it goes on with something that never came here, or is over."""
        inbox = self._inbox
        if inbox is None or inbox.source != source:
            if sequence != 0:
                return False
            inbox = self._inbox = _Inbox(source)
            self._meet(source)
        inbox.early[sequence] = content
        while inbox is self._inbox and inbox.next_sequence in inbox.early:
            content = inbox.early.pop(inbox.next_sequence)
            inbox.next_sequence += 1
            self._open_bag(inbox, content)
        return True

    def _meet(self, source: Source) -> None:
        """The peer has a new outbox, so what its former one said is over; and a bag that went
        in an answer to the former may be lost."""
        if self._outbox.peer_life not in {0, source[0]}:
            self.broken("the peer has a new life")
            return
        if self._outbox.answered:
            self.broken("the peer has started over")
            return
        former = [pipe for pipe in self.pipes.values() if pipe.bound_to not in {None, source}]
        self._lose(former, "the peer has started over")

    def _open_bag(self, inbox: _Inbox, content: Content) -> None:
        view = memoryview(content)
        at = 0
        while at < len(view):
            pipe_id, kind, length = _CHUNK.unpack_from(view, at)
            at += _CHUNK.size
            self._chunk(inbox, pipe_id, kind, view[at : at + length])
            at += length

    def _chunk(self, inbox: _Inbox, pipe_id: int, kind: int, frames: memoryview) -> None:
        pipe = self.pipes.get(pipe_id)
        if kind == CLOSE:
            if pipe is not None:
                self._lose([pipe], "closed by the peer")
            return
        if pipe is None:
            if kind != OPEN:
                self._say_close(pipe_id)
                return
            pipe = self._accept(pipe_id)
        pipe.bound_to = inbox.source
        at = 0
        while at < len(frames):
            (length,) = _LENGTH.unpack_from(frames, at)
            at += _LENGTH.size
            if self.pipes.get(pipe_id) is not pipe:
                return
            pipe.receiver.received(frames[at : at + length])
            at += length

    def _accept(self, pipe_id: int) -> ExchangePipe:
        pipe = ExchangePipe(self, pipe_id, DATA)
        session = self._office.accept()
        pipe.receiver = session
        session.pipe = pipe
        self.pipes[pipe_id] = pipe
        return pipe

    def last_post(self) -> None:
        """Send what waits, if a bag may go now: whoever stops tells its peers."""
        self._flush()

    def keep_alive(self) -> None:
        """Say each pipe's name once: the peer closes those that it does not know. And let go
        of a call that is held since the last time: its sender does the same."""
        outbox = self._outbox
        if self._held_long:
            self._release(Answer(self._office.life))
        self._held_long = self._held is not None
        if self._notices and outbox.under_way == 0:
            self._notices -= 1
            self._say_close(_NO_PIPE)
        if self.pipes and not outbox.used and outbox.under_way == 0:
            self._ready.update(self.pipes)
            self._flush()
        outbox.used = False
