"""Starting, stopping and looking at clusters, as the command line and Python use it."""

from __future__ import annotations

import os
import signal
import time

import psutil

from mobula.cluster.banner import announce, ready_line, stop_hint
from mobula.cluster.document import StatusDocument
from mobula.cluster.options import LaunchError, UpOptions
from mobula.cluster.state import find_cluster, read_state
from mobula.cluster.supervised import SupervisedProcess
from mobula.cluster.supervisor import Interrupted, StopSignals, Supervisor

_DOWN_TIMEOUT_S = 60.0


def up_foreground(options: UpOptions) -> int:
    """Start, print where everything is, stay until Ctrl-C, stop cleanly."""
    from mobula.cluster.progress import Spinner

    with StopSignals() as signals, Spinner() as spinner:
        supervisor = Supervisor(options, signals, spinner.say)
        try:
            plan = supervisor.start()
            spinner.clear()
            announce(options, plan)
            signals.wait()
            spinner.say("stopping")
        except Interrupted:
            return 130
        finally:
            supervisor.stop()
    return 0


def up_detached(options: UpOptions) -> int:
    """Start in a process that outlives this one; returns when the cluster is ready."""
    from mobula.cluster.progress import Spinner

    with Spinner() as spinner:
        spinner.say("starting")
        process = SupervisedProcess.start(options, tied=False)
    stop_hint(options.name)
    ready_line(process.bootstrap)
    return 0


def down(name: str) -> None:
    """Ends the cluster cleanly; LaunchError when none of this name runs."""
    state = find_cluster(name)
    process = psutil.Process(state.pid)
    os.kill(state.pid, signal.SIGTERM)
    deadline = time.monotonic() + _DOWN_TIMEOUT_S
    while time.monotonic() < deadline:
        try:
            process.wait(timeout=0.5)
        except psutil.TimeoutExpired:
            continue
        return
    raise LaunchError(
        f"cluster {name!r} (pid {state.pid}) did not stop within {_DOWN_TIMEOUT_S:.0f} s"
    )


def status(name: str) -> StatusDocument:
    """The document of `mobula status --json`."""
    from mobula.cluster.status import gather

    return gather(find_cluster(name))


__all__ = ["down", "read_state", "status", "up_detached", "up_foreground"]
