"""Why a connection's socket is not read: bits of one number, each set and cleared for itself.

Invariant: a socket is read exactly when no bit is set.
"""

from __future__ import annotations

from typing import Final

QUEUE_FULL: Final = 1
"""The request queue has no place."""
IN_FLIGHT: Final = 2
"""As many requests are under way as a connection may have."""
THROTTLED: Final = 4
"""A quota was exceeded."""
WRITE_BLOCKED: Final = 8
"""The client does not read its replies."""
UNSENT: Final = 16
"""Finished replies are large enough already: they wait for an earlier one, or for the end
of this turn of the loop."""
NOT_SERVING: Final = 32
"""The broker may not serve (any more)."""
CLOSING: Final = 64
"""The connection is closed once the earlier replies have left."""
MEMORY: Final = 128
"""The memory pool is exhausted."""
DRAINING: Final = 256
"""The gateway is stopping."""

WHAT_WAS_READ_WAITS: Final = (
    QUEUE_FULL | IN_FLIGHT | THROTTLED | WRITE_BLOCKED | UNSENT | NOT_SERVING | CLOSING
)
"""With the others, frames that were read already are still dispatched."""
