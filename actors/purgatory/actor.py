"""The purgatory actor: the shell around the core. It owns the clock, the links' replies
and the one timer; it decides nothing.

After a restart it holds nothing: its callers' calls failed with the link, and they watch
again. It completes nothing by its rows before it has the metadata.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from functools import partial

from mobula.actors.broker.messages import DRAIN, METADATA_UPDATE, Drain, MetadataUpdate
from mobula.actors.link.interface import Reply
from mobula.actors.link.method import Nothing
from mobula.actors.metadata.image import MetadataImage
from mobula.actors.metadata.records import PartitionChanged, TopicRemoved, decode_record
from mobula.actors.purgatory.core import PurgatoryCore
from mobula.actors.purgatory.delayed_delete_records import DelayedDeleteRecords
from mobula.actors.purgatory.delayed_fetch import DelayedFetch
from mobula.actors.purgatory.delayed_operation import DelayedOperation, Watchers
from mobula.actors.purgatory.delayed_produce import DelayedProduce
from mobula.actors.purgatory.messages import (
    PARTITIONS_CHANGED,
    WATCH_DELETE_RECORDS,
    WATCH_FETCH,
    WATCH_PRODUCE,
    PartitionsChanged,
    WatchDeleteRecords,
    WatchFetch,
    WatchProduce,
)
from mobula.actors.purgatory.partitions import PlacedRows
from mobula.actors.runtime import Runtime

logger = logging.getLogger(__name__)

_RECHECK_DELAYS_MS = (0, 50, 100, 200, 400, 800, 1600, 3200, 6400)
"""When to look at everything again after this actor or a replica actor came up: a notice
sent before their links stood was lost, and nothing else would tell."""


class PurgatoryActor:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._loop = runtime.loop
        self._now_ms = runtime.clock.monotonic_ms
        self._image = MetadataImage()
        self._partitions = PlacedRows(runtime, self._recheck_soon)
        self._core = PurgatoryCore(self._partitions, self._now_ms())
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0
        self._recheck: asyncio.TimerHandle | None = None
        self._rechecks = 0
        self._started = False

    async def start(self) -> None:
        if self._started:
            return
        self._started = True
        serve = self._runtime.serve
        serve(WATCH_PRODUCE, self._watch_produce)
        serve(WATCH_FETCH, self._watch_fetch)
        serve(WATCH_DELETE_RECORDS, self._watch_delete_records)
        serve(PARTITIONS_CHANGED, self._partitions_changed)
        serve(METADATA_UPDATE, self._metadata_update)
        serve(DRAIN, self._drain)
        self._recheck_soon()

    async def stop(self) -> None:
        """Whatever still waits is answered as it stands."""
        self._answer(self._core.drain())
        for handle in (self._timer, self._recheck):
            if handle is not None:
                handle.cancel()
        self._timer = self._recheck = None

    def state(self) -> tuple[str, Mapping[str, int]]:
        if self._core.draining:
            word = "draining"
        else:
            word = "running" if self._core.judging else "waiting for metadata"
        return word, self._core.counters()

    def _watch_produce(self, message: WatchProduce, bulk: memoryview, reply: Reply) -> None:
        deadline_ms = self._now_ms() + message.timeout_ms
        self._watch(self._core.produce, DelayedProduce(message.parts, deadline_ms, reply))

    def _watch_fetch(self, message: WatchFetch, bulk: memoryview, reply: Reply) -> None:
        deadline_ms = self._now_ms() + message.max_wait_ms
        self._watch(self._core.fetch, DelayedFetch(message, deadline_ms, reply))

    def _watch_delete_records(
        self, message: WatchDeleteRecords, bulk: memoryview, reply: Reply
    ) -> None:
        deadline_ms = self._now_ms() + message.timeout_ms
        operation = DelayedDeleteRecords(message.parts, deadline_ms, reply)
        self._watch(self._core.delete_records, operation)

    def _watch(self, watchers: Watchers, operation: DelayedOperation) -> None:
        reply = operation.reply
        assert reply is not None
        if self._core.try_complete_else_watch(watchers, operation):
            operation.reply = None
            reply(operation.outcome())
            return
        reply.on_cancel = partial(self._cancelled, operation)
        if self._timer is None or operation.deadline_ms < self._timer_ms:
            self._set_timer(operation.deadline_ms)

    def _cancelled(self, operation: DelayedOperation) -> None:
        operation.reply = None
        self._core.forget(operation)

    def _partitions_changed(
        self, message: PartitionsChanged, bulk: memoryview, reply: Reply
    ) -> None:
        check = self._core.check_and_complete
        for change in message.changes:
            done = check((change.topic_id, change.partition))
            if done:
                self._answer(done)

    def _answer(self, operations: Iterable[DelayedOperation]) -> None:
        for operation in operations:
            reply = operation.reply
            if reply is not None:
                operation.reply = None
                reply(operation.outcome())

    def _set_timer(self, deadline_ms: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_ms = deadline_ms
        delay_ms = max(deadline_ms - self._now_ms(), 0)
        self._timer = self._loop.call_later(delay_ms / 1000, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._answer(self._core.advance(self._now_ms()))
        next_ms = self._core.next_deadline_ms()
        if next_ms is not None:
            self._set_timer(next_ms)

    def _metadata_update(self, message: MetadataUpdate, bulk: memoryview, reply: Reply) -> None:
        records = [decode_record(record) for record in message.records]
        gone = [
            (record.topic_id, partition)
            for record in records
            if isinstance(record, TopicRemoved) and record.topic_id in self._image.topics
            for partition in self._image.topics[record.topic_id].partitions
        ]
        if message.snapshot:
            self._image = MetadataImage()
        self._image.replay_all(records)
        self._image.offset = message.offset
        self._partitions.use(self._image)
        if message.snapshot or not self._core.judging:
            self._core.judging = True
            self._answer(self._core.check_all())
        else:
            changed = [
                (record.topic_id, record.partition)
                for record in records
                if isinstance(record, PartitionChanged)
            ]
            for key in gone + changed:
                self._answer(self._core.check_and_complete(key))
        reply(Nothing())

    def _drain(self, message: Drain, bulk: memoryview, reply: Reply) -> None:
        done = self._core.drain()
        logger.info("the purgatory is drained; operations=%d", len(done))
        self._answer(done)
        reply(Nothing())

    def _recheck_soon(self) -> None:
        self._rechecks = 0
        if self._recheck is not None:
            self._recheck.cancel()
        self._recheck = self._loop.call_later(0, self._check_again)

    def _check_again(self) -> None:
        self._answer(self._core.check_all())
        self._rechecks += 1
        self._recheck = None
        if self._rechecks < len(_RECHECK_DELAYS_MS):
            delay_ms = _RECHECK_DELAYS_MS[self._rechecks]
            self._recheck = self._loop.call_later(delay_ms / 1000, self._check_again)
