"""What carries a link's frames: the one thing that differs between transports.

A pipe is one connection. It owns what was sent and has not left yet; whoever uses it
owns calls and replies.

Invariant: `receiver.lost` is called at most once, after which the pipe is silent; never
after `close`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from mobula.actors.link.interface import Buffer
from mobula.actors.link.wire import MAX_FRAME_BYTES

_JOIN_BELOW_BYTES = 8 * 1024
"""Copying a piece this small costs less than one more entry in a gather write."""


@dataclass(frozen=True, slots=True)
class LinkLimits:
    max_frame_bytes: int = MAX_FRAME_BYTES
    max_queued_bytes: int = 64 * 1024 * 1024
    """What calls may wait for a peer that does not read, or that is not there. Over it they
    fail at once."""
    max_unread_bytes: int = 64 * 1024 * 1024
    """What replies may wait for a caller that does not take them. Over it, it is cut off."""


class Receiver(Protocol):
    """Who gets what comes out of a pipe."""

    def received(self, frame: memoryview) -> None:
        """One frame without its length. Its memory is the receiver's own, and may be read-only."""

    def lost(self, reason: str) -> None:
        """The peer is gone, or broke the rules."""


class Pipe(Protocol):
    transport_name: str
    receiver: Receiver
    queued_bytes: int
    """Sent, and not handed to the operating system (or to Ray) yet."""

    def send(self, head: bytes, bulk: Sequence[Buffer], size: int) -> None:
        """One frame of `size` bytes: `head` and then `bulk`, which must not change from now on.

        Everything sent in one turn of the loop leaves together at its end.
        """

    def close(self) -> None:
        """What was sent before still leaves if the peer takes it; nothing is received."""


class Outgoing:
    """Frames of one turn, with small neighbours joined and large bulk passed as it is."""

    __slots__ = ("_pieces", "small")

    def __init__(self) -> None:
        self._pieces: list[Buffer] = []
        self.small: list[Buffer] = []
        """The last of what was added: always this list. A frame without bulk may be
        appended to it directly."""

    def add(self, head: bytes, bulk: Sequence[Buffer]) -> None:
        small = self.small
        small.append(head)
        for piece in bulk:
            if len(piece) < _JOIN_BELOW_BYTES:
                small.append(piece)
            else:
                self._pieces.append(b"".join(small))
                small.clear()
                self._pieces.append(piece)

    def take(self) -> list[Buffer]:
        """Everything added since the last time, in order."""
        pieces, small = self._pieces, self.small
        if pieces:
            self._pieces = []
        else:
            pieces = []
        if small:
            pieces.append(b"".join(small) if len(small) > 1 else small[0])
            small.clear()
        return pieces
