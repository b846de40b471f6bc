"""The process that owns a cluster: it starts Ray and the actors, waits, and stops them.

`mobula up` is it; LocalCluster and `mobula up --detach` run it as a child (`supervised.py`).

After `start` every broker accepts clients. After `stop`, however far `start` came, no
process of the cluster is left and what was acknowledged is on disk.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from mobula.actors.spec import BROKER, CONTROLLER
from mobula.cluster import preflight
from mobula.cluster.options import ClusterError, LaunchError, UpOptions
from mobula.cluster.ray_session import RaySession
from mobula.cluster.state import (
    ClusterState,
    make_run_dir,
    remove_state,
    run_dir,
    this_process,
    write_state,
)
from mobula.cluster.supervised import Order, Outcome
from mobula.cluster.topology import LOOPBACK, Node, Plan, broker_resource, plan
from mobula.storage.dir_lock import FILE_NAME as LOCK_FILE
from mobula.storage.dir_lock import DirectoryLock

_READY_TIMEOUT_S = 90.0
_STOP_TIMEOUT_S = 30.0
_LOOK_UP_S = 0.2
_RESOURCE_SHARE = 0.001
"""Of a broker's node resource: all its actors, also after restarts, must fit in one."""
_KEEP_IN_RUN_DIR = ("logs", "supervisor.log", LOCK_FILE)

Progress = Callable[[str], None]


class StopSignals:
    """Ctrl-C, `mobula down` and a closed terminal (SIGINT, SIGTERM, SIGHUP) as something to
    wait for. The first one wins; more are ignored."""

    def __init__(self) -> None:
        self._numbers = [signal.SIGINT, signal.SIGTERM]
        # Under nohup it is ignored, and stays so: the cluster is to outlive the terminal.
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            self._numbers.append(signal.SIGHUP)
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)

    def __enter__(self) -> StopSignals:
        self.arm()
        return self

    def arm(self) -> None:
        """Again after Ray has started: it puts handlers of its own, which print stacks."""
        for number in self._numbers:
            signal.signal(number, self._arrived)

    def __exit__(self, *_: object) -> None:
        for number in self._numbers:
            signal.signal(number, signal.SIG_IGN)
        os.close(self._read)
        os.close(self._write)

    def _arrived(self, number: int, _frame: object) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(self._write, bytes([number]))

    def arrived(self) -> bool:
        return any(self._ready(0, None))

    def wait(self, tied_to: int | None = None) -> None:
        """Until a signal, or until the descriptor `tied_to` is at its end."""
        for _ in self._ready(None, tied_to):
            return

    def _ready(self, timeout: float | None, tied_to: int | None) -> Iterator[int]:
        with selectors.DefaultSelector() as selector:
            selector.register(self._read, selectors.EVENT_READ)
            if tied_to is not None:
                selector.register(tied_to, selectors.EVENT_READ)
            for key, _ in selector.select(timeout):
                yield key.fd


class Interrupted(Exception):
    """A signal came while the cluster was starting."""


class Supervisor:
    def __init__(
        self,
        options: UpOptions,
        signals: StopSignals,
        progress: Progress = lambda _text: None,
    ) -> None:
        self.options = options
        self.plan: Plan | None = None
        self._signals = signals
        self._progress = progress
        self._ray: RaySession | None = None
        self._actors: dict[str, Any] = {}
        self._ready: set[str] = set()
        self._name: DirectoryLock | None = None
        """Held from the first look at the run folder until the last: the state file is there
        only while the cluster is ready."""

    def start(self) -> Plan:
        """Interrupted when a signal came before the cluster was ready."""
        options = self.options
        preflight.check_ray()
        preflight.check_not_running(options.name)
        folder = make_run_dir(options.name)
        self._name = preflight.take_name(options.name, folder)
        if options.address is None:
            # What can be refused is refused before Ray takes its seconds to start.
            here = Node(node_id="", address=LOOPBACK)
            preflight.check_local(plan(options, [here], folder))
        else:
            preflight.check_reachable(options.address)
        _sweep(options.name)
        self._progress("starting Ray" if options.address is None else "connecting to Ray")
        self._ray = RaySession(options.address, folder / "ray")
        self._signals.arm()
        self.plan = plan(options, self._ray.nodes(), folder)
        self._progress("starting actors")
        self._create_actors(self.plan)
        self._wait_ready(self.plan)
        pid, created_at = this_process()
        write_state(
            ClusterState(
                name=options.name,
                pid=pid,
                pid_created_at=created_at,
                bootstrap=self.plan.bootstrap,
                data_dir=str(options.data_dir),
                ray_address=self._ray.address,
                brokers=options.brokers,
                started_at_ms=time.time_ns() // 1_000_000,
            )
        )
        return self.plan

    def stop(self) -> None:
        """The controller first: so nobody's going is recorded, and the next start finds every
        partition led and in sync as it was."""
        try:
            if self._ray is not None:
                self._stop_actors(self._ray)
        finally:
            if self._name is not None:
                self._name.release()

    def _stop_actors(self, session: RaySession) -> None:
        try:
            self._stop_kind(CONTROLLER)
            self._stop_kind(BROKER)
        finally:
            import ray

            for handle in self._actors.values():
                ray.kill(handle, no_restart=True)
            session.close()
            self._ray = None
            remove_state(self.options.name)
            _sweep(self.options.name)

    def _create_actors(self, plan: Plan) -> None:
        from mobula.actors.host import create_host

        self._actors[plan.controller.local_name] = create_host(
            plan.controller, plan.controller_node.node_id
        )
        for broker in plan.brokers:
            pinned = broker_resource(broker.broker_id)
            share = {pinned: _RESOURCE_SHARE} if pinned in broker.node.resources else {}
            for spec in broker.actors:
                self._actors[spec.local_name] = create_host(spec, broker.node.node_id, share)

    def _wait_ready(self, plan: Plan) -> None:
        import ray
        from ray.exceptions import GetTimeoutError, RayError

        waiting = {
            self._actors[spec.local_name].ready.remote(_READY_TIMEOUT_S): spec
            for spec in plan.all_actors()
        }
        deadline = time.monotonic() + _READY_TIMEOUT_S
        total = len(waiting)
        while waiting:
            if self._signals.arrived():
                raise Interrupted
            done, _ = ray.wait(list(waiting), num_returns=1, timeout=_LOOK_UP_S)
            if not done and time.monotonic() < deadline:
                continue
            if not done:
                names = ", ".join(sorted(spec.local_name for spec in waiting.values()))
                raise LaunchError(
                    f"not ready after {_READY_TIMEOUT_S:.0f} s: {names}; "
                    f"see the logs in {run_dir(self.options.name) / 'logs'}"
                )
            spec = waiting.pop(done[0])
            try:
                if not ray.get(done[0], timeout=1):
                    raise LaunchError(f"{spec.local_name} did not start in time")
            except (RayError, GetTimeoutError) as error:
                raise LaunchError(f"{spec.local_name} cannot start: {_reason(error)}") from None
            self._ready.add(spec.local_name)
            self._progress(f"actors ready: {total - len(waiting)} of {total}")

    def _stop_kind(self, kind: str) -> None:
        import ray
        from ray.exceptions import RayError

        if self.plan is None:
            return
        stops = [
            self._actors[spec.local_name].stop.remote(_STOP_TIMEOUT_S)
            for spec in self.plan.all_actors()
            # One that is still starting holds nothing that must be let go of, and would first
            # finish its start; it is killed with the rest.
            if spec.kind == kind and spec.local_name in self._ready
        ]
        done, late = ray.wait(stops, num_returns=len(stops), timeout=_STOP_TIMEOUT_S)
        for ref in late:
            self._progress(f"not stopped in time: {ref}")
        for ref in done:
            try:
                ray.get(ref)
            except RayError as error:
                self._progress(f"not stopped cleanly: {_reason(error)}")


def _reason(error: BaseException) -> str:
    """The innermost sentence of what Ray wrapped."""
    cause = getattr(error, "cause", None)
    text = str(cause if cause is not None else error).strip()
    return text.splitlines()[-1] if text else type(error).__name__


def _sweep(name: str) -> None:
    """Remove what a cluster leaves in its run folder: sockets, rows, a dead Ray's files."""
    folder = run_dir(name)
    if not folder.is_dir():
        return
    for path in folder.iterdir():
        if path.name in _KEEP_IN_RUN_DIR:
            continue
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def main() -> int:
    """The child's side of `supervised.py`."""
    order = msgspec.json.decode(sys.stdin.buffer.readline(), type=Order)
    answer = os.fdopen(os.dup(1), "wb")
    # Whatever Ray prints goes to the log with the errors; the pipe is for the one answer.
    os.dup2(2, 1)

    def say(outcome: Outcome) -> None:
        with contextlib.suppress(BrokenPipeError):
            answer.write(msgspec.json.encode(outcome) + b"\n")
            answer.close()

    with StopSignals() as signals:
        supervisor = Supervisor(order.options(), signals)
        try:
            try:
                plan = supervisor.start()
            except ClusterError as error:
                say(Outcome("", str(error)))
                return error.exit_status
            except Interrupted:
                return 130
            say(Outcome(plan.bootstrap, ""))
            signals.wait(sys.stdin.fileno() if order.tied else None)
        finally:
            supervisor.stop()
            for folder in order.remove:
                shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
