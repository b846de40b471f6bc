"""How many files a process keeps open for its logs: the least recently used are closed.

Invariant: whoever holds descriptors can give them up at any moment between two calls and
opens them again when it needs them.
"""

from __future__ import annotations

import resource
from collections import OrderedDict
from typing import Protocol


class Holder(Protocol):
    def release(self) -> None:
        """Close what is open."""


class Descriptors:
    def __init__(self, limit: int) -> None:
        """`limit` counts holders; a holder has up to three descriptors."""
        self._limit = limit
        self._holders: OrderedDict[Holder, None] = OrderedDict()

    @property
    def holders(self) -> int:
        return len(self._holders)

    def opened(self, holder: Holder) -> None:
        """`holder` has opened a file; others are asked to close theirs if need be."""
        self._holders[holder] = None
        self._holders.move_to_end(holder)
        while len(self._holders) > self._limit:
            oldest, _ = self._holders.popitem(last=False)
            oldest.release()

    def used(self, holder: Holder) -> None:
        self._holders.move_to_end(holder)

    def closed(self, holder: Holder) -> None:
        self._holders.pop(holder, None)


def default_limit() -> int:
    """An eighth of what the process may open: sockets need their share too."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return 2048
    return max(32, min(2048, soft // 8))


SHARED = Descriptors(default_limit())
"""Of this process."""
