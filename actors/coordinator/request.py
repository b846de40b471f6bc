"""A client's request as the handlers of coordinators see it.

Invariant: it is answered once; what is said after that, or after its client has gone, is
dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mobula.actors.coordinator.messages import Coordinate, Coordinated
from mobula.actors.link.interface import Reply
from mobula.protocol.errors import KafkaError
from mobula.protocol.headers import RequestHeader
from mobula.protocol.messages import build_response, encode


class CoordinatorRequest:
    __slots__ = ("_reply", "body", "client_host", "client_id", "key", "principal", "version")

    def __init__(self, header: RequestHeader, body: Any, asked: Coordinate, reply: Reply) -> None:
        self.key = header.api_key
        self.version = header.api_version
        self.client_id = header.client_id or ""
        self.client_host = f"/{asked.client_address}"
        self.principal = asked.principal
        self.body = body
        self._reply: Reply | None = reply
        reply.on_cancel = self._gone

    def _gone(self) -> None:
        self._reply = None

    def respond(self, tree: Mapping[str, Any]) -> None:
        """With a tree that serves every version."""
        self.respond_with(encode(build_response(self.key, self.version, tree)))

    def respond_with(self, body: bytes) -> None:
        reply, self._reply = self._reply, None
        if reply is not None:
            reply.on_cancel = None
            reply(Coordinated(), (body,))

    def fail(self, error: KafkaError) -> None:
        """The whole request has failed; the gateway knows how its response says so."""
        reply, self._reply = self._reply, None
        if reply is not None:
            reply.on_cancel = None
            reply(Coordinated(int(error.code), error.detail))


class Gathered:
    """Answers about several groups, each from its own shard, for one response."""

    def __init__(self, count: int, done: Callable[[list[Any]], None]) -> None:
        self._answers: list[Any] = [None] * count
        self._missing = count
        self._done = done
        if not count:
            done([])

    def put(self, index: int, answer: Any) -> None:
        self._answers[index] = answer
        self._missing -= 1
        if not self._missing:
            self._done(self._answers)
