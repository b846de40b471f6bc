"""What a broker says when it cannot listen."""

from __future__ import annotations

import socket

import pytest

from mobula.actors.broker.listener import ListenerError, listen
from mobula.actors.config.listeners import Listener


def test_a_taken_port_should_be_freed_or_changed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ListenerError, match="choose another with --port"):
            listen(Listener("PLAINTEXT", "127.0.0.1", port), 1, -1)


def test_an_address_of_another_machine_is_not_blamed_on_the_port() -> None:
    # 203.0.113.0/24 is for examples in texts: no machine has an address of it.
    with pytest.raises(ListenerError, match="must name an address of this machine"):
        listen(Listener("PLAINTEXT", "203.0.113.1", 19999), 1, -1)


def test_what_it_accepts_has_the_configured_receive_buffer() -> None:
    with listen(Listener("PLAINTEXT", "127.0.0.1", 0), 1, 30_000) as listening:
        listening.setblocking(True)
        with socket.create_connection(listening.getsockname()):
            accepted, _ = listening.accept()
            with accepted:
                assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) in (30_000, 60_000)
