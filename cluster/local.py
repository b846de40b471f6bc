"""A cluster for a test or a notebook, in a process of its own beside the caller's.

It has its own Ray, so any number can live side by side, and the caller's own use of Ray is
left alone. It ends with the `with` block, and with the caller's process.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from mobula.cluster.document import StatusDocument
from mobula.cluster.options import UpOptions
from mobula.cluster.state import TEMPORARY_PREFIX, run_dir
from mobula.cluster.supervised import SupervisedProcess

KEEP_LOGS = "MOBULA_KEEP_LOGS"
"""Set in the environment: the actors' logs stay in the run folder after the cluster."""


class LocalCluster:
    """Three brokers by default, on free ports, with data that goes when it stops.

    With `data_dir` the data stays there, and the next cluster with the same folder serves it.
    """

    def __init__(
        self,
        brokers: int = 3,
        config: Mapping[str, str] | None = None,
        data_dir: str | Path | None = None,
        name: str | None = None,
        port: int | None = None,
    ) -> None:
        self._temporary_data = data_dir is None
        self._temporary_name = name is None
        self._process: SupervisedProcess | None = None
        self.options = UpOptions(
            brokers=brokers,
            port=free_ports(brokers) if port is None else port,
            data_dir=_temporary_folder() if data_dir is None else Path(data_dir),
            name=name or f"{TEMPORARY_PREFIX}{secrets.token_hex(4)}",
            settings=dict(config or {}),
        )

    def __repr__(self) -> str:
        where = self._process.bootstrap if self._process is not None else "not running"
        return f"<LocalCluster {self.name} {where}>"

    @property
    def name(self) -> str:
        return self.options.name

    @property
    def data_dir(self) -> Path:
        return self.options.data_dir

    @property
    def bootstrap(self) -> str:
        """For a client's `bootstrap.servers`."""
        return self._running().bootstrap

    def start(self) -> LocalCluster:
        """Returns when every broker accepts clients. LaunchError says why it cannot."""
        if self._process is None:
            if self._temporary_data:
                self.data_dir.mkdir(mode=0o700, exist_ok=True)
            self._process = SupervisedProcess.start(self.options, remove=self._temporary())
        return self

    def stop(self) -> None:
        """Clean: logs are closed. Idempotent."""
        process, self._process = self._process, None
        try:
            if process is not None:
                process.stop()
        finally:
            for folder in self._temporary():
                shutil.rmtree(folder, ignore_errors=True)

    def _temporary(self) -> list[Path]:
        """Folders that nobody needs after the cluster."""
        folders = [self.options.data_dir] if self._temporary_data else []
        if self._temporary_name and not os.environ.get(KEEP_LOGS):
            folders.append(run_dir(self.options.name))
        return folders

    def status(self) -> StatusDocument:
        """What `mobula status --json` prints."""
        from mobula.cluster.launch import status

        self._running()
        return status(self.options.name)

    def _running(self) -> SupervisedProcess:
        if self._process is None:
            raise RuntimeError("the cluster is not running; use it in a with block or call start()")
        return self._process

    def __enter__(self) -> LocalCluster:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()


def _temporary_folder() -> Path:
    """Made when the cluster starts: one that never does leaves nothing behind."""
    return Path(tempfile.gettempdir()) / f"mobula-{secrets.token_hex(8)}"


_PORTS = range(15_000, 32_000)
"""Below those that systems give to outgoing connections: one of these could take a port
between the moment it is found free and the start of its broker."""


def free_ports(count: int) -> int:
    """The first of `count` free ports in a row on the loopback address."""
    for _ in range(200):
        first = secrets.choice(_PORTS[: len(_PORTS) - count])
        with contextlib.ExitStack() as held:
            if all(_binds(held, first + index) for index in range(count)):
                return first
    raise OSError(f"no {count} free ports in a row on this machine")


def _binds(held: contextlib.ExitStack, port: int) -> bool:
    sock = held.enter_context(socket.socket())
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind(("127.0.0.1", port))
    except OSError:
        return False
    return True
