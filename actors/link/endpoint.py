"""The serving side of one actor: who may call what, over any transport.

Invariant: an actor answers through one endpoint; a caller that comes back in a new life
ends everything that its former life left open.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mobula.actors.end_of_turn import Turn
from mobula.actors.link.interface import Handler
from mobula.actors.link.local import LocalPipe, bind_socket
from mobula.actors.link.method import Method
from mobula.actors.link.pipe import LinkLimits
from mobula.actors.link.session import Served, ServingSession
from mobula.actors.link.wire import Hello

logger = logging.getLogger(__name__)


class Endpoint:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        hello: Hello,
        limits: LinkLimits,
        scratch: memoryview,
        on_caller: Callable[[str], None] = lambda name: None,
        *,
        turn: Turn,
    ) -> None:
        """`on_caller(name)` hears of each caller that has greeted."""
        self.hello = hello
        self.limits = limits
        self.served: dict[int, Served] = {}
        self._loop = loop
        self._turn = turn
        self._scratch = scratch
        self._on_caller = on_caller
        self._sessions: set[ServingSession] = set()
        self._server: asyncio.AbstractServer | None = None
        self._path: Path | None = None
        self._inode = 0

    def serve(self, method: Method[Any, Any], handler: Handler) -> None:
        """From now on; a method that was served before gets the new handler."""
        self.served[method.id] = (method.decode_request.decode, handler, method.name)

    async def listen(self, path: Path) -> None:
        """Take local links at `path`. Raises OSError when another process does."""
        listener = bind_socket(path)
        self._path = path
        self._inode = path.stat().st_ino
        self._server = await self._loop.create_unix_server(self._accept_local, sock=listener)

    def _accept_local(self) -> LocalPipe:
        session = self.new_session()
        pipe = LocalPipe(self._turn, session, self.limits, self._scratch, serving=True)
        session.pipe = pipe
        return pipe

    def new_session(self) -> ServingSession:
        """For a pipe that a caller opened; its `pipe` must be set next."""
        session = ServingSession(self)
        self._sessions.add(session)
        return session

    def greeted(self, session: ServingSession) -> None:
        former = [
            other
            for other in self._sessions
            if other.caller == session.caller and other.incarnation != session.incarnation
        ]
        for other in former:
            other.close("the caller has come back in a new life")
        self._on_caller(session.caller)

    def ended(self, session: ServingSession) -> None:
        self._sessions.discard(session)

    def callers(self) -> list[str]:
        return sorted(session.caller for session in self._sessions if session.caller)

    def close(self) -> None:
        """Take no more calls, and let go of all callers."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for session in list(self._sessions):
            session.close("the endpoint is closed")
        self._remove_socket()

    def _remove_socket(self) -> None:
        path, self._path = self._path, None
        if path is None:
            return
        try:
            # A later life of this actor may have put its own socket there.
            if path.stat().st_ino == self._inode:
                os.unlink(path)
        except FileNotFoundError:
            pass
