"""What a replica actor does by the clock: retention, checkpoints, fsync, the ISRs.

Nothing here is on the data path: long loops pause for it, and what waits for the disk runs
in another thread. After a crash all of it is done again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol, TypeVar

from mobula.actors.end_of_turn import Scheduler, Timer
from mobula.actors.replica.log_directory import LogDirectory, remove_folder
from mobula.actors.replica.partition import Partition
from mobula.actors.replica.replica_manager import ReplicaManager
from mobula.storage.log import StorageError

log = logging.getLogger(__name__)

_CHECKPOINT_MS = 5_000
_AT_ONCE = 100
_FIRST_RETENTION_MS = 30_000
_FLUSH_TICK_MS = 100
_NO_FLUSH_TICK_MS = 1_000
_SWEEP_MS = 5_000

ResultT = TypeVar("ResultT")


class Background(Protocol):
    """Runs work in another thread."""

    def __call__(
        self, work: Callable[[], ResultT], done: Callable[[ResultT], None] = ..., /
    ) -> None: ...


class Maintenance:
    def __init__(
        self,
        *,
        replicas: ReplicaManager,
        directory: LogDirectory,
        scheduler: Scheduler,
        background: Background,
        wall_ms: Callable[[], int],
        retention_check_interval_ms: int,
        isr_check_interval_ms: int,
    ) -> None:
        self._replicas = replicas
        self._directory = directory
        self._scheduler = scheduler
        self._background = background
        self._wall_ms = wall_ms
        self._retention_interval_ms = retention_check_interval_ms
        self._isr_interval_ms = isr_check_interval_ms
        self._timers: dict[str, Timer] = {}
        self._checkpointing = False
        self._stopped = False

    def start(self) -> None:
        self._after("checkpoint", _CHECKPOINT_MS, self._checkpoint)
        first_ms = min(self._retention_interval_ms, _FIRST_RETENTION_MS)
        self._after("retention", first_ms, self._retention)
        self._after("isr", self._isr_interval_ms, self._isrs)
        self._after("flush", _FLUSH_TICK_MS, self._flush)

    def stop(self) -> None:
        self._stopped = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def remove_later(self, folder: Path) -> None:
        """Gateways that still read it have its files open."""
        self._background(lambda: remove_folder(folder))

    def sweep_later(self, topic: str, topic_id: bytes, partition: int) -> None:
        """A deleted partition of a dedicated actor: that actor may be gone already."""

        def sweep() -> None:
            self._directory.set_aside_orphan(topic, topic_id, partition)
            for folder in self._directory.deleted(f"{topic}-{partition}."):
                self.remove_later(folder)

        self._scheduler.call_later(_SWEEP_MS / 1000, sweep)

    def _after(self, name: str, delay_ms: int, work: Callable[[], None]) -> None:
        if not self._stopped:
            self._timers[name] = self._scheduler.call_later(delay_ms / 1000, work)

    def _isrs(self) -> None:
        self._replicas.isrs.check()
        self._after("isr", self._isr_interval_ms, self._isrs)

    def _checkpoint(self) -> None:
        """Write offsets down when any may have changed; have rolled segments fsynced."""
        self._after("checkpoint", _CHECKPOINT_MS, self._checkpoint)
        written = self._replicas.written
        if not written or self._checkpointing:
            return
        partitions = list(written)
        written.clear()
        for partition in partitions:
            self._sync_rolled(partition)
        self._checkpointing = True
        checkpoint = self._directory.checkpoint(self._replicas)

        def write() -> str:
            try:
                checkpoint.write()
            except OSError as error:
                return str(error)
            return ""

        def written_down(problem: str) -> None:
            self._checkpointing = False
            if problem:
                log.error("checkpoint not written reason=%s", problem)
                self._replicas.written.update(dict.fromkeys(partitions))

        self._background(write, written_down)

    def _sync_rolled(self, partition: Partition) -> None:
        work = partition.log.rolled_unsynced()
        if work is None:
            return

        def sync() -> int | OSError:
            try:
                return work()
            except OSError as error:
                return error

        def synced(result: int | OSError) -> None:
            if self._replicas.find(partition.key) is not partition:
                return
            if isinstance(result, OSError):
                log.error("fsync failed partition=%s reason=%s", partition.name, result)
                self._replicas.take_offline(partition)
                return
            partition.log.synced(result)
            self._replicas.written[partition] = None

        self._background(sync, synced)

    def _retention(self) -> None:
        self._step(self._retention_steps())

    def _step(self, steps: Iterator[None]) -> None:
        if self._stopped:
            return
        if next(steps, _DONE) is _DONE:
            self._after("retention", self._retention_interval_ms, self._retention)
        else:
            self._scheduler.call_later(0, lambda: self._step(steps))

    def _retention_steps(self) -> Iterator[None]:
        for index, partition in enumerate(list(self._replicas)):
            if partition.offline or self._replicas.find(partition.key) is not partition:
                continue
            start = partition.log.log_start_offset
            try:
                partition.log.apply_retention(self._wall_ms(), partition.high_watermark.offset)
            except StorageError as error:
                self._replicas.storage_failed(partition, error)
                continue
            if partition.log.log_start_offset != start:
                self._replicas.log_start_moved(partition)
            if index % _AT_ONCE == _AT_ONCE - 1:
                yield

    def _flush(self) -> None:
        """Only logs of topics that set flush.ms; the others leave it to the system."""
        timed = self._replicas.flush_timed
        self._after("flush", _FLUSH_TICK_MS if timed else _NO_FLUSH_TICK_MS, self._flush)
        for partition in list(timed):
            if partition.offline:
                continue
            try:
                partition.log.flush_if_due(self._wall_ms())
            except StorageError as error:
                self._replicas.storage_failed(partition, error)


_DONE = object()
