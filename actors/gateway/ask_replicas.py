"""One question about several partitions, to however many replica actors hold them.

Invariant: `on_done` runs once, with an answer for each partition in the order asked, or
not at all when the client is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

from mobula.actors.gateway.replica_errors import replica_error
from mobula.actors.gateway.request import Request
from mobula.actors.gateway.services import Services
from mobula.actors.link.interface import Link, LinkError
from mobula.actors.link.method import Message, Method

TIMEOUT_MS = 10_000
"""A replica actor that is away for longer has lost its partitions."""


class Part(Protocol):
    """What is asked about one partition."""

    @property
    def topic_id(self) -> bytes: ...
    @property
    def partition(self) -> int: ...


PartT = TypeVar("PartT", bound=Part)
AnswerT = TypeVar("AnswerT")


def ask_replicas(
    request: Request,
    services: Services,
    method: Method[Any, Any],
    parts: Sequence[PartT],
    *,
    message: Callable[[list[PartT]], Message],
    failed: Callable[[int], AnswerT],
    on_done: Callable[[list[AnswerT]], None],
) -> None:
    """`message(parts)` asks one actor, whose reply has `parts` in the same order.

    `failed(error code)` is the answer for a partition whose actor did not reply.
    """
    _Asking(request, services, method, failed, on_done).ask(parts, message)


class _Asking:
    def __init__(
        self,
        request: Request,
        services: Services,
        method: Method[Any, Any],
        failed: Callable[[int], Any],
        on_done: Callable[[list[Any]], None],
    ) -> None:
        self._request = request
        self._services = services
        self._method = method
        self._failed = failed
        self._on_done = on_done
        self._answers: list[Any] = []
        self._missing = 0
        self._calls: list[tuple[Link, int]] = []

    def ask(self, parts: Sequence[Any], message: Callable[[list[Any]], Message]) -> None:
        self._answers = [None] * len(parts)
        by_actor: dict[str, tuple[Link, list[int]]] = {}
        for index, part in enumerate(parts):
            link = self._services.replica(part.topic_id, part.partition)
            by_actor.setdefault(link.target, (link, []))[1].append(index)
        self._missing = len(by_actor)
        if not by_actor:
            self._on_done([])
            return
        self._request.on_abandoned = self._abandon
        for link, indexes in by_actor.values():
            handle = link.call(
                self._method,
                message([parts[index] for index in indexes]),
                partial(self._replied, indexes),
                partial(self._unanswered, indexes),
                timeout_ms=TIMEOUT_MS,
            )
            self._calls.append((link, handle))

    def _replied(self, indexes: list[int], reply: Any, _: memoryview) -> None:
        self._request.resume(self._answered, indexes, reply.parts)

    def _unanswered(self, indexes: list[int], error: LinkError) -> None:
        answer = self._failed(int(replica_error(error)))
        self._request.resume(self._answered, indexes, [answer] * len(indexes))

    def _answered(self, indexes: list[int], answers: Sequence[Any]) -> None:
        for index, answer in zip(indexes, answers, strict=True):
            self._answers[index] = answer
        self._missing -= 1
        if not self._missing:
            self._request.on_abandoned = None
            self._on_done(self._answers)

    def _abandon(self) -> None:
        for link, handle in self._calls:
            link.cancel(handle)
