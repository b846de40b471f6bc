"""The broker's addresses: where it listens and what it tells clients."""

from __future__ import annotations

import errno
import socket

from mobula.actors.config.listeners import Listener
from mobula.actors.metadata.records import Endpoint


class ListenerError(Exception):
    """One sentence for the user."""


def advertised(listener: Listener, configured: Listener | None) -> Endpoint:
    """What clients are told: the configured address, else the bound one."""
    if configured is not None:
        return Endpoint(configured.name, configured.host, configured.port or listener.port)
    if listener.host in ("", "0.0.0.0", "::"):
        raise ListenerError(
            f"clients cannot connect to '{listener.host}'; set advertised.listeners to the "
            "address they should use"
        )
    return Endpoint(listener.name, listener.host, listener.port)


def listen(listener: Listener, backlog: int, receive_buffer_bytes: int) -> socket.socket:
    """A listening socket, not inherited by child processes; ListenerError when taken."""
    family = socket.AF_INET6 if ":" in listener.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if receive_buffer_bytes > 0:
            # Accepted sockets inherit it; set later it would not widen the TCP window.
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        listening.bind((listener.host, listener.port))
        listening.listen(backlog)
        listening.setblocking(False)
    except OSError as error:
        listening.close()
        raise ListenerError(
            f"cannot listen on {listener.host}:{listener.port}: {error.strerror}; {_advice(error)}"
        ) from error
    return listening


def _advice(error: OSError) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            return "stop what uses the port or choose another with --port"
        case errno.EACCES:
            return "choose a port above 1023 with --port"
        case _:
            return "listeners must name an address of this machine"
