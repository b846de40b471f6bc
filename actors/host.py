"""The Ray actor that every actor of the cluster lives in.

Ray makes it anew after a crash with the same ActorSpec, so it starts its actor in
`__init__`, in the background; `ready` tells when that is done.

Invariant: HostActor has no `async def`, not even a private one. With one, Ray would make
it an asynchronous actor and run its methods on event loops of Ray's own, where a `ready`
that waits holds up everything else.
"""

from __future__ import annotations

import logging
from asyncio import AbstractEventLoop
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NoReturn, cast

import msgspec
import ray
import uvloop
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from mobula.actors.hosted import Hosted
from mobula.actors.link.courier import Answer
from mobula.actors.link.envelopes import pack_answer, unpack_bag
from mobula.actors.link.exchange import MAX_HELD
from mobula.actors.link.local import private_folder
from mobula.actors.link.ray import RayCourier
from mobula.actors.linked_runtime import LinkedRuntime, load_actor
from mobula.actors.process import (
    end_process,
    keep_freed_memory,
    lives_path,
    log_to_file,
    next_life,
    take_normal_priority,
)
from mobula.actors.runtime import Actor
from mobula.actors.spec import RAY_NAMESPACE, ActorSpec, socket_path

logger = logging.getLogger(__name__)

_STATUS_TIMEOUT_S = 10.0
_ANSWER_TIMEOUT_S = 30.0
"""Far more than the exchange holds a call: its loop stands still, and senders start over."""


class RayRuntime(LinkedRuntime):
    """A Runtime whose other actors are Ray's."""

    def __init__(
        self, spec: ActorSpec, loop: AbstractEventLoop, *, ray_node_id: str, restarts: int
    ) -> None:
        self._blocking = ThreadPoolExecutor(2, "ray-api")
        super().__init__(
            spec,
            loop,
            ray_node_id=ray_node_id,
            restarts=restarts,
            courier=RayCourier(spec.cluster, self._blocking),
        )

    def die(self, reason: str) -> NoReturn:
        logger.critical("the actor ends its process reason=%s", reason)
        end_process()

    async def spawn(self, spec: ActorSpec) -> None:
        await self.loop.run_in_executor(self._blocking, create_host, spec, self.ray_node_id)

    async def kill(self, local_name: str) -> None:
        await self.loop.run_in_executor(self._blocking, kill_host, self.spec, local_name)


def create_host(
    spec: ActorSpec,
    ray_node_id: str | None = None,
    resources: Mapping[str, float] | None = None,
    host_class: type[HostActor] | None = None,
) -> Any:
    """The host of that actor: the one that exists, or a new one, on that node if given.

    Blocks. It outlives whoever made it, and comes back whatever ends it but `kill_host`.
    """
    strategy = None
    if ray_node_id is not None:
        strategy = NodeAffinitySchedulingStrategy(ray_node_id, soft=False)
    remote: Any = cast(Any, ray.remote)(
        num_cpus=0,
        max_restarts=-1,
        max_task_retries=0,
        enable_task_events=False,
        concurrency_groups={"mail": MAX_HELD + 8, "control": 4},
    )(host_class or HostActor)
    return remote.options(
        name=spec.name,
        namespace=RAY_NAMESPACE,
        lifetime="detached",
        get_if_exists=True,
        scheduling_strategy=strategy,
        resources=dict(resources or {}),
    ).remote(spec)


def kill_host(cluster_of: ActorSpec, local_name: str) -> None:
    """End an actor of the same cluster for good, or do nothing when there is none. Blocks."""
    try:
        host = ray.get_actor(f"{cluster_of.cluster}/{local_name}", RAY_NAMESPACE)
    except ValueError:
        return
    ray.kill(host, no_restart=True)
    socket_path(cluster_of.run_dir, local_name).unlink(missing_ok=True)


class HostActor:
    """Wrapped by `ray.remote` in `create_host`. Nobody waits behind anybody to deliver."""

    def __init__(self, spec: ActorSpec) -> None:
        self._spec = spec
        private_folder(Path(spec.run_dir))
        log_to_file(spec)
        keep_freed_memory()
        take_normal_priority()
        context = ray.get_runtime_context()
        lives = next_life(lives_path(spec), context.get_actor_id())
        self._runtime = RayRuntime(
            spec,
            uvloop.new_event_loop(),
            ray_node_id=context.get_node_id(),
            restarts=lives.count - 1,
        )
        self._exchange = self._runtime.exchange
        self._hosted = Hosted(self._runtime, self._make_actor, lives, lives_path(spec))
        self._hosted.begin()

    def _make_actor(self) -> Actor:
        return load_actor(self._spec.kind)(self._runtime)

    def __repr__(self) -> str:
        return self._spec.name

    @ray.method(concurrency_group="mail")
    def deliver(self, *pieces: bytes) -> bytes:
        """A bag of the exchange, in one or several pieces, and what comes back."""
        assert self._exchange is not None
        bag = unpack_bag(pieces[0] if len(pieces) == 1 else b"".join(pieces))
        answers: SimpleQueue[Answer] = SimpleQueue()
        self._exchange.deliver(bag, answers.put)
        return pack_answer(answers.get(timeout=_ANSWER_TIMEOUT_S))

    @ray.method(concurrency_group="control")
    def ready(self, timeout_s: float) -> bool:
        """True once the actor has started, False when it has not in that time.

        Raises ActorStartError when it could not.
        """
        return self._hosted.ready(timeout_s)

    @ray.method(concurrency_group="control")
    def status(self) -> dict[str, Any]:
        """What STATUS on a link answers, as plain values."""
        answer: dict[str, Any] = msgspec.structs.asdict(self._hosted.status(_STATUS_TIMEOUT_S))
        answer["links"] = [msgspec.structs.asdict(link) for link in answer["links"]]
        return answer

    @ray.method(concurrency_group="control")
    def stop(self, timeout_s: float) -> bool:
        """Let the actor release what it holds. False when it did not in that time."""
        try:
            self._hosted.stop(timeout_s)
        except TimeoutError:
            logger.warning("the actor did not stop in time timeout_s=%s", timeout_s)
            return False
        return True
