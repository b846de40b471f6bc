"""The `.snapshot` files of a log: its producers as they were at an offset."""

from __future__ import annotations

import logging
from pathlib import Path

from mobula.storage.files import read_small, write_atomically
from mobula.storage.producer_state import ProducerEntry, decode_snapshot, encode_snapshot
from mobula.storage.segment import segment_name

SNAPSHOT_SUFFIX = ".snapshot"
_KEPT = 3
"""For the last two segments and the active one."""

_log = logging.getLogger(__name__)


class ProducerSnapshots:
    def __init__(self, directory: Path, offsets: list[int]) -> None:
        self._directory = directory
        self._offsets = sorted(offsets)

    def take(self, offset: int, entries: dict[int, ProducerEntry]) -> None:
        """Keep what the log knew of producers when it ended at `offset`."""
        if offset in self._offsets:
            return
        write_atomically(self._path(offset), encode_snapshot(entries), sync=False)
        self._offsets.append(offset)
        self._offsets.sort()
        while len(self._offsets) > _KEPT:
            self._drop(self._offsets[0])

    def newest(self, upto_offset: int) -> tuple[int, dict[int, ProducerEntry]] | None:
        """The last readable one at or before `upto_offset`. Damaged ones are removed."""
        for offset in reversed(self._offsets[:]):
            if offset > upto_offset:
                continue
            try:
                return offset, decode_snapshot(read_small(str(self._path(offset))))
            except (ValueError, FileNotFoundError) as error:
                _log.warning("producer snapshot dropped path=%s: %s", self._path(offset), error)
                self._drop(offset)
        return None

    def drop_after(self, offset: int) -> None:
        for taken in [taken for taken in self._offsets if taken > offset]:
            self._drop(taken)

    def drop_before(self, offset: int) -> None:
        for taken in [taken for taken in self._offsets if taken < offset]:
            self._drop(taken)

    def clear(self) -> None:
        for taken in self._offsets[:]:
            self._drop(taken)

    def _drop(self, offset: int) -> None:
        self._offsets.remove(offset)
        self._path(offset).unlink(missing_ok=True)

    def _path(self, offset: int) -> Path:
        return self._directory / (segment_name(offset) + SNAPSHOT_SUFFIX)
