"""What carries the post of an exchange to others: Ray, or a test."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeAlias

Content: TypeAlias = bytes | memoryview


class Bag(NamedTuple):
    """What one call carries, and where it belongs in the sender's order."""

    from_name: str
    life: int
    outbox: int
    sequence: int
    content: Content


class Answer(NamedTuple):
    """What comes back for a bag: who took it, and perhaps a bag the other way."""

    life: int
    """Of the peer that took it; 0 when it was not taken."""
    outbox: int = 0
    """Of the peer; 0: nothing comes with the answer."""
    sequence: int = 0
    content: Content = b""


NOT_TAKEN = Answer(0)

Answered: TypeAlias = Callable[[Answer], None]

Done: TypeAlias = Callable[[Answer, str], None]
"""The answer; where the bag was not taken, the reason too."""

Source: TypeAlias = tuple[int, int]
"""A life and one of its outboxes."""


class Courier(Protocol):
    def deliver(self, to_name: str, bag: Bag, done: Done) -> None:
        """Call `Exchange.deliver` of the peer; `done` is called once, on any thread."""
