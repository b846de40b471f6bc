"""The supervisor in a process of its own: how LocalCluster and `--detach` start it.

The child is given its options as one line on standard input and says `ready` or `error` as
one line on standard output. A child that is `tied` ends when its standard input ends, that
is with its parent, however that ended.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from mobula.cluster.options import LaunchError, UpOptions
from mobula.cluster.state import make_run_dir

_START_TIMEOUT_S = 120.0
_STOP_TIMEOUT_S = 60.0


class Order(msgspec.Struct, frozen=True):
    """From the parent, once."""

    brokers: int
    port: int
    data_dir: str
    name: str
    address: str | None
    settings: dict[str, str]
    tied: bool
    remove: list[str]
    """Folders that go with the cluster, also when the parent was killed."""

    def options(self) -> UpOptions:
        return UpOptions(
            brokers=self.brokers,
            port=self.port,
            data_dir=Path(self.data_dir),
            name=self.name,
            address=self.address,
            settings=self.settings,
        )


class Outcome(msgspec.Struct, frozen=True):
    """From the child, once. `error` is a sentence for the user; empty when it is ready."""

    bootstrap: str
    error: str


class SupervisedProcess:
    def __init__(self, process: subprocess.Popen[bytes], bootstrap: str) -> None:
        self._process = process
        self.bootstrap = bootstrap

    @property
    def pid(self) -> int:
        return self._process.pid

    @classmethod
    def start(
        cls, options: UpOptions, *, tied: bool = True, remove: Sequence[Path] = ()
    ) -> SupervisedProcess:
        """Returns when the cluster is ready. LaunchError with the child's own sentence."""
        log_path = make_run_dir(options.name) / "supervisor.log"
        with log_path.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "mobula.cluster.supervisor"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        order = Order(
            options.brokers,
            options.port,
            str(options.data_dir),
            options.name,
            options.address,
            dict(options.settings),
            tied,
            [str(folder) for folder in remove],
        )
        assert process.stdin is not None
        process.stdin.write(msgspec.json.encode(order) + b"\n")
        process.stdin.flush()
        try:
            outcome = _await_outcome(process, log_path)
        except BaseException:
            _end(process)
            raise
        if outcome.error:
            _end(process)
            raise LaunchError(outcome.error)
        return cls(process, outcome.bootstrap)

    def stop(self) -> None:
        """Clean stop; after a minute it is killed."""
        _end(self._process)


def _await_outcome(process: subprocess.Popen[bytes], log_path: Path) -> Outcome:
    assert process.stdout is not None
    deadline = time.monotonic() + _START_TIMEOUT_S
    line = b""
    while not line.endswith(b"\n"):
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([process.stdout], [], [], left)[0]:
            raise LaunchError(
                f"the cluster was not ready after {_START_TIMEOUT_S:.0f} s; see {log_path}"
            )
        piece = os.read(process.stdout.fileno(), 65536)
        if not piece:
            raise LaunchError(f"the cluster ended while it started; see {log_path}")
        line += piece
    return msgspec.json.decode(line, type=Outcome)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
