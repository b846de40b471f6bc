"""A broker's data folder as one of its replica actors uses it.

The folder is shared with the broker's other replica actors; the checkpoints and the
clean-shutdown mark of each are its own. The first one has Kafka's file names.

Invariants: a log counts as cleanly closed only if this very actor closed it, which its mark
and its recovery points say together. A folder that is not needed is renamed at once and
removed later.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import threading
import uuid
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from mobula.actors.replica.partition import Partition
from mobula.actors.replica.pull_session import Key
from mobula.storage.checkpoints import LOG_START, RECOVERY_POINT, REPLICATION, OffsetCheckpoint
from mobula.storage.config import LogConfig
from mobula.storage.errors import StorageError
from mobula.storage.files import sync_directory, write_atomically
from mobula.storage.log import Log
from mobula.storage.partition_metadata import load_topic_id

log = logging.getLogger(__name__)

_MARK = ".kafka_cleanshutdown"
_PARTITION = re.compile(r"^(?P<topic>.+)-(?P<partition>\d+)$")
_DELETED = re.compile(r"\.[0-9a-f]{32}-delete$")
_LONGEST_NAME = 255
_NAMES = (RECOVERY_POINT, REPLICATION, LOG_START)

Offsets = dict[tuple[str, int], int]


class LogDirectory:
    def __init__(self, data_dir: Path, actor: str) -> None:
        """`actor`: the last part of its local name, such as `replica-0`."""
        self._data_dir = data_dir
        self._actor = actor
        self.first = actor == "replica-0"
        """Looks after what belongs to no actor."""
        self._mark = data_dir / f"{_MARK}.{actor}"
        self._clean = False
        self._own: dict[str, Offsets] = {}
        self._others: dict[str, Offsets] = {}
        self._order = WriteOrder()

    def load(self) -> None:
        """Read the checkpoints and take the mark away: a crash from now on is one."""
        self._data_dir.mkdir(parents=True, exist_ok=True)
        for name in _NAMES:
            self._own[name] = self._read(self._file_name(name))
            self._others[name] = {}
            for path in self._data_dir.glob(f"{name}*"):
                if path.name == self._file_name(name) or path.name.endswith(".tmp"):
                    continue
                for partition, offset in self._read(path.name).items():
                    known = self._others[name].get(partition, offset)
                    # Too low a recovery point or high watermark costs time, too high is wrong.
                    self._others[name][partition] = min(known, offset)
        with suppress(FileNotFoundError):
            self._mark.unlink()
            self._clean = True
            sync_directory(self._data_dir)

    def open(self, key: Key, topic: str, config: LogConfig, now_ms: int) -> Partition:
        """The partition with its log, created or recovered. StorageError, OSError."""
        name = (topic, key[1])
        directory = self._data_dir / f"{topic}-{key[1]}"
        mine = name in self._own[RECOVERY_POINT]
        lost = False
        if not directory.exists():
            # Checkpoints go by name: what they have may be of a deleted topic. If it is not,
            # there were records here that somebody may count on.
            lost = self._offset(REPLICATION, name) > 0 or self._offset(RECOVERY_POINT, name) > 0
            self._forget(name)

        def open_log() -> Log:
            return Log.open(
                directory,
                topic_id=key[0],
                config=config,
                now_ms=now_ms,
                clean=self._clean and mine,
                recovery_point=self._offset(RECOVERY_POINT, name),
                log_start_offset=self._offset(LOG_START, name),
            )

        try:
            opened = open_log()
        except StorageError:
            if not _belongs_to_another(directory, key[0]):
                raise
            log.warning("folder is another topic's, set aside folder=%s", directory)
            self.set_aside(directory, "stray")
            self._forget(name)
            opened = open_log()
        _report(opened)
        partition = Partition(key, topic, opened, self._offset(REPLICATION, name))
        partition.lost_its_end |= lost
        return partition

    def _forget(self, name: tuple[str, int]) -> None:
        for offsets in (*self._own.values(), *self._others.values()):
            offsets.pop(name, None)

    def forget_loaded(self) -> None:
        """After all logs of the first image are open: later ones begin at nothing."""
        for offsets in (*self._own.values(), *self._others.values()):
            offsets.clear()

    def checkpoint(self, partitions: Iterable[Partition]) -> Checkpoint:
        """What to write down now, for another thread to write."""
        recovery_points: Offsets = {}
        high_watermarks: Offsets = {}
        log_starts: Offsets = {}
        for partition in partitions:
            if partition.offline:
                continue
            name = (partition.topic, partition.key[1])
            recovery_points[name] = partition.log.recovery_point
            high_watermarks[name] = partition.high_watermark.offset
            log_starts[name] = partition.log.log_start_offset
        return Checkpoint(
            {
                self._data_dir / self._file_name(RECOVERY_POINT): recovery_points,
                self._data_dir / self._file_name(REPLICATION): high_watermarks,
                self._data_dir / self._file_name(LOG_START): log_starts,
            },
            self._order,
        )

    def mark_clean(self) -> None:
        """Call when all logs are closed and the checkpoint is written."""
        write_atomically(self._mark, b"", sync=True)

    def forget_actors(self, kept: int) -> None:
        """Remove marks and checkpoints of replica actors that a smaller number left behind:
        what they say would be wrong when they are back."""
        retired = re.compile(r"\.replica-(\d+)$")
        for path in self._data_dir.iterdir():
            found = retired.search(path.name)
            if found and int(found.group(1)) >= kept and path.name.startswith((_MARK, *_NAMES)):
                path.unlink(missing_ok=True)

    def set_aside_orphan(self, topic: str, topic_id: bytes, partition: int) -> Path | None:
        """The folder of a deleted partition whose own actor was ended before it could."""
        for name in (_MARK, *_NAMES):
            actor = f"replica-{topic_id.hex()}-{partition}"
            (self._data_dir / f"{name}.{actor}").unlink(missing_ok=True)
        return self.set_aside_deleted(self._data_dir / f"{topic}-{partition}", topic_id)

    def set_aside_deleted(self, folder: Path, topic_id: bytes) -> Path | None:
        """None when it is gone, or belongs to the topic that has the name now."""
        try:
            if load_topic_id(folder) == topic_id:
                return self.set_aside(folder, "delete")
        except FileNotFoundError:
            # Nothing was ever written there, or somebody else was faster.
            return None
        except (OSError, StorageError) as error:
            log.warning("folder not set aside folder=%s reason=%s", folder, error)
        return None

    def strays(self, expected: set[str], before_s: float) -> list[Path]:
        """Partition folders that the metadata does not know, older than this time."""
        return [
            Path(entry.path)
            for entry in os.scandir(self._data_dir)
            if _PARTITION.match(entry.name)
            and entry.name not in expected
            and entry.is_dir()
            and entry.stat().st_mtime < before_s
        ]

    def deleted(self, prefix: str = "") -> list[Path]:
        """Folders whose removal was not finished."""
        return [
            path
            for path in self._data_dir.iterdir()
            if path.name.startswith(prefix) and _DELETED.search(path.name)
        ]

    def set_aside(self, directory: Path, suffix: str) -> Path:
        """Rename a partition's folder so that its name is free; `delete` or `stray`."""
        end = f".{uuid.uuid4().hex}-{suffix}"
        target = directory.with_name(directory.name[: _LONGEST_NAME - len(end)] + end)
        directory.rename(target)
        return target

    def _offset(self, checkpoint: str, name: tuple[str, int]) -> int:
        own = self._own[checkpoint].get(name)
        return self._others[checkpoint].get(name, 0) if own is None else own

    def _file_name(self, checkpoint: str) -> str:
        return checkpoint if self.first else f"{checkpoint}.{self._actor}"

    def _read(self, file_name: str) -> Offsets:
        try:
            return OffsetCheckpoint(self._data_dir, file_name).read()
        except ValueError as error:
            log.warning("checkpoint not usable file=%s reason=%s", file_name, error)
            return {}


class WriteOrder:
    """Checkpoints are written by several threads: a later one is never undone by an earlier."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.made = 0
        self.written = 0


class Checkpoint:
    """Offsets of one moment, on their way to the disk."""

    def __init__(self, files: dict[Path, Offsets], order: WriteOrder) -> None:
        self._files = files
        self._order = order
        order.made += 1
        self._number = order.made

    def write(self) -> None:
        with self._order.lock:
            if self._number < self._order.written:
                return
            for path, offsets in self._files.items():
                OffsetCheckpoint(path.parent, path.name).write(offsets)
            self._order.written = self._number


def remove_folder(folder: Path) -> None:
    """For another thread: files go one by one and may be large."""
    shutil.rmtree(folder, ignore_errors=True)


def _belongs_to_another(directory: Path, topic_id: bytes) -> bool:
    try:
        return load_topic_id(directory) != topic_id
    except (OSError, StorageError):
        return False


def _report(opened: Log) -> None:
    recovery = opened.recovery
    if recovery is None:
        return
    if recovery.truncated_at_offset >= 0:
        log.warning(
            "log was cut in recovery folder=%s bytes=%d offset=%d reason=%s",
            opened.directory,
            recovery.truncated_bytes,
            recovery.truncated_at_offset,
            recovery.reason,
        )
    elif recovery.scanned_bytes or recovery.rebuilt_indexes:
        log.info(
            "log recovered folder=%s scanned_bytes=%d rebuilt_indexes=%d",
            opened.directory,
            recovery.scanned_bytes,
            recovery.rebuilt_indexes,
        )
