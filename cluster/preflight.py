"""What can be known to fail before anything is started: each a sentence, none a traceback."""

from __future__ import annotations

import importlib.util
import os
import socket
from pathlib import Path

from mobula.actors.broker.listener import ListenerError, listen
from mobula.actors.config import Config
from mobula.actors.config.listeners import parse_listeners
from mobula.actors.spec import broker_name
from mobula.cluster.options import LaunchError
from mobula.cluster.state import is_alive, read_state
from mobula.cluster.topology import Plan
from mobula.storage.dir_lock import DirectoryLock
from mobula.storage.errors import FolderError
from mobula.storage.meta_properties import check_owner

_CONNECT_TIMEOUT_S = 5.0


def check_ray() -> None:
    if importlib.util.find_spec("ray") is None:
        raise LaunchError("Ray is not installed here; run `pip install 'ray>=2.60,<2.61'`")


def check_reachable(address: str) -> None:
    """Ray itself would try for minutes. An address without a port (`auto`) is left to it."""
    host, colon, port = address.rpartition("://")[2].rpartition(":")
    if not colon or not port.isdigit():
        return
    try:
        socket.create_connection((host, int(port)), timeout=_CONNECT_TIMEOUT_S).close()
    except OSError as error:
        raise LaunchError(f"no Ray answers at {address}: {error.strerror or error}") from None


def check_not_running(name: str) -> None:
    state = read_state(name)
    if state is not None and is_alive(state):
        raise LaunchError(
            f"a cluster {name!r} runs already (pid {state.pid}); stop it with "
            f"`mobula down --name {name}` or choose another --name"
        )


def take_name(name: str, run_dir: Path) -> DirectoryLock:
    """The name for this process alone, also while the cluster is not ready yet."""
    try:
        return DirectoryLock(run_dir)
    except FolderError:
        raise LaunchError(
            f"a cluster {name!r} is starting or stopping; try again in a moment or choose "
            "another --name"
        ) from None


def check_local(plan: Plan) -> None:
    """Ports and folders, as far as this machine can tell."""
    for broker in plan.brokers:
        config = Config(broker.actors[0].config)
        (listener,) = parse_listeners(config.strings("listeners"))
        try:
            listen(listener, 1, -1).close()
        except ListenerError as error:
            raise LaunchError(str(error)) from None
    for broker in plan.brokers:
        _check_folder(broker.data_dir, broker.broker_id)
    more = plan.brokers[0].data_dir.with_name(broker_name(len(plan.brokers)))
    if more.is_dir():
        raise LaunchError(
            f"{more.parent} holds the data of more than {len(plan.brokers)} brokers; start "
            "them all with -n, or choose another --data-dir"
        )
    _make_folder(Path(plan.controller.data_dir))


def _check_folder(folder: Path, broker_id: int) -> None:
    _make_folder(folder)
    try:
        DirectoryLock(folder).release()
        check_owner(folder, broker_id)
    except FolderError as error:
        raise LaunchError(f"{error}; choose another with --data-dir") from None


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LaunchError(
            f"cannot make the data folder {folder}: {error.strerror}; "
            "choose another with --data-dir"
        ) from None
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        raise LaunchError(
            f"the data folder {folder} cannot be written; choose another with --data-dir"
        )
