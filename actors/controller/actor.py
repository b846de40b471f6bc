"""The controller actor: the shell around the core. It owns the metadata log, the clock and
the replies; it decides nothing.

Records are replayed as soon as they are decided; at the end of the turn of the loop all of
them go to disk together (one fsync), and only then do brokers get them and do the answers
that depend on them leave.

Invariant: nothing leaves this actor that a crash could undo. When the log cannot be
written the image is ahead of it, and the process ends.
"""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random, SystemRandom

from mobula.actors.config import Config
from mobula.actors.controller.controller_apis import ControllerApis
from mobula.actors.controller.core import ControllerCore
from mobula.actors.controller.messages import (
    ALLOCATE_PRODUCER_IDS,
    ALTER_PARTITION,
    ENVELOPE,
    HEARTBEAT,
    PULL_METADATA,
    REGISTER_BROKER,
    REPLICA_ACTOR_STATE,
    AllocateProducerIds,
    AlterPartition,
    Envelope,
    Heartbeat,
    PullMetadata,
    RegisterBroker,
    ReplicaActorState,
)
from mobula.actors.controller.metadata_feed import MetadataFeed
from mobula.actors.controller.metadata_log import FOLDER, MetadataLog
from mobula.actors.controller.parked_pulls import ParkedPulls
from mobula.actors.controller.partitions import MAX_ELECTIONS
from mobula.actors.controller.topics import random_uuid
from mobula.actors.link.interface import Buffer, Reply
from mobula.actors.link.method import Message
from mobula.actors.metadata.image import MetadataImage
from mobula.actors.metadata.records import ClusterCreated, Record, decode_record, encode_record
from mobula.actors.runtime import Runtime
from mobula.storage.dir_lock import DirectoryLock

log = logging.getLogger(__name__)

SNAPSHOT_RECORDS = 20_000
_MAX_TICK_MS = 500


class _Waiting:
    """An answer that may leave once what it says is on disk."""

    __slots__ = ("bulk", "message", "reply")

    def __init__(self, reply: Reply, message: Message, bulk: Sequence[Buffer]) -> None:
        self.reply: Reply | None = reply
        self.message = message
        self.bulk = bulk
        reply.on_cancel = self._drop

    def send(self) -> None:
        if self.reply is not None:
            self.reply.on_cancel = None
            self.reply(self.message, self.bulk)

    def _drop(self) -> None:
        self.reply = None


class ControllerActor:
    def __init__(self, runtime: Runtime, random: Random | None = None) -> None:
        self._runtime = runtime
        self._loop = runtime.loop
        self._now_ms = runtime.clock.monotonic_ms
        self._config = Config(runtime.spec.config)
        self._random = random or SystemRandom()
        self._state = "starting"
        self._lock: DirectoryLock | None = None
        self._log = MetadataLog(Path(runtime.spec.data_dir) / FOLDER)
        session_ms = self._config.integer("broker.session.timeout.ms")
        self._tick_ms = max(1, min(_MAX_TICK_MS, session_ms // 4))
        self._balance_s = self._config.integer("leader.imbalance.check.interval.seconds")
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._uncommitted: list[bytes] = []
        self._waiting: list[_Waiting] = []
        self._flush_scheduled = False
        self._core: ControllerCore
        self._apis: ControllerApis
        self._feed: MetadataFeed
        self._pulls: ParkedPulls

    async def start(self) -> None:
        """True after it: everything that was ever committed is known, and calls are served."""
        if self._state != "starting":
            return
        data_dir = Path(self._runtime.spec.data_dir)
        data_dir.mkdir(parents=True, exist_ok=True)
        self._lock = DirectoryLock(data_dir)
        self._recover()
        self._state = "running"
        serve = self._runtime.serve
        serve(REGISTER_BROKER, self._register_broker)
        serve(HEARTBEAT, self._heartbeat)
        serve(PULL_METADATA, self._pull_metadata)
        serve(ENVELOPE, self._envelope)
        serve(ALTER_PARTITION, self._alter_partition)
        serve(REPLICA_ACTOR_STATE, self._replica_actor_state)
        serve(ALLOCATE_PRODUCER_IDS, self._allocate_producer_ids)
        self._tick()
        if self._config.boolean("auto.leader.rebalance.enable"):
            self._timers["balance"] = self._loop.call_later(self._balance_s, self._balance)

    async def stop(self) -> None:
        """What was decided is on disk and answered; the log is closed."""
        if self._state == "running":
            self._flush()
            self._pulls.give_up()
        self._state = "stopped"
        for timer in self._timers.values():
            timer.cancel()
        self._log.close()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def state(self) -> tuple[str, Mapping[str, int]]:
        if self._state != "running":
            return self._state, {}
        return self._state, self._core.counts()

    def _recover(self) -> None:
        found = self._log.open()
        image = MetadataImage()
        image.replay_all(decode_record(record) for record in found.snapshot)
        image.offset = found.snapshot_offset
        image.replay_all(decode_record(record) for record in found.records)
        records = found.records
        if not image.cluster_id:
            created = ClusterCreated(_new_cluster_id(self._random))
            records = [encode_record(created)]
            self._log.commit(records)
            image.replay(created)
        self._core = ControllerCore(image, self._config, self._random, self._now_ms())
        self._apis = ControllerApis(self._core)
        self._feed = MetadataFeed(image, records)
        self._pulls = ParkedPulls(self._loop, self._feed)
        log.info(
            "controller starts cluster_id=%s metadata_offset=%d topics=%d brokers=%d",
            image.cluster_id,
            image.offset,
            len(image.topics),
            len(image.brokers),
        )

    def _register_broker(self, message: RegisterBroker, _bulk: memoryview, reply: Reply) -> None:
        self._commit(*self._core.register_broker(message, self._now_ms()), reply)

    def _heartbeat(self, message: Heartbeat, _bulk: memoryview, reply: Reply) -> None:
        self._commit(*self._core.heartbeat(message, self._now_ms()), reply)

    def _alter_partition(self, message: AlterPartition, _bulk: memoryview, reply: Reply) -> None:
        self._commit(*self._core.alter_partition(message), reply)

    def _replica_actor_state(
        self, message: ReplicaActorState, _bulk: memoryview, reply: Reply
    ) -> None:
        self._commit(*self._core.replica_actor_state(message), reply)

    def _allocate_producer_ids(
        self, message: AllocateProducerIds, _bulk: memoryview, reply: Reply
    ) -> None:
        self._commit(*self._core.allocate_producer_ids(message), reply)

    def _envelope(self, message: Envelope, bulk: memoryview, reply: Reply) -> None:
        records, answer = self._apis.handle(message, bulk)
        self._commit(records, answer.message, reply, (answer.body,))

    def _pull_metadata(self, message: PullMetadata, _bulk: memoryview, reply: Reply) -> None:
        self._core.metadata_pulled(message.broker_id, message.offset)
        self._pulls.take(message, reply, now=not self._uncommitted)

    def _commit(
        self,
        records: Sequence[Record],
        message: Message,
        reply: Reply,
        bulk: Sequence[Buffer] = (),
    ) -> None:
        self._decided(records)
        if self._uncommitted:
            self._waiting.append(_Waiting(reply, message, bulk))
        else:
            reply(message, bulk)

    def _decided(self, records: Sequence[Record]) -> None:
        encoded = [encode_record(record) for record in records]
        try:
            for record in records:
                self._core.replay(record)
        except Exception:
            self._fail("a record could not be replayed")
            raise
        self._uncommitted += encoded
        if self._uncommitted and not self._flush_scheduled:
            self._flush_scheduled = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flush_scheduled = False
        if not self._uncommitted or self._state != "running":
            return
        try:
            self._log.commit(self._uncommitted)
        except OSError as error:
            self._fail(f"the metadata log cannot be written: {error}")
            return
        self._feed.committed(self._uncommitted)
        self._uncommitted = []
        # Brokers first: a client that hears of its new topic will ask one of them for it.
        self._pulls.answer()
        waiting, self._waiting = self._waiting, []
        for answer in waiting:
            answer.send()
        if self._log.wants_snapshot(SNAPSHOT_RECORDS):
            self._snapshot()

    def _snapshot(self) -> None:
        try:
            self._log.snapshot([encode_record(r) for r in self._core.image.snapshot()])
        except OSError as error:
            self._fail(f"the metadata snapshot cannot be written: {error}")

    def _fail(self, reason: str) -> None:
        """What the image says and what the log says differ: only a new life can tell."""
        self._state = "failed"
        self._runtime.die(reason)

    def _tick(self) -> None:
        self._timers["tick"] = self._loop.call_later(self._tick_ms / 1000, self._tick)
        now_ms = self._now_ms()
        self._core.tick(now_ms, self._tick_ms)
        self._decided(self._core.fence_stale(now_ms))

    def _balance(self) -> None:
        records = self._core.balance_leaders()
        # What is left comes with a later commit, so that none grows too long.
        delay_s = self._tick_ms / 1000 if len(records) == MAX_ELECTIONS else self._balance_s
        self._timers["balance"] = self._loop.call_later(delay_s, self._balance)
        self._decided(records)


def _new_cluster_id(random: Random) -> str:
    """A UUID in 22 characters, as Kafka writes it; never with a leading dash, which would
    look like an option on a command line."""
    while True:
        text = base64.urlsafe_b64encode(random_uuid(random)).decode().rstrip("=")
        if not text.startswith("-"):
            return text
