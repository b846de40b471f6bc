"""The link's contract between two real Ray actors, and what their host promises."""

from __future__ import annotations

import asyncio
import inspect
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import ray

from mobula.actors.host import HostActor, create_host, kill_host
from mobula.actors.runtime import Actor
from mobula.actors.spec import ActorSpec
from tests.unit.link import link_contract
from tests.unit.link.link_contract import (
    CALLEE,
    CALLER,
    ECHO,
    SCENARIOS,
    EchoActor,
    States,
    Text,
    World,
    ask,
)

PATIENCE_S = 60.0


class EchoHost(HostActor):
    """Hosts the contract's actor, and runs scenarios where its own loop is."""

    def _make_actor(self) -> Actor:
        if self._spec.config.get("num.io.threads") == "1":
            raise ValueError("this actor never starts")
        return EchoActor(self._runtime)

    @ray.method(concurrency_group="control")
    def run_scenario(self, name: str, callee: ActorSpec) -> None:
        scenario = getattr(link_contract, name, None) or globals()[name]
        self._hosted.run(scenario(RayWorld(self._runtime, callee)), PATIENCE_S)


class RayWorld:
    def __init__(self, runtime: Any, callee: ActorSpec) -> None:
        self.runtime = runtime
        self.transport = "ray" if callee.config["link.transport"] == "ray" else "local"
        self._callee = callee

    async def kill_callee(self) -> None:
        await asyncio.to_thread(kill_host, self._callee, CALLEE)

    async def start_callee(self) -> None:
        await asyncio.to_thread(start_echo, self._callee)


def start_echo(spec: ActorSpec) -> Any:
    """Its host; waits for a namesake that was killed to be gone."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        host = create_host(spec, host_class=EchoHost)
        try:
            assert ray.get(host.ready.remote(PATIENCE_S), timeout=PATIENCE_S)
        except ray.exceptions.RayActorError:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        else:
            return host


async def a_callee_that_crashes_comes_back_in_a_new_life(world: World) -> None:
    states = States(world)
    await states.until([True])
    status, _ = await ask(world, link_contract.STATUS, link_contract.AskStatus())
    parked, _ = link_contract.call(world, link_contract.PARK, Text("p"))
    await ask(world, ECHO, Text("flush"))
    os.kill(status.pid, signal.SIGKILL)
    assert (await parked.error()).sent
    await states.until([True, False, True])
    again, _ = await ask(world, link_contract.STATUS, link_contract.AskStatus())
    assert again.pid != status.pid
    assert again.restarts == status.restarts + 1


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[str]:
    # A socket's path must stay short, Ray's own too.
    folder = tempfile.mkdtemp(prefix="mr-", dir="/tmp")
    patch = pytest.MonkeyPatch()
    # Workers inherit it: they find the tests' modules by name.
    patch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    patch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        configure_logging=False,
        namespace="tests",
        _temp_dir=f"{folder}/ray",
    )
    yield folder
    ray.shutdown()
    patch.undo()
    shutil.rmtree(folder)


@pytest.fixture(scope="module", params=["ray", "auto"])
def specs(request: pytest.FixtureRequest, ray_cluster: str) -> Iterator[dict[str, ActorSpec]]:
    mode = request.param
    run_dir = f"{ray_cluster}/{mode}"
    specs = {
        name: ActorSpec(
            cluster=mode,
            kind="echo",
            local_name=name,
            config={"link.transport": mode},
            run_dir=run_dir,
            data_dir=run_dir,
        )
        for name in (CALLER, CALLEE)
    }
    for spec in specs.values():
        start_echo(spec)
    yield specs
    for name in specs:
        kill_host(specs[CALLER], name)


ON_RAY = [*SCENARIOS, a_callee_that_crashes_comes_back_in_a_new_life]


@pytest.mark.parametrize("scenario", ON_RAY, ids=lambda scenario: scenario.__name__)
def test_that(scenario: Any, specs: dict[str, ActorSpec]) -> None:
    caller = start_echo(specs[CALLER])
    ray.get(caller.run_scenario.remote(scenario.__name__, specs[CALLEE]), timeout=PATIENCE_S)


def test_an_actor_that_cannot_start_says_why(ray_cluster: str) -> None:
    spec = ActorSpec(
        cluster="broken",
        kind="echo",
        local_name=CALLEE,
        config={"num.io.threads": "1"},
        run_dir=f"{ray_cluster}/broken",
        data_dir=ray_cluster,
    )
    host = create_host(spec, host_class=EchoHost)
    with pytest.raises(ray.exceptions.RayTaskError, match="this actor never starts"):
        ray.get(host.ready.remote(PATIENCE_S), timeout=PATIENCE_S)
    kill_host(spec, CALLEE)
    log = Path(spec.run_dir, "logs", f"{CALLEE}.log").read_text()
    assert "could not start" in log


def test_a_host_has_no_async_method_which_would_make_ray_run_it_on_loops_of_its_own() -> None:
    assert inspect.getmembers(HostActor, inspect.iscoroutinefunction) == []


def test_a_host_tells_its_status_and_stops(ray_cluster: str) -> None:
    spec = ActorSpec(
        cluster="single",
        kind="echo",
        local_name=CALLEE,
        run_dir=f"{ray_cluster}/single",
        data_dir=ray_cluster,
    )
    host = start_echo(spec)
    status = ray.get(host.status.remote())
    assert (status["name"], status["state"], status["restarts"]) == (CALLEE, "running", 0)
    assert Path(spec.run_dir).stat().st_mode & 0o777 == 0o700
    assert ray.get(host.stop.remote(10.0))
    assert not list(Path(spec.run_dir).glob("*.sock"))
    kill_host(spec, CALLEE)
