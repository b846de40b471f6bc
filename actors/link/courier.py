"""What carries the post of an exchange to others: Ray, or a test."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeAlias


class Bag(NamedTuple):
    """What one call carries, and where it belongs in the sender's order."""

    from_name: str
    life: int
    outbox: int
    sequence: int
    content: bytes


Done: TypeAlias = Callable[[int, str], None]
"""The life of the peer that took the bag, or 0 and the reason why it was not taken."""

Source: TypeAlias = tuple[int, int]
"""A life and one of its outboxes."""


class Courier(Protocol):
    def deliver(self, to_name: str, bag: Bag, done: Done) -> None:
        """Call `Exchange.deliver` of the peer; `done` is called once, on any thread."""
