"""What every host gives its actor: links out, an endpoint in, and who is where.

Owned by one actor and used on its loop. Hosts differ only in how they make and end other
actors, and in what carries links that leave the node.

Invariant: one link per peer, and one answer to STATUS, from the first moment on.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import random
import time
from dataclasses import replace
from typing import Any, Final, cast

from mobula.actors.broker.messages import STATUS, ActorStatus, AskStatus, LinkStatus
from mobula.actors.config import Config
from mobula.actors.end_of_turn import EndOfTurn, Scheduler
from mobula.actors.link.courier import Courier
from mobula.actors.link.dial import Dialers
from mobula.actors.link.endpoint import Endpoint
from mobula.actors.link.exchange import Exchange
from mobula.actors.link.interface import Handler, Link, Reply
from mobula.actors.link.link import ActorLink
from mobula.actors.link.local import LocalDialer, new_scratch
from mobula.actors.link.method import Method
from mobula.actors.link.pipe import LinkLimits
from mobula.actors.link.wire import VERSION, Hello
from mobula.actors.runtime import Actor, ActorFactory, Clock, SystemClock
from mobula.actors.spec import ActorSpec, broker_of, socket_path

_random = random.SystemRandom()
_UNLIMITED_BYTES: Final = 1 << 62


def load_actor(kind: str) -> ActorFactory:
    """The class of that kind of actor; imported only where one runs."""
    module = importlib.import_module(f"mobula.actors.{kind}.actor")
    return cast(ActorFactory, getattr(module, f"{kind.capitalize()}Actor"))


def link_limits(config: Config) -> LinkLimits:
    """A gateway stops reading its clients before a link refuses what they have sent: only
    then do they wait, instead of hearing that their leader is gone."""
    limits = LinkLimits()
    queued_bytes = config.integer("queued.max.request.bytes")
    if queued_bytes < 0:
        queued_bytes = _UNLIMITED_BYTES
    return replace(limits, max_queued_bytes=max(queued_bytes, limits.max_queued_bytes))


class LinkedRuntime:
    """A Runtime but for `spawn`, `kill` and `die`."""

    def __init__(
        self,
        spec: ActorSpec,
        loop: asyncio.AbstractEventLoop,
        *,
        ray_node_id: str,
        restarts: int,
        courier: Courier | None = None,
        clock: Clock | None = None,
        limits: LinkLimits | None = None,
    ) -> None:
        """Without a `courier` no link leaves the node."""
        self.spec = spec
        self.loop = loop
        self.turn: Scheduler = EndOfTurn(loop)
        self.clock: Clock = clock or SystemClock()
        self.incarnation = time.time_ns()
        self.restarts = restarts
        self.ray_node_id = ray_node_id
        self._actor: Actor | None = None
        config = Config(spec.config)
        self._limits = limits or link_limits(config)
        self._links: dict[str, ActorLink] = {}
        hello = Hello(VERSION, spec.local_name, self.incarnation, ray_node_id)
        scratch = new_scratch()
        self._endpoint = Endpoint(
            loop, hello, self._limits, scratch, self._heard_of, turn=self.turn
        )
        self.exchange: Exchange | None = None
        if courier is not None:
            self.exchange = Exchange(
                loop,
                name=spec.local_name,
                life=self.incarnation,
                courier=courier,
                new_id=lambda: _random.getrandbits(64),
                accept=self._endpoint.new_session,
            )
        self._transport = config.string("link.transport")
        self._dialers = Dialers(
            hello=hello,
            local=LocalDialer(loop, self.turn, spec.run_dir, self._limits, scratch),
            ray=self.exchange,
        )

    async def open(self) -> None:
        """Be there for others. Raises OSError when another process is this actor."""
        self.serve(STATUS, self._answer_status)
        await self._endpoint.listen(socket_path(self.spec.run_dir, self.spec.local_name))

    def attach(self, actor: Actor) -> None:
        """The actor that this runtime is for: asked for its state from now on."""
        self._actor = actor

    def link(self, local_name: str) -> Link:
        link = self._links.get(local_name)
        if link is None:
            dialers = self._dialers.to(self._transport, self.spec.broker_id, broker_of(local_name))
            link = ActorLink(local_name, self.loop, dialers, self._limits)
            self._links[local_name] = link
        return link

    def serve(self, method: Method[Any, Any], handler: Handler) -> None:
        self._endpoint.serve(method, handler)

    def link_statuses(self) -> list[LinkStatus]:
        return [LinkStatus(name, link.transport_name()) for name, link in self._links.items()]

    def status(self) -> ActorStatus:
        state, counters = ("starting", {}) if self._actor is None else self._actor.state()
        return ActorStatus(
            name=self.spec.local_name,
            kind=self.spec.kind,
            pid=os.getpid(),
            ray_node_id=self.ray_node_id,
            restarts=self.restarts,
            state=state,
            links=self.link_statuses(),
            counters=dict(counters),
        )

    def _answer_status(self, message: AskStatus, bulk: memoryview, reply: Reply) -> None:
        reply(self.status())

    def _heard_of(self, caller: str) -> None:
        link = self._links.get(caller)
        if link is not None:
            link.nudge()

    def close(self) -> None:
        """Let go of all peers; they see this actor gone."""
        for link in self._links.values():
            link.close()
        self._endpoint.close()
        if self.exchange is not None:
            self.exchange.close()
