"""Several actors in one process and one event loop, over real local links and without Ray.

For tests and benchmarks. With `link.transport=ray` the same frames go through the
exchange, carried by a thread instead of Ray.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from mobula.actors.link.courier import NOT_TAKEN, Bag, Done
from mobula.actors.link.pipe import LinkLimits
from mobula.actors.linked_runtime import LinkedRuntime, load_actor
from mobula.actors.runtime import Actor, ActorFactory, Clock
from mobula.actors.spec import ActorSpec

LOCAL_NODE_ID = "local-node"


class ActorDied(RuntimeError):
    """Raised by `LocalRuntime.die`, which unlike a real one must return."""


class LocalRuntime(LinkedRuntime):
    """A Runtime whose other actors live beside it."""

    def __init__(
        self,
        node: LocalNode,
        spec: ActorSpec,
        *,
        restarts: int = 0,
        clock: Clock | None = None,
        limits: LinkLimits | None = None,
    ) -> None:
        super().__init__(
            spec,
            node.loop,
            ray_node_id=node.ray_node_id,
            restarts=restarts,
            courier=node.courier,
            clock=clock,
            limits=limits,
        )
        self._node = node

    def die(self, reason: str) -> None:
        self._node.died(self.spec.local_name, reason)
        raise ActorDied(reason)

    async def spawn(self, spec: ActorSpec) -> None:
        if spec.local_name not in self._node.runtimes:
            await self._node.start(spec)

    async def kill(self, local_name: str) -> None:
        await self._node.kill(local_name)


class LocalNode:
    """The actors of one node. Close it, or its sockets stay behind."""

    def __init__(
        self,
        *,
        factories: Mapping[str, ActorFactory] | None = None,
        clock: Clock | None = None,
        limits: LinkLimits | None = None,
        ray_node_id: str = LOCAL_NODE_ID,
        post_office: PostOffice | None = None,
    ) -> None:
        """`factories` replaces the class of some kinds of actor. Two nodes that share a
        `post_office` reach each other by exchange, like two nodes of a Ray cluster; who
        made it closes it."""
        self.loop = asyncio.get_running_loop()
        self.ray_node_id = ray_node_id
        self.runtimes: dict[str, LocalRuntime] = {}
        self.actors: dict[str, Actor] = {}
        self.deaths: list[tuple[str, str]] = []
        """Who died, and why."""
        self.courier = post_office or PostOffice()
        self._owns_courier = post_office is None
        self._factories = factories or {}
        self._clock = clock
        self._limits = limits
        self._restarting: set[asyncio.Task[Actor]] = set()

    async def runtime(self, spec: ActorSpec, restarts: int = 0) -> LocalRuntime:
        """A runtime that others can reach, for an actor that the caller builds."""
        runtime = LocalRuntime(
            self, spec, restarts=restarts, clock=self._clock, limits=self._limits
        )
        await runtime.open()
        self.runtimes[spec.local_name] = runtime
        self.courier.register(spec.local_name, runtime)
        return runtime

    async def start(self, spec: ActorSpec, restarts: int = 0) -> Actor:
        runtime = await self.runtime(spec, restarts)
        factory = self._factories.get(spec.kind) or load_actor(spec.kind)
        actor = factory(runtime)
        runtime.attach(actor)
        self.actors[spec.local_name] = actor
        await actor.start()
        return actor

    def died(self, name: str, reason: str) -> None:
        """Without a word to its peers; a new life begins at once."""
        self.deaths.append((name, reason))
        runtime = self._drop(name)
        if runtime is not None:
            self.actors.pop(name, None)
            task = self.loop.create_task(self.start(runtime.spec, runtime.restarts + 1))
            self._restarting.add(task)
            task.add_done_callback(self._restarting.discard)

    async def kill(self, name: str) -> None:
        """Peers lose it first; then it lets go of what it holds, as a process would."""
        self._drop(name)
        actor = self.actors.pop(name, None)
        if actor is not None:
            await actor.stop()

    async def close(self) -> None:
        for name in reversed(list(self.runtimes)):
            await self.kill(name)
        if self._owns_courier:
            self.courier.close()

    def _drop(self, name: str) -> LocalRuntime | None:
        runtime = self.runtimes.pop(name, None)
        if runtime is not None:
            self.courier.forget(name, runtime)
            runtime.close()
        return runtime


class PostOffice:
    """Carries bags between runtimes of this process, on a thread like Ray does."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "post-office")
        self._runtimes: dict[str, LocalRuntime] = {}

    def register(self, name: str, runtime: LocalRuntime) -> None:
        self._runtimes[name] = runtime

    def forget(self, name: str, runtime: LocalRuntime) -> None:
        if self._runtimes.get(name) is runtime:
            del self._runtimes[name]

    def deliver(self, to_name: str, bag: Bag, done: Done) -> None:
        def carry() -> None:
            runtime = self._runtimes.get(to_name)
            if runtime is None or runtime.exchange is None:
                done(NOT_TAKEN, f"no actor {to_name}")
            else:
                runtime.exchange.deliver(bag, lambda answer: done(answer, ""))

        self._thread.submit(carry)

    def close(self) -> None:
        self._thread.shutdown(wait=True)
