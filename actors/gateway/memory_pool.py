"""How many bytes of requests a gateway holds (`queued.max.request.bytes`).

A frame is charged when it was read, a large one while it is still coming. The limit
is soft, as Kafka's: what is read already is taken, and then no socket is read until
something was given back. So bytes that wait for memory never hold memory.

Invariant: `used_bytes` is the sum of all charges not yet released.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

UNLIMITED: Final = -1

_SMALL_FRAME_BYTES: Final = 64 * 1024
"""A frame under way is not worth accounting below this."""


class MemoryPool:
    def __init__(self, capacity_bytes: int = UNLIMITED) -> None:
        self.capacity_bytes = 1 << 62 if capacity_bytes == UNLIMITED else capacity_bytes
        self.used_bytes = 0
        self._waiting: dict[Callable[[], None], None] = {}

    @property
    def exhausted(self) -> bool:
        return self.used_bytes >= self.capacity_bytes

    def charge(self, size_bytes: int) -> None:
        self.used_bytes += size_bytes

    def release(self, size_bytes: int) -> None:
        self.used_bytes -= size_bytes
        while self._waiting and self.used_bytes < self.capacity_bytes:
            resume = next(iter(self._waiting))
            del self._waiting[resume]
            resume()

    def wait(self, resume: Callable[[], None]) -> None:
        """`resume()` runs once, when the pool is no longer exhausted."""
        self._waiting[resume] = None

    def forget(self, resume: Callable[[], None]) -> None:
        self._waiting.pop(resume, None)


class IncomingFrame:
    """What one connection holds for the frame that it is receiving.

    It is charged before it has come, once its client is seen to send it: announcing a
    length costs nobody anything. What is charged is read to its end.
    """

    __slots__ = ("_pool", "_received_bytes", "_swept_bytes", "reserved_bytes")

    def __init__(self, pool: MemoryPool) -> None:
        self._pool = pool
        self._received_bytes = 0
        self._swept_bytes = 0
        self.reserved_bytes = 0

    def received(self, nbytes: int, expecting_bytes: int) -> None:
        """So much more came of a frame of this length; 0: it is complete."""
        if not expecting_bytes:
            self.release()
            return
        self._received_bytes += nbytes
        if (
            self._received_bytes > _SMALL_FRAME_BYTES
            and not self.reserved_bytes
            and not self._pool.exhausted
        ):
            self.reserved_bytes = expecting_bytes
            self._pool.charge(expecting_bytes)

    def release(self) -> None:
        self._received_bytes = self._swept_bytes = 0
        reserved, self.reserved_bytes = self.reserved_bytes, 0
        if reserved:
            self._pool.release(reserved)

    def hogs_memory(self) -> bool:
        """Asked every few seconds while memory is short: is it charged for what does not
        come?"""
        came = self._received_bytes - self._swept_bytes
        self._swept_bytes = self._received_bytes
        return self.reserved_bytes > 0 and came < _SMALL_FRAME_BYTES
