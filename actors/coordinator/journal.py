"""A shard's records in its partition's log: appended through the replica actor, and read from
the files at the start.

Invariant: `done` of each append runs once, in the order of the appends unless one fails.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Generic, Protocol, TypeVar

from mobula.actors.coordinator.commits import Commits
from mobula.actors.coordinator.last_values import LastValues
from mobula.actors.coordinator.place import Place
from mobula.actors.coordinator.shard import Appended
from mobula.actors.gateway.replica_errors import replica_error
from mobula.actors.link.interface import LinkError
from mobula.actors.replica.messages import APPEND, Append, Origin, PartitionAppend
from mobula.actors.replica.messages import Appended as ReplicaAppended
from mobula.actors.rows import Row
from mobula.protocol.errors import ErrorCode, KafkaError
from mobula.storage.errors import StorageError
from mobula.storage.position import LogPosition
from mobula.storage.reader import PartitionReader, SegmentGoneError
from mobula.storage.records import NewRecord, build_batch

log = logging.getLogger(__name__)

RecordT = TypeVar("RecordT")

_APPEND_TIMEOUT_MS = 10_000
_ALL_ACKS = -1
_LOAD_BYTES = 1024 * 1024
_REPLAYED_AT_ONCE = 1_000
_LEADER_POLL_S = 0.02
_LEADER_POLLS = 3_000
"""A minute for the replica actor to become what the metadata says."""


class Codec(Protocol[RecordT]):
    """How the records of one kind of coordinator stand in the log."""

    def encode(self, record: RecordT) -> tuple[bytes, bytes | None]: ...

    def decode(self, key: bytes, value: bytes | None) -> RecordT | None:
        """ValueError: damaged. None: of a kind that is not known here."""


class PartitionJournal(Generic[RecordT]):
    def __init__(
        self,
        place: Place,
        codec: Codec[RecordT],
        commits: Commits,
        *,
        now_ms: Callable[[], int],
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        """`now_ms` is wall time."""
        self._place = place
        self._codec = codec
        self._commits = commits
        self._now_ms = now_ms
        self._spawn = spawn

    def append(self, records: Sequence[RecordT], done: Callable[[Appended], None]) -> None:
        now_ms = self._now_ms()
        encode = self._codec.encode
        batch = build_batch([NewRecord(now_ms, *encode(record)) for record in records])
        place = self._place

        def answered(reply: ReplicaAppended, _bulk: memoryview) -> None:
            part = reply.parts[0]
            if part.error_code:
                done(Appended(KafkaError(ErrorCode(part.error_code), part.detail)))
                return
            # Committed already or not: the row says, and those before it are asked first.
            self._commits.wait(
                place,
                part.base_offset + len(records),
                lambda error: done(Appended(error, part.base_offset)),
            )

        def unanswered(error: LinkError) -> None:
            done(Appended(KafkaError(replica_error(error), str(error))))

        part = PartitionAppend(place.topic_id, place.partition, len(batch))
        place.replica.call(
            APPEND,
            Append(_ALL_ACKS, int(Origin.COORDINATOR), [part]),
            answered,
            unanswered,
            bulk=[batch],
            timeout_ms=_APPEND_TIMEOUT_MS,
        )

    def can_append(self) -> bool:
        return self._place.has_enough_replicas()

    def load(
        self, take: Callable[[RecordT], None], done: Callable[[int | None], None]
    ) -> Callable[[], None]:
        loading = _Loading(self._place, self._codec, take, done)
        self._spawn(loading.run())
        return loading.give_up


class _Loading(Generic[RecordT]):
    def __init__(
        self,
        place: Place,
        codec: Codec[RecordT],
        take: Callable[[RecordT], None],
        done: Callable[[int | None], None],
    ) -> None:
        self._place = place
        self._codec = codec
        self._take = take
        self._done = done
        self._given_up = False

    def give_up(self) -> None:
        self._given_up = True

    async def run(self) -> None:
        row = await self._leading()
        next_offset: int | None = None
        if row is not None:
            try:
                next_offset = await self._read(row)
            except (OSError, SegmentGoneError, ValueError, KafkaError) as error:
                log.error(
                    "coordinator's log cannot be read folder=%s reason=%s",
                    self._place.directory,
                    error,
                )
        if not self._given_up:
            self._done(next_offset)

    async def _leading(self) -> Row | None:
        """The row, once the replica actor leads in the epoch that the metadata says."""
        for _ in range(_LEADER_POLLS):
            if self._given_up:
                return None
            row = self._place.row()
            if row is not None:
                return row
            await asyncio.sleep(_LEADER_POLL_S)
        log.warning("replica actor does not lead folder=%s", self._place.directory)
        return None

    async def _read(self, row: Row) -> int:
        """All that the leader has: what is not committed yet will be, for it leads."""
        found = LastValues()
        reader = PartitionReader(self._place.directory)
        upto = LogPosition(row.log_end_offset, row.log_end_segment, row.log_end_position)
        at = reader.locate(row.log_start_offset, upto)
        try:
            while at is not None and at.offset < upto.offset and not self._given_up:
                end, next_offset = found.add(reader.read_batches(at, upto, _LOAD_BYTES))
                if not end:
                    raise StorageError(f"no batch at {at}")
                # Found by its offset where the segment ends here.
                at = reader.locate(next_offset, upto)
                await asyncio.sleep(0)
        finally:
            reader.invalidate()
        if at is None:
            raise StorageError(f"no record at the start offset {row.log_start_offset}")
        await self._replay(found)
        return upto.offset

    async def _replay(self, found: LastValues) -> None:
        for count, (key, value) in enumerate(found):
            if count % _REPLAYED_AT_ONCE == 0:
                await asyncio.sleep(0)
                if self._given_up:
                    return
            record = self._codec.decode(key, value)
            if record is not None:
                self._take(record)
