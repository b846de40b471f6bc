"""Where an offset lies on disk."""

from __future__ import annotations

from typing import NamedTuple


class LogPosition(NamedTuple):
    """The byte where the batch that holds `offset` begins (or will begin, at log end)."""

    offset: int
    segment: int
    """Base offset of the segment, which is also its file's name."""
    position: int
