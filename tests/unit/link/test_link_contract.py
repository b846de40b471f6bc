"""Every scenario of the contract, over Unix sockets and through the exchange, in one loop."""

from __future__ import annotations

import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
import uvloop

from mobula.actors.broker.messages import STATUS, AskStatus
from mobula.actors.local_runtime import ActorDied, LocalNode, LocalRuntime, PostOffice
from mobula.actors.spec import ActorSpec
from tests.unit.link.link_contract import (
    CALLEE,
    CALLER,
    SCENARIOS,
    EchoActor,
    States,
    World,
    a_call_is_answered_with_its_bulk,
    ask,
    calls_in_flight_fail_at_once_when_the_callee_is_killed,
)

TRANSPORTS = {"local": "auto", "ray": "ray"}


@pytest.fixture
def run_dir() -> Iterator[str]:
    # Not tmp_path: a socket's path must stay short.
    with tempfile.TemporaryDirectory(prefix="ml-", dir="/tmp") as folder:
        yield folder


class OneLoopWorld:
    def __init__(self, node: LocalNode, runtime: LocalRuntime, callee: ActorSpec) -> None:
        self.runtime = runtime
        self.transport = "ray" if runtime.spec.config["link.transport"] == "ray" else "local"
        self._node = node
        self._callee = callee

    async def kill_callee(self) -> None:
        await self._node.kill(CALLEE)

    async def start_callee(self) -> None:
        await self._node.start(self._callee, restarts=1)


def spec(name: str, run_dir: str, mode: str) -> ActorSpec:
    return ActorSpec(
        cluster="test",
        kind="echo",
        local_name=name,
        config={"link.transport": mode},
        run_dir=run_dir,
        data_dir=run_dir,
    )


async def run_scenario(
    scenario: Callable[[World], Awaitable[None]], run_dir: str, mode: str
) -> None:
    node = LocalNode(factories={"echo": EchoActor})
    try:
        runtime = await node.runtime(spec(CALLER, run_dir, mode))
        await node.start(spec(CALLEE, run_dir, mode))
        await scenario(OneLoopWorld(node, runtime, spec(CALLEE, run_dir, mode)))
    finally:
        await node.close()


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_that(scenario: Callable[[World], Awaitable[None]], transport: str, run_dir: str) -> None:
    uvloop.run(run_scenario(scenario, run_dir, TRANSPORTS[transport]))
    assert list(Path(run_dir).iterdir()) == []


def test_actors_of_two_nodes_meet_through_the_exchange_though_sockets_are_preferred(
    run_dir: str,
) -> None:
    async def scenario() -> None:
        post_office = PostOffice()
        here = LocalNode(post_office=post_office, ray_node_id="here")
        there = LocalNode(
            factories={"echo": EchoActor}, post_office=post_office, ray_node_id="there"
        )
        try:
            runtime = await here.runtime(spec(CALLER, f"{run_dir}/here", "auto"))
            callee = spec(CALLEE, f"{run_dir}/there", "auto")
            await there.start(callee)
            world = OneLoopWorld(there, runtime, callee)
            world.transport = "ray"
            await a_call_is_answered_with_its_bulk(world)
            await calls_in_flight_fail_at_once_when_the_callee_is_killed(world)
            await a_call_is_answered_with_its_bulk(world)
        finally:
            await here.close()
            await there.close()
            post_office.close()

    uvloop.run(scenario())


def test_an_actor_that_dies_starts_a_new_life(run_dir: str) -> None:
    async def scenario() -> None:
        node = LocalNode(factories={"echo": EchoActor})
        try:
            runtime = await node.runtime(spec(CALLER, run_dir, "auto"))
            callee = spec(CALLEE, run_dir, "auto")
            await node.start(callee)
            world = OneLoopWorld(node, runtime, callee)
            states = States(world)
            await states.until([True])
            with pytest.raises(ActorDied):
                node.runtimes[CALLEE].die("a test says so")
            await states.until([True, False, True])
            status, _ = await ask(world, STATUS, AskStatus())
            assert status.restarts == 1
            assert node.deaths == [(CALLEE, "a test says so")]
        finally:
            await node.close()

    uvloop.run(scenario())
