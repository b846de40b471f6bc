"""What runs, asked of the actors themselves: the facts behind `mobula status`."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
from pathlib import Path

import uvloop

from mobula.actors.broker.messages import STATUS, ActorStatus, AskStatus
from mobula.actors.link.ask import ask
from mobula.actors.link.interface import LinkError
from mobula.actors.linked_runtime import LinkedRuntime
from mobula.actors.spec import CONTROLLER_NAME, ActorSpec, broker_name
from mobula.cluster.document import (
    ActorDocument,
    BrokerDocument,
    ControllerDocument,
    LinkDocument,
    StatusDocument,
)
from mobula.cluster.state import ClusterState, run_dir

_ASK_TIMEOUT_MS = 1_500


def gather(state: ClusterState) -> StatusDocument:
    """Actors that do not answer are left out, and their broker says so in its state."""
    names = _actor_names(run_dir(state.name))
    # A loop of its own in a thread of its own: the caller may be running one already.
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        statuses = pool.submit(uvloop.run, _ask_all(state.name, names)).result()
    by_name = {status.name: status for status in statuses}
    controller = by_name.get(CONTROLLER_NAME)
    counters = controller.counters if controller is not None else {}
    return StatusDocument(
        name=state.name,
        bootstrap=state.bootstrap,
        data_dir=state.data_dir,
        ray_address=state.ray_address,
        brokers=[
            _broker(index, address, state.data_dir, by_name)
            for index, address in enumerate(state.bootstrap.split(","))
        ],
        controller=None if controller is None else _controller(controller),
        links=[
            LinkDocument({"from": status.name, "to": link.target, "transport": link.transport})
            for status in statuses
            for link in status.links
        ],
        partitions={
            "total": counters.get("partitions", 0),
            "under_replicated": counters.get("under_replicated", 0),
            "offline": counters.get("offline", 0),
        },
    )


def _actor_names(folder: Path) -> list[str]:
    """Every actor has a socket here, named after it."""
    return sorted(path.stem.replace(".", "/", 1) for path in folder.glob("*.sock"))


async def _ask_all(cluster: str, names: list[str]) -> list[ActorStatus]:
    spec = ActorSpec(
        cluster=cluster,
        kind="client",
        local_name=f"client-{os.getpid()}",
        run_dir=str(run_dir(cluster)),
        data_dir="",
    )
    # It is never opened: it calls others, and nobody calls it.
    runtime = LinkedRuntime(spec, asyncio.get_running_loop(), ray_node_id="", restarts=0)
    try:
        answers = await asyncio.gather(
            *(
                ask(runtime.link(name), STATUS, AskStatus(), timeout_ms=_ASK_TIMEOUT_MS)
                for name in names
            ),
            return_exceptions=True,
        )
    finally:
        runtime.close()
    for answer in answers:
        if isinstance(answer, BaseException) and not isinstance(answer, LinkError):
            raise answer
    return [answer for answer in answers if isinstance(answer, ActorStatus)]


def _broker(
    index: int, address: str, data_dir: str, by_name: dict[str, ActorStatus]
) -> BrokerDocument:
    host, _, port = address.rpartition(":")
    own = broker_name(index)
    broker = by_name.get(own)
    return BrokerDocument(
        id=index,
        host=host,
        port=int(port),
        state="dead" if broker is None else broker.state,
        data_dir=str(Path(data_dir) / own),
        actors=[
            _actor(status)
            for name, status in sorted(by_name.items())
            if name == own or name.startswith(f"{own}/")
        ],
    )


def _actor(status: ActorStatus) -> ActorDocument:
    return ActorDocument(
        name=status.name,
        kind=status.kind,
        pid=status.pid,
        node=status.ray_node_id,
        restarts=status.restarts,
        state=status.state,
        counters=dict(status.counters),
    )


def _controller(status: ActorStatus) -> ControllerDocument:
    return ControllerDocument(
        name=status.name,
        pid=status.pid,
        node=status.ray_node_id,
        restarts=status.restarts,
        state=status.state,
    )
