"""How sockets travel between the broker actor and a gateway: descriptors over a Unix socket.

The broker's side (`GatewaySockets`) hands over each accepted client, and gives the gateway
duplicates of the listening sockets to keep. The gateway's side (`SocketsChannel`) gives
those back to a broker actor that was restarted, so that the port is never closed while
the broker is down.

Every message is a kind, the length of a text and the text: the listener's name, and for a
client its address after a space. `CLIENT`, `KEEP` and `LISTENER` carry one descriptor each.

Invariant: a descriptor that was received is owned by exactly one socket object.
"""

from __future__ import annotations

import asyncio
import logging
import os
import select
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

log = logging.getLogger(__name__)

DEFAULT_LISTENER: Final = "PLAINTEXT"

_CLIENT: Final = 1
_KEEP: Final = 2
_RETURN: Final = 3
_LISTENER: Final = 4
_END: Final = 5
_CARRIES_DESCRIPTOR: Final = (_CLIENT, _KEEP, _LISTENER)

_READ_BYTES: Final = 4096
_READS_A_TURN: Final = 64
_TAKE_BACK_TIMEOUT_S: Final = 5.0
_CLOSE_ON_EXEC: Final = getattr(socket, "MSG_CMSG_CLOEXEC", 0)


def fds_path(run_dir: str, local_name: str) -> Path:
    """Where a gateway listens for descriptors."""
    return Path(run_dir) / f"{local_name.replace('/', '.')}.fds"


def _message(kind: int, text: str) -> bytes:
    encoded = text.encode()
    return bytes((kind, len(encoded))) + encoded


class _Incoming:
    """Takes messages and their descriptors out of what was received so far."""

    def __init__(self) -> None:
        self._bytes = b""

    def feed(self, data: bytes, fds: list[int]) -> list[tuple[int, str, socket.socket | None]]:
        self._bytes += data
        found: list[tuple[int, str, socket.socket | None]] = []
        at = 0
        while len(self._bytes) >= at + 2:
            kind, length = self._bytes[at], self._bytes[at + 1]
            if len(self._bytes) < at + 2 + length:
                break
            found.append((kind, self._bytes[at + 2 : at + 2 + length].decode(), None))
            at += 2 + length
        self._bytes = self._bytes[at:]
        # A read ends with the message that carries descriptors: the last one that wants
        # one gets it. An earlier one without was lost (this process has no slot left).
        for index in range(len(found) - 1, -1, -1):
            kind, name, _ = found[index]
            if fds and kind in _CARRIES_DESCRIPTOR:
                found[index] = (kind, name, _adopt(fds.pop()))
        for fd in fds:
            os.close(fd)
        return found


def _adopt(fd: int) -> socket.socket:
    os.set_inheritable(fd, False)
    return socket.socket(fileno=fd)


def _wait(sock: socket.socket, event: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(sock.fileno(), event)
    return bool(poll.poll(seconds * 1000))


class GatewaySockets:
    """The broker's side of one gateway. Connects at the first use.

    After a failure it is broken for good: make a new one when the gateway is back.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._socket: socket.socket | None = None
        self._broken = False

    @property
    def broken(self) -> bool:
        return self._broken

    def connect(self) -> bool:
        """False when nobody listens there (the gateway is down)."""
        if self._socket is not None or self._broken:
            return not self._broken
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.connect(os.fspath(self._path))
        except OSError:
            sock.close()
            self._broken = True
            return False
        sock.setblocking(False)
        self._socket = sock
        return True

    def hand_over(
        self, client: socket.socket, listener: str = DEFAULT_LISTENER, address: str = ""
    ) -> bool:
        """The gateway has its own descriptor now; the caller closes his. False: not sent,
        because the gateway is `broken`, or because it is busy and has not read the last ones.

        `address` is what the gateway calls the client when it reports that it is gone.
        """
        return self._send(_message(_CLIENT, f"{listener} {address}"), [client.fileno()])

    def keep(self, listener: str, listening: socket.socket) -> bool:
        """The gateway holds a duplicate until another is sent under the same name."""
        return self._send(_message(_KEEP, listener), [listening.fileno()])

    def take_back(self) -> dict[str, socket.socket]:
        """The listening sockets that the gateway keeps; it goes on keeping them.

        Waits for the gateway's answer: for start-up only. Empty when it cannot be asked.
        """
        taken: dict[str, socket.socket] = {}
        if not self._send(_message(_RETURN, ""), []) or self._socket is None:
            return taken
        incoming = _Incoming()
        until = time.monotonic() + _TAKE_BACK_TIMEOUT_S
        while (left := until - time.monotonic()) > 0:
            if not _wait(self._socket, select.POLLIN, left):
                break
            data, fds, _, _ = socket.recv_fds(self._socket, _READ_BYTES, 16, _CLOSE_ON_EXEC)
            if not data:
                break
            for kind, name, sock in incoming.feed(data, list(fds)):
                if kind == _END:
                    return taken
                if sock is not None:
                    taken[name] = sock
        self._break()
        return taken

    def close(self) -> None:
        self._break()

    def _send(self, message: bytes, fds: list[int]) -> bool:
        if not self.connect():
            return False
        assert self._socket is not None
        try:
            if fds:
                socket.send_fds(self._socket, [message], fds)
            else:
                self._socket.send(message)
        except BlockingIOError:
            return False
        except OSError:
            self._break()
            return False
        return True

    def _break(self) -> None:
        self._broken = True
        if self._socket is not None:
            self._socket.close()
            self._socket = None


class SocketsChannel:
    """The gateway's side. `on_client(socket, listener, address)` owns the socket it is given;
    None when it was lost on the way."""

    def __init__(
        self,
        path: Path,
        loop: asyncio.AbstractEventLoop,
        on_client: Callable[[socket.socket | None, str, str], None],
    ) -> None:
        self._path = path
        self._loop = loop
        self._on_client = on_client
        self._listening: socket.socket | None = None
        self._peers: dict[socket.socket, _Incoming] = {}
        self._kept: dict[str, socket.socket] = {}

    @property
    def kept(self) -> dict[str, socket.socket]:
        return dict(self._kept)

    def start(self) -> None:
        """Idempotent; what a former life of this gateway left at the path is replaced."""
        if self._listening is not None:
            return
        self._path.unlink(missing_ok=True)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listening.bind(os.fspath(self._path))
        self._path.chmod(0o600)
        listening.listen(16)
        listening.setblocking(False)
        self._listening = listening
        self._loop.add_reader(listening.fileno(), self._accept)

    def stop(self) -> None:
        if self._listening is not None:
            self._loop.remove_reader(self._listening.fileno())
            self._listening.close()
            self._listening = None
            self._path.unlink(missing_ok=True)
        for peer in list(self._peers):
            self._drop(peer)
        for sock in self._kept.values():
            sock.close()
        self._kept.clear()

    def _accept(self) -> None:
        assert self._listening is not None
        try:
            peer, _ = self._listening.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        peer.setblocking(False)
        self._peers[peer] = _Incoming()
        self._loop.add_reader(peer.fileno(), self._readable, peer)

    def _readable(self, peer: socket.socket) -> None:
        incoming = self._peers[peer]
        for _ in range(_READS_A_TURN):
            try:
                data, fds, _, _ = socket.recv_fds(peer, _READ_BYTES, 4, _CLOSE_ON_EXEC)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                data, fds = b"", []
            if not data:
                self._drop(peer)
                return
            for kind, name, sock in incoming.feed(data, list(fds)):
                self._handle(peer, kind, name, sock)

    def _handle(
        self, peer: socket.socket, kind: int, name: str, sock: socket.socket | None
    ) -> None:
        if kind == _RETURN:
            self._give_back(peer)
        elif kind == _CLIENT:
            listener, _, address = name.partition(" ")
            self._on_client(sock, listener, address)
        elif sock is None:
            log.warning("a listening socket was lost in hand-over reason=no descriptor left")
        elif kind == _KEEP:
            old = self._kept.pop(name, None)
            if old is not None:
                old.close()
            self._kept[name] = sock
        else:
            sock.close()

    def _give_back(self, peer: socket.socket) -> None:
        try:
            for name, sock in self._kept.items():
                socket.send_fds(peer, [_message(_LISTENER, name)], [sock.fileno()])
            peer.send(_message(_END, ""))
        except OSError:
            self._drop(peer)

    def _drop(self, peer: socket.socket) -> None:
        if self._peers.pop(peer, None) is not None:
            self._loop.remove_reader(peer.fileno())
            peer.close()
