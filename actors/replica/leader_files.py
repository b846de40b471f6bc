"""Open segment files of leaders on the same node, from which a follower copies ranges.

Invariant: a descriptor is used for one epoch of its leader only; within an epoch a leader
only appends to its segments, so what a range names stays where it is.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from pathlib import Path

from mobula.actors.replica.pull_session import Key

_LIMIT = 64


class LeaderFiles:
    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._open: OrderedDict[tuple[Key, int], int] = OrderedDict()

    @staticmethod
    def reachable(data_dir: str) -> bool:
        """Whether the leader's folder can be read from here."""
        return bool(data_dir) and os.access(data_dir, os.R_OK | os.X_OK)

    def descriptor(self, key: Key, topic: str, segment_base: int) -> int:
        """OSError when the segment is gone or cannot be read."""
        place = (key, segment_base)
        fd = self._open.get(place)
        if fd is None:
            path = self._data_dir / f"{topic}-{key[1]}" / f"{segment_base:020}.log"
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            self._open[place] = fd
            if len(self._open) > _LIMIT:
                _, oldest = self._open.popitem(last=False)
                os.close(oldest)
        else:
            self._open.move_to_end(place)
        return fd

    def forget(self, key: Key) -> None:
        """The partition's leader or epoch changed, or what it gave was not good."""
        for place in [place for place in self._open if place[0] == key]:
            os.close(self._open.pop(place))

    def close(self) -> None:
        while self._open:
            os.close(self._open.popitem()[1])
