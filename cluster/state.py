"""Which clusters this user runs on this machine: one small file for each.

The file stands in the cluster's run folder, next to its actors' sockets. It is written
when the cluster is ready and removed when it has stopped; what a killed cluster left
behind is recognised as stale by its dead process.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

import msgspec
import psutil

from mobula.cluster.options import DEFAULT_NAME, LaunchError, check_name

_FILE = "cluster.json"
TEMPORARY_PREFIX = "local-"
"""Of the names of clusters that belong to one program alone."""


class ClusterState(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    pid: int
    """Of the process that supervises the cluster and ends it."""
    pid_created_at: float
    """When that process began, in seconds: a pid is used again, this is not."""
    bootstrap: str
    """HOST:PORT,... of all brokers."""
    data_dir: str
    ray_address: str
    brokers: int
    started_at_ms: int


def run_root() -> Path:
    """Folder of all run folders. Short, because a socket's path must be."""
    return Path(f"/tmp/mobula-{os.getuid()}")


def run_dir(name: str) -> Path:
    check_name(name)
    return run_root() / name


def make_run_dir(name: str) -> Path:
    """The run folder, there and ours alone (0700), or LaunchError."""
    path = run_dir(name)
    for folder in (path.parent, path):
        folder.mkdir(mode=0o700, exist_ok=True)
        facts = folder.lstat()
        # /tmp is everyone's: another user may have put a folder or a link there first.
        if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.getuid():
            raise LaunchError(f"{folder} belongs to another user; remove it and try again")
        if facts.st_mode & 0o077:
            folder.chmod(0o700)
    return path


def this_process() -> tuple[int, float]:
    """The `pid` and `pid_created_at` of the caller."""
    process = psutil.Process()
    return process.pid, process.create_time()


def write_state(state: ClusterState) -> None:
    """Readers see the old file or the new one, whole."""
    folder = make_run_dir(state.name)
    fresh = folder / f"{_FILE}.{os.getpid()}"
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(state), indent=2) + b"\n")
    fresh.replace(folder / _FILE)


def read_state(name: str) -> ClusterState | None:
    """What the cluster wrote, also when it is dead by now; None when there is no file."""
    path = run_dir(name) / _FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=ClusterState)
    except FileNotFoundError:
        return None
    except PermissionError:
        raise LaunchError(f"{path} belongs to another user") from None
    except msgspec.DecodeError:
        raise LaunchError(f"{path} cannot be read; remove it and try again") from None


def remove_state(name: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        (run_dir(name) / _FILE).unlink()


def is_alive(state: ClusterState) -> bool:
    """Whether the process that supervises the cluster still runs."""
    try:
        process = psutil.Process(state.pid)
        created_at = process.create_time()
        # In a container nobody may ever collect it, and its pid stays.
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
    except psutil.NoSuchProcess:
        return False
    return abs(created_at - state.pid_created_at) < 1.0


def list_clusters() -> list[ClusterState]:
    """All that have a state file, dead ones too, by name."""
    root = run_root()
    if not root.is_dir():
        return []
    names = sorted(path.parent.name for path in root.glob(f"*/{_FILE}"))
    return [state for name in names if (state := read_state(name)) is not None]


def find_cluster(name: str) -> ClusterState:
    """A cluster that runs, or LaunchError that says what to do."""
    state = read_state(name)
    if state is not None and is_alive(state):
        return state
    others = [
        other.name
        for other in list_clusters()
        if not other.name.startswith(TEMPORARY_PREFIX) and is_alive(other)
    ]
    if others:
        raise LaunchError(
            f"no cluster {name!r} runs here; there is {', '.join(others)} (`--name {others[0]}`)"
        )
    option = "" if name == DEFAULT_NAME else f" --name {name}"
    raise LaunchError(f"no cluster {name!r} runs here; `mobula up{option}` starts it")
