"""Length-prefixed frames, cut out of a byte stream as it comes.

The core of an `asyncio.BufferedProtocol`. Small frames are copied out of a scratch
buffer that all connections of a process share, so that an idle connection owns no
buffer; a frame that does not end within one read is received straight into its own.

Invariant: between `buffer_updated` and the next `get_buffer` nothing of this
connection is left in the scratch buffer. (An event loop calls the two back to back.)
"""

from __future__ import annotations

import struct

from mobula.protocol.errors import DecodeError

FIRST_ALLOCATION_BYTES = 64 * 1024
GROWTH = 4
"""A frame's buffer is at most this many times what has come of it (or the first
allocation), so that a length that was only announced takes no memory."""

_unpack_length = struct.Struct(">i").unpack_from


class FrameError(DecodeError):
    """A length that cannot be. `frames` came whole before it, in the same read."""

    def __init__(self, message: str, frames: list[memoryview]) -> None:
        super().__init__(message)
        self.frames = frames


class FrameReader:
    """Cuts one connection's stream into frames.

    After a FrameError the stream's position is lost, and the reader of no more use.
    """

    __slots__ = (
        "_filled",
        "_frame",
        "_head",
        "_max_frame_bytes",
        "_scratch",
        "_scratch_bytes",
        "expecting",
    )

    def __init__(self, max_frame_bytes: int, scratch: memoryview) -> None:
        """`scratch` views a whole bytearray; only this event loop may use it."""
        source = scratch.obj
        if not isinstance(source, bytearray) or len(source) != scratch.nbytes:
            raise ValueError("the scratch buffer must be a view of a whole bytearray")
        if len(source) < 1024:
            raise ValueError(f"a scratch buffer of {len(source)} bytes is too small")
        self._max_frame_bytes = max_frame_bytes
        self._scratch = scratch
        self._scratch_bytes = source
        self._head = b""
        self._frame: bytearray | None = None
        self._filled = 0
        self.expecting = 0
        """Length of the frame under way, 0 when there is none or it is not known yet."""

    def get_buffer(self, sizehint: int = -1) -> memoryview:
        """Where the next bytes of the stream belong. Never empty."""
        if self._frame is not None:
            return memoryview(self._frame)[self._filled :]
        if self._head:
            return self._scratch[len(self._head) :]
        return self._scratch

    def buffer_updated(self, nbytes: int) -> list[memoryview]:
        """The frames that these bytes complete, each writable and the receiver's own."""
        if self._frame is not None:
            return self._continue(self._frame, nbytes)
        scratch = self._scratch_bytes
        if self._head:
            scratch[: len(self._head)] = self._head
            nbytes += len(self._head)
            self._head = b""
        frames: list[memoryview] = []
        at = 0
        while nbytes - at >= 4:
            (length,) = _unpack_length(scratch, at)
            if not 0 <= length <= self._max_frame_bytes:
                raise FrameError(self._complaint(length), frames)
            at += 4
            end = at + length
            if end > nbytes:
                self._begin(length, self._scratch[at:nbytes])
                return frames
            frames.append(memoryview(scratch[at:end]))
            at = end
        if at < nbytes:
            self._head = bytes(scratch[at:nbytes])
        return frames

    def _begin(self, length: int, received: memoryview) -> None:
        capacity = max(FIRST_ALLOCATION_BYTES, len(received) * GROWTH)
        self._frame = _extended(received, min(length, capacity))
        self._filled = len(received)
        self.expecting = length

    def _continue(self, frame: bytearray, nbytes: int) -> list[memoryview]:
        self._filled += nbytes
        if self._filled < len(frame):
            return []
        if self._filled < self.expecting:
            self._frame = _extended(memoryview(frame), min(self.expecting, len(frame) * GROWTH))
            return []
        self._frame = None
        self._filled = self.expecting = 0
        return [memoryview(frame)]

    def _complaint(self, length: int) -> str:
        if length < 0:
            return f"a frame of negative length {length}"
        return f"a frame of {length} bytes, more than the {self._max_frame_bytes} allowed"


def _extended(data: memoryview, size: int) -> bytearray:
    extended = bytearray(size)
    # Through a view: a bytearray would first make a bytearray of what it is given.
    memoryview(extended)[: len(data)] = data
    return extended
