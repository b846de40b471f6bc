"""The process of an actor: its log file, its memory and priority, its count of lives."""

from __future__ import annotations

import ctypes
import gc
import logging
import logging.handlers
import os
import sys
from pathlib import Path
from typing import NoReturn

import msgspec

from mobula.actors.spec import ActorSpec

logger = logging.getLogger(__name__)

_LOG_BYTES = 10 * 1024 * 1024
_LOG_FILES = 3
_KEEP_FREE_BYTES = 32 * 1024 * 1024
_MMAP_OVER_BYTES = 16 * 1024 * 1024


class Lives(msgspec.Struct):
    """What a process finds of its former lives."""

    ray_actor_id: str | None
    count: int = 0
    failed: int = 0
    """Lives in a row that ended before the actor had started."""


def file_name(spec: ActorSpec) -> str:
    return spec.local_name.replace("/", ".")


def lives_path(spec: ActorSpec) -> Path:
    return Path(spec.run_dir) / f"{file_name(spec)}.lives"


def next_life(path: Path, ray_actor_id: str | None) -> Lives:
    """Count this life. Lives of a former cluster in the same folder do not count."""
    lives = Lives(ray_actor_id)
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Lives)
    except (FileNotFoundError, msgspec.MsgspecError):
        pass
    else:
        if found.ray_actor_id == ray_actor_id:
            lives = found
    lives.count += 1
    write_lives(path, lives)
    return lives


def write_lives(path: Path, lives: Lives) -> None:
    fresh = path.with_suffix(".lives.new")
    try:
        fresh.write_bytes(msgspec.json.encode(lives))
        fresh.rename(path)
    except OSError as error:
        # A full disk must not keep an actor from coming back.
        logger.warning("lives not counted path=%s error=%s", path, error)


def log_to_file(spec: ActorSpec) -> None:
    folder = Path(spec.run_dir) / "logs"
    folder.mkdir(exist_ok=True)
    handler = logging.handlers.RotatingFileHandler(
        folder / f"{file_name(spec)}.log", maxBytes=_LOG_BYTES, backupCount=_LOG_FILES
    )
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.INFO)


def keep_freed_memory() -> None:
    """Large frames come and go: without this, the C library gives each back to the
    system and takes new pages, which costs more than receiving the frame."""
    if sys.platform == "linux":
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
        if mallopt is not None:
            m_trim_threshold, m_mmap_threshold = -1, -3
            mallopt(m_trim_threshold, _KEEP_FREE_BYTES)
            mallopt(m_mmap_threshold, _MMAP_OVER_BYTES)


def take_normal_priority() -> None:
    """Ray runs its workers at nice 15 unless told otherwise when it was started. A broker is
    no background job; where the system lets us, every thread of the process goes back."""
    if sys.platform == "linux":
        for thread in os.listdir("/proc/self/task"):
            try:
                os.setpriority(os.PRIO_PROCESS, int(thread), 0)
            except (PermissionError, ProcessLookupError):
                return


def rest_garbage_collector() -> None:
    """What lives now lives on, and data-path messages make no cycles."""
    gc.freeze()
    gc.set_threshold(50_000, 50, 50)


def end_process() -> NoReturn:
    """At once, as a crash would; Ray starts the actor anew."""
    logging.shutdown()
    os._exit(1)
