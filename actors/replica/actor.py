"""The replica actor: the shell around the replica manager. It owns the process's links,
threads and timers; it decides nothing.

The first metadata update opens and recovers the logs of this actor's partitions; only then
are appends and pulls served. Its reply says so, once the controller knows of logs that lost
their ends. After a crash the next life does the same from what is on disk.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from mobula.actors.broker.messages import DRAIN, METADATA_UPDATE, Drain, MetadataUpdate
from mobula.actors.config import Config
from mobula.actors.link.interface import Reply
from mobula.actors.link.method import Message, Method, Nothing
from mobula.actors.replica.assignments import Assignments
from mobula.actors.replica.log_directory import LogDirectory
from mobula.actors.replica.maintenance import Maintenance
from mobula.actors.replica.messages import (
    APPEND,
    DELETE_RECORDS,
    DESCRIBE_LOGS,
    EPOCH_END_OFFSETS,
    OFFSETS_FOR_TIMES,
    PULL,
)
from mobula.actors.replica.pull_loop import PullSettings
from mobula.actors.replica.reads import LogReads
from mobula.actors.replica.replica_manager import ReplicaManager, ReplicaSettings
from mobula.actors.rows import RowsWriter
from mobula.actors.runtime import Runtime
from mobula.actors.spec import rows_path
from mobula.storage.errors import StorageError

log = logging.getLogger(__name__)


class ReplicaActor:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        spec = runtime.spec
        self._config = Config(spec.config)
        self._directory = LogDirectory(Path(spec.data_dir), spec.local_name.rpartition("/")[2])
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="replica-disk")
        self._updates: deque[tuple[MetadataUpdate, Reply]] = deque()
        self._applying: Iterator[None] | None = None
        self._applied: list[Reply] = []
        """Of updates that are applied, and not answered yet."""
        self._all_open = False
        self._state = "new"
        self._rows: RowsWriter
        self._replicas: ReplicaManager
        self._assignments: Assignments
        self._maintenance: Maintenance

    async def start(self) -> None:
        """True after it: the actor waits for its first metadata update."""
        if self._state != "new":
            return
        self._state = "waiting for metadata"
        runtime, spec = self._runtime, self._runtime.spec
        self._directory.load()
        self._rows = RowsWriter(rows_path(spec.run_dir, spec.local_name), runtime.incarnation)
        self._replicas = ReplicaManager(
            self._settings(),
            scheduler=runtime.turn,
            clock=runtime.clock,
            link=runtime.link,
            rows=self._rows,
        )
        self._maintenance = Maintenance(
            replicas=self._replicas,
            directory=self._directory,
            scheduler=runtime.turn,
            background=self._in_background,
            wall_ms=runtime.clock.now_ms,
            retention_check_interval_ms=self._config.integer("log.retention.check.interval.ms"),
            isr_check_interval_ms=max(self._config.integer("replica.lag.time.max.ms") // 2, 1),
        )
        self._assignments = Assignments(
            name=spec.local_name,
            broker_id=spec.broker_id,
            ray_node_id=runtime.ray_node_id,
            config=self._config,
            replicas=self._replicas,
            directory=self._directory,
            wall_ms=runtime.clock.now_ms,
            remove_later=self._maintenance.remove_later,
            sweep_later=self._maintenance.sweep_later,
            on_noted=self._answer_applied,
        )
        runtime.serve(METADATA_UPDATE, self._metadata_update)
        runtime.serve(DRAIN, self._drain)

    async def stop(self) -> None:
        """Everything taken in is written, logs are closed and marked so."""
        if self._state in ("new", "stopped"):
            return
        if self._end_work():
            await self._runtime.loop.run_in_executor(self._threads, self._close_logs)
            self._state = "stopped"
        self._threads.shutdown()
        self._rows.close()

    def state(self) -> tuple[str, Mapping[str, int]]:
        if self._state == "new":
            return self._state, {"metadata_offset": -1}
        leaders = [p.leader for p in self._replicas if p.leader is not None]
        running = self._state == "running"
        return self._state, {
            # Of what is applied: before that this actor cannot be counted on.
            "metadata_offset": self._assignments.image.offset if running else -1,
            "partitions": len(self._replicas),
            "leaders": len(leaders),
            "followers": sum(p.follower is not None for p in self._replicas),
            "offline": sum(p.offline for p in self._replicas),
            "under_replicated": sum(len(each.isr) < len(each.replicas) for each in leaders),
        }

    def _settings(self) -> ReplicaSettings:
        spec, config = self._runtime.spec, self._config
        return ReplicaSettings(
            name=spec.local_name,
            broker_id=spec.broker_id,
            incarnation=self._runtime.incarnation,
            lag_time_max_ms=config.integer("replica.lag.time.max.ms"),
            partition_max_bytes=config.integer("replica.fetch.max.bytes"),
            pull=PullSettings(
                broker_id=spec.broker_id,
                max_bytes=config.integer("replica.fetch.response.max.bytes"),
                max_wait_ms=config.integer("replica.fetch.wait.max.ms"),
            ),
        )

    def _metadata_update(self, message: MetadataUpdate, _bulk: memoryview, reply: Reply) -> None:
        self._updates.append((message, reply))
        if self._applying is None:
            self._next_update()

    def _next_update(self) -> None:
        self._applying = None
        if self._updates and self._state in ("waiting for metadata", "running"):
            self._applying = self._assignments.apply(self._updates[0][0])
            self._apply_step()

    def _apply_step(self) -> None:
        """Updates are applied one after the other, in steps, so that pulls go on meanwhile."""
        assert self._applying is not None
        if self._state in ("draining", "stopped"):
            while self._updates:
                self._updates.popleft()[1].fail("the replica actor is stopping")
            return
        try:
            done = next(self._applying, _DONE) is _DONE
        except Exception:
            log.exception("metadata could not be applied")
            self._runtime.die("a metadata update could not be applied")
            return
        if not done:
            self._runtime.loop.call_soon(self._apply_step)
            return
        if self._state == "waiting for metadata":
            self._serve()
        self._applied.append(self._updates.popleft()[1])
        self._answer_applied()
        self._next_update()

    def _answer_applied(self) -> None:
        """Not before the controller knows what was lost here: by the answer the broker counts
        as one that serves, and others may leave the ISR in its favour."""
        if self._assignments.losses_noted():
            applied, self._applied = self._applied, []
            for reply in applied:
                reply(Nothing())

    def _serve(self) -> None:
        self._state = "running"
        replicas, reads = self._replicas, LogReads(self._replicas)
        serve = self._runtime.serve
        serve(APPEND, replicas.append)
        serve(PULL, replicas.pull)
        serve(OFFSETS_FOR_TIMES, _answering(reads.offsets_for_times))
        serve(EPOCH_END_OFFSETS, _answering(reads.epoch_end_offsets))
        serve(DELETE_RECORDS, _answering(reads.delete_records))
        serve(DESCRIBE_LOGS, _answering(lambda _: reads.describe_logs()))
        self._maintenance.start()
        log.info("logs are open partitions=%d", len(replicas))

    def _drain(self, _message: Drain, _bulk: memoryview, reply: Reply) -> None:
        if not self._end_work():
            reply(Nothing())
            return

        def closed(_: None) -> None:
            self._state = "stopped"
            reply(Nothing())

        self._in_background(self._close_logs, closed)

    def _end_work(self) -> bool:
        """Take nothing more in. False when it was done before."""
        if self._state in ("draining", "stopped"):
            return False
        self._all_open = self._state == "running"
        self._state = "draining"
        for method in _SERVED:
            self._runtime.serve(method, _refuse)
        self._maintenance.stop()
        self._replicas.close()
        while self._applied:
            self._applied.pop().fail("the replica actor is stopping")
        return True

    def _close_logs(self) -> None:
        """In another thread; nothing else touches the logs any more."""
        clean = True
        for partition in self._replicas:
            try:
                if not partition.offline:
                    partition.log.close()
            except StorageError as error:
                clean = False
                log.error("log not closed partition=%s reason=%s", partition.name, error.detail)
        if not self._all_open:
            # The checkpoints know of logs that were not opened yet: they stay as they are.
            return
        try:
            self._directory.checkpoint(self._replicas).write()
            if clean:
                self._directory.mark_clean()
        except OSError as error:
            log.error("offsets not written at the end reason=%s", error)

    def _in_background(
        self, work: Callable[[], Any], done: Callable[[Any], None] = lambda _: None
    ) -> None:
        future = self._runtime.loop.run_in_executor(self._threads, work)
        future.add_done_callback(lambda finished: done(finished.result()))


def _answering(answer: Callable[[Any], Message]) -> Callable[[Any, memoryview, Reply], None]:
    def handle(message: Any, _bulk: memoryview, reply: Reply) -> None:
        reply(answer(message))

    return handle


def _refuse(_message: Message, _bulk: memoryview, reply: Reply) -> None:
    reply.fail("the replica actor is stopping")


_DONE = object()
_SERVED: tuple[Method[Any, Any], ...] = (
    APPEND,
    PULL,
    OFFSETS_FOR_TIMES,
    EPOCH_END_OFFSETS,
    DELETE_RECORDS,
    DESCRIBE_LOGS,
)
