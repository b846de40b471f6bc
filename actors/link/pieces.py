"""What Ray calls carry inside themselves, and what is done with more.

An argument or an answer larger than a limit travels through the object store, which blocks
the sender for a millisecond more. A process takes the limit from its environment: a Ray of
our own is started with it raised, one that runs already may not have been.
"""

from __future__ import annotations

import os

LIMIT_VARIABLE = "RAY_max_direct_call_object_size"
RAISED_LIMIT_BYTES = 1024 * 1024
_RAYS_LIMIT_BYTES = 100 * 1024
_OWN_BYTES = 4 * 1024
"""Ray's own, in each argument."""
_MAX_PIECES = 6
"""With more than this the object store is faster."""


def piece_bytes() -> int:
    """The most that one argument holds in this process."""
    return int(os.environ.get(LIMIT_VARIABLE, _RAYS_LIMIT_BYTES)) - _OWN_BYTES


def pieces_of(content: bytes, room: int) -> list[bytes]:
    """The arguments of a call that carries it."""
    if not room < len(content) <= room * _MAX_PIECES:
        return [content]
    return [content[at : at + room] for at in range(0, len(content), room)]
