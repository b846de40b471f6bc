"""Links between two actors of one node: a Unix stream socket in the cluster's folder.

uvloop writes to the socket at each `transport.write`, so frames are gathered here and
written once a turn. A frame is received and handled inside `buffer_updated`.

Invariant: the socket's folder can be entered by its owner alone, so whoever connects is
the cluster itself.
"""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from mobula.actors.end_of_turn import Turn
from mobula.actors.link.interface import Buffer
from mobula.actors.link.pipe import LinkLimits, Outgoing, Receiver
from mobula.actors.spec import socket_path
from mobula.protocol.frames import FrameError, FrameReader

_SCRATCH_BYTES = 256 * 1024
_SOCKET_BUFFER_BYTES = 256 * 1024
_HIGH_WATER_BYTES = 1024 * 1024
_BACKLOG = 256


def new_scratch() -> memoryview:
    """Receive memory shared by all local links of one event loop."""
    return memoryview(bytearray(_SCRATCH_BYTES))


class LocalPipe(asyncio.BufferedProtocol):
    """One end of a local link. A serving end reads no more calls while its replies
    cannot leave; a calling end always reads, so two actors never wait for each other."""

    transport_name = "local"

    def __init__(
        self,
        turn: Turn,
        receiver: Receiver,
        limits: LinkLimits,
        scratch: memoryview,
        *,
        serving: bool,
    ) -> None:
        self.receiver = receiver
        self.queued_bytes = 0
        self._serving = serving
        self._call_soon = turn.call_soon
        self._outgoing = Outgoing()
        self._small = self._outgoing.small
        self._reader = FrameReader(limits.max_frame_bytes, scratch)
        self._transport: asyncio.Transport | None = None
        self._scheduled = False
        self._paused = False
        self._ended = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = stream = cast(asyncio.Transport, transport)
        stream.set_write_buffer_limits(high=_HIGH_WATER_BYTES)
        peer = stream.get_extra_info("socket")
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SOCKET_BUFFER_BYTES)
        if self._ended:
            stream.abort()
        else:
            self._flush()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._reader.get_buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        try:
            frames = self._reader.buffer_updated(nbytes)
        except FrameError as error:
            self._receive(error.frames)
            self.fail(str(error))
        else:
            self._receive(frames)

    def _receive(self, frames: list[memoryview]) -> None:
        try:
            for frame in frames:
                if self._ended:
                    return
                self.receiver.received(frame)
        except struct.error:
            self.fail("a frame too short to be one")

    def send(self, head: bytes, bulk: Sequence[Buffer], size: int) -> None:
        self.queued_bytes += size
        if bulk:
            self._outgoing.add(head, bulk)
        else:
            self._small.append(head)
        if not self._scheduled:
            self._scheduled = True
            self._call_soon(self._flush)

    def _flush(self) -> None:
        self._scheduled = False
        transport = self._transport
        if self._paused or transport is None:
            return
        pieces = self._outgoing.take()
        self.queued_bytes = 0
        if len(pieces) == 1:
            transport.write(pieces[0])
        elif pieces:
            transport.writelines(pieces)

    def pause_writing(self) -> None:
        self._paused = True
        if self._serving and self._transport is not None:
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._paused = False
        self._flush()
        if self._serving and not self._paused and self._transport is not None:
            self._transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if not self._ended:
            self._ended = True
            self.receiver.lost(f"connection lost: {exc}" if exc else "connection closed")

    def fail(self, reason: str) -> None:
        """End it now, and say why to the receiver."""
        if self._ended:
            return
        self._ended = True
        if self._transport is not None:
            self._transport.abort()
        self.receiver.lost(reason)

    def close(self) -> None:
        if self._ended:
            return
        self._flush()
        self._ended = True
        if self._transport is not None:
            self._transport.close()


class LocalDialer:
    """Opens local links of one actor to others of its cluster on this node."""

    transport_name = "local"

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        turn: Turn,
        run_dir: str,
        limits: LinkLimits,
        scratch: memoryview,
    ) -> None:
        self._loop = loop
        self._turn = turn
        self._run_dir = run_dir
        self._limits = limits
        self._scratch = scratch
        self._connecting: set[asyncio.Task[None]] = set()

    def dial(self, target: str, receiver: Receiver) -> LocalPipe:
        pipe = LocalPipe(self._turn, receiver, self._limits, self._scratch, serving=False)
        path = socket_path(self._run_dir, target)
        task = self._loop.create_task(self._connect(path, pipe))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)
        return pipe

    async def _connect(self, path: Path, pipe: LocalPipe) -> None:
        try:
            await self._loop.create_unix_connection(lambda: pipe, str(path))
        except OSError as error:
            pipe.fail(f"cannot connect: {error}")


def private_folder(path: Path) -> None:
    """Make the folder if need be, for its owner alone.

    Raises PermissionError when somebody else could enter it.
    """
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = path.stat()
    if found.st_uid != os.getuid():
        raise PermissionError(f"{path} belongs to another user")
    if stat.S_IMODE(found.st_mode) & 0o077:
        path.chmod(0o700)


def bind_socket(path: Path) -> socket.socket:
    """A listening socket at `path`, in place of one that a dead process left.

    Raises OSError when a living process listens there, or the path is too long.
    """
    private_folder(path.parent)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # Its name is no longer than the final one, which may be as long as a socket's can.
    fresh = path.with_name(f".{os.getpid()}")
    try:
        if _answers(path):
            raise FileExistsError("another process listens there")
        listener.setblocking(False)
        fresh.unlink(missing_ok=True)
        listener.bind(str(fresh))
        listener.listen(_BACKLOG)
        # Callers see the old socket or one that listens, never a gap.
        fresh.rename(path)
    except OSError as error:
        listener.close()
        raise OSError(f"cannot listen on {path}: {error}") from error
    return listener


def _answers(path: Path) -> bool:
    probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        probe.connect(str(path))
    except (FileNotFoundError, ConnectionRefusedError):
        return False
    else:
        return True
    finally:
        probe.close()
