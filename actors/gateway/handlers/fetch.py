"""Fetch (key 1, v4-18).

Behaviour: records from partitions that this broker leads, read by the gateway itself. A
fetch that has enough is answered without a call to any actor; one that must wait is parked
in the purgatory, with the position of each of its partitions, and read again when the
purgatory says so or its time is over. The first batch is returned even when it is larger
than the limits. A fetch with a replica id is a consumer's like any other: it moves no high
watermark, for followers pull on links, and reads nothing past it.
Versions: v5 log start offset; v6 KAFKA_STORAGE_ERROR; v7 sessions (KIP-227); v9 leader
epochs; v10 zstd, which older ones get as it is; v11 preferred replica, which is always none;
v12 diverging epochs; v13 topic ids (KIP-516); v16 current leader and its endpoint (KIP-951).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from mobula.actors.gateway.ask_replicas import ask_replicas
from mobula.actors.gateway.fetch_session import (
    FetchContext,
    PartitionAnswer,
    SessionPartition,
)
from mobula.actors.gateway.leadership import current_leader
from mobula.actors.gateway.log_reader import FetchLimits
from mobula.actors.gateway.request import Request
from mobula.actors.gateway.services import Services
from mobula.actors.link.interface import LinkError
from mobula.actors.purgatory.messages import WATCH_FETCH, FetchDone, FetchPart, WatchFetch
from mobula.actors.replica.messages import (
    EPOCH_END_OFFSETS,
    EpochEndOffsets,
    PartitionEpoch,
    PartitionEpochEnd,
)
from mobula.actors.rows import Row
from mobula.protocol.api import Api, ApiKey
from mobula.protocol.endpoints import NodeEndpoint
from mobula.protocol.errors import ErrorCode
from mobula.protocol.fetch import (
    VERSIONS,
    FetchPartitionResponse,
    FetchRequest,
    FetchTopicResponse,
    decode_fetch_request,
    encode_fetch_response,
)

API = Api(ApiKey.FETCH, VERSIONS)

READ_COMMITTED = 1
_LAST_WITHOUT_STORAGE_ERROR = 5
_FIRST_WITH_ENDPOINTS = 16
_GRACE_MS = 1_000
"""What the purgatory's answer may be late by before it counts as lost."""

_STORAGE = int(ErrorCode.kafka_storage_error)
_NOT_LEADER = int(ErrorCode.not_leader_or_follower)
_FENCED = int(ErrorCode.fenced_leader_epoch)
_OUT_OF_RANGE = int(ErrorCode.offset_out_of_range)


def handle(request: Request, services: Services) -> None:
    version = request.header.api_version
    asked = decode_fetch_request(version, request.body)
    now_ms = services.runtime.clock.monotonic_ms()
    context = services.fetch_sessions.context(version, asked, now_ms)
    fetching = _Fetching(request, services, asked, context)
    if fetching.by_epoch:
        fetching.ask_epochs(fetching.first_read)
    else:
        fetching.first_read()


class _Fetching:
    """One fetch, from its first read to its answer."""

    __slots__ = (
        "_answers",
        "_asked",
        "_context",
        "_ends",
        "_max_bytes",
        "_min_bytes",
        "_request",
        "_services",
        "_urgent",
        "by_epoch",
    )

    def __init__(
        self, request: Request, services: Services, asked: FetchRequest, context: FetchContext
    ) -> None:
        self._request = request
        self._services = services
        self._asked = asked
        self._context = context
        self._max_bytes = min(asked.max_bytes, services.config.integer("fetch.max.bytes"))
        self._min_bytes = min(asked.min_bytes, self._max_bytes)
        self._answers: list[PartitionAnswer] = []
        self._urgent = False
        """There is something to say at once: an error, or a log that diverged."""
        self._ends: dict[SessionPartition, PartitionEpochEnd] = {}
        self.by_epoch = [part for part in context.partitions if part.last_fetched_epoch >= 0]
        """Whoever says what epoch it read last wants to know whether the logs diverge."""

    def first_read(self) -> None:
        found_bytes = self._read()
        asked = self._asked
        if (
            found_bytes >= self._min_bytes
            or self._urgent
            or asked.max_wait_ms <= 0
            or not self._park()
        ):
            self._respond()

    def _read(self) -> int:
        """Read all partitions, in order; returns how many bytes of records there are."""
        asked = self._asked
        limits = FetchLimits(
            self._max_bytes, read_committed=asked.isolation_level == READ_COMMITTED
        )
        logs = self._services.logs
        logs.refresh()
        read, diverging = logs.read, self._diverging if self._ends else None
        self._answers = answers = []
        urgent = False
        found_bytes = 0
        for part in self._context.partitions:
            answer = diverging(part) if diverging is not None else None
            if answer is None:
                answer = read(part, limits)
            found_bytes += len(answer.records)
            if answer.urgent:
                urgent = True
            answers.append(answer)
        self._urgent = urgent
        return found_bytes

    def _park(self) -> bool:
        """Wait in the purgatory. False when there is nothing to wait for."""
        parts = [
            answer.watch or _watch(answer, answer.row)
            for answer in self._answers
            if answer.row is not None
        ]
        if not parts:
            return False
        asked, request = self._asked, self._request
        committed = asked.isolation_level == READ_COMMITTED
        # What was read so far is read again: nothing is held in memory while it waits.
        self._answers = []
        request.release_records()
        link = self._services.purgatory
        handle = link.call(
            WATCH_FETCH,
            WatchFetch(asked.max_wait_ms, self._min_bytes, committed, parts),
            self._woken,
            self._not_woken,
            timeout_ms=asked.max_wait_ms + _GRACE_MS,
        )
        request.on_abandoned = partial(link.cancel, handle)
        return True

    def _woken(self, _done: FetchDone, _bulk: memoryview) -> None:
        self._request.resume(self._last_read)

    def _not_woken(self, _error: LinkError) -> None:
        # The purgatory died: whatever is there now is an answer, and the client fetches on.
        self._request.resume(self._last_read)

    def _last_read(self) -> None:
        if self.by_epoch:
            self.ask_epochs(self._read_and_respond)
        else:
            self._read_and_respond()

    def _read_and_respond(self) -> None:
        self._read()
        self._respond()

    def ask_epochs(self, then: Callable[[], None]) -> None:
        """Find out where the epochs end that the client read last; go on with `then`."""
        logs = self._services.logs
        logs.refresh()
        known = [part for part in self.by_epoch if not logs.resolve(part)]
        questions = [
            PartitionEpoch(
                part.log.topic_id,
                part.partition,
                max(part.current_leader_epoch, -1),
                part.last_fetched_epoch,
            )
            for part in known
            if part.log is not None
        ]

        def found(ends: list[PartitionEpochEnd]) -> None:
            self._ends = dict(zip(known, ends, strict=True))
            then()

        ask_replicas(
            self._request,
            self._services,
            EPOCH_END_OFFSETS,
            questions,
            message=EpochEndOffsets,
            failed=PartitionEpochEnd,
            on_done=found,
        )

    def _diverging(self, part: SessionPartition) -> PartitionAnswer | None:
        """None when the client's log is a prefix of ours, or nothing is known of that."""
        end = self._ends.get(part)
        if end is None:
            return None
        if end.error_code:
            return PartitionAnswer(part, end.error_code, None, urgent=True)
        if end.leader_epoch < 0 or end.end_offset < 0:
            return PartitionAnswer(part, _OUT_OF_RANGE, None, urgent=True)
        if end.leader_epoch >= part.last_fetched_epoch and end.end_offset >= part.fetch_offset:
            return None
        row = None if part.log is None else part.log.row()
        if row is None or part.fetch_offset < row.log_start_offset:
            return None
        answer = PartitionAnswer(part, 0, row, urgent=True)
        answer.diverging = (end.leader_epoch, end.end_offset)
        return answer

    def _respond(self) -> None:
        version = self._request.header.api_version
        now_ms = self._services.runtime.clock.monotonic_ms()
        error_code, session_id, told = self._context.settle(self._answers, now_ms)
        endpoints: dict[int, NodeEndpoint] = {}
        topics: list[FetchTopicResponse] = []
        partitions: list[FetchPartitionResponse] = []
        last: str | bytes | None = None
        for answer in told:
            topic = answer.part.key[0]
            if topic != last:
                last = topic
                partitions = []
                if isinstance(topic, bytes):
                    topics.append((None, topic, partitions))
                else:
                    topics.append((topic, None, partitions))
            partitions.append(self._partition(answer, endpoints))
        body = encode_fetch_response(
            version,
            topics,
            error_code=error_code,
            session_id=session_id,
            node_endpoints=list(endpoints.values()),
        )
        self._request.respond(*body)

    def _partition(
        self, answer: PartitionAnswer, endpoints: dict[int, NodeEndpoint]
    ) -> FetchPartitionResponse:
        row = answer.row
        if row is None or answer.error_code:
            return self._failed(answer, endpoints)
        return FetchPartitionResponse(
            answer.part.partition,
            0,
            row.high_watermark,
            row.last_stable_offset,
            row.log_start_offset,
            answer.records,
            () if self._asked.isolation_level == READ_COMMITTED else None,
            -1,
            answer.diverging,
        )

    def _failed(
        self, answer: PartitionAnswer, endpoints: dict[int, NodeEndpoint]
    ) -> FetchPartitionResponse:
        part, code = answer.part, answer.error_code
        version = self._request.header.api_version
        if code == _STORAGE and version <= _LAST_WITHOUT_STORAGE_ERROR:
            code = _NOT_LEADER
        leader = None
        if version >= _FIRST_WITH_ENDPOINTS and code in (_NOT_LEADER, _FENCED) and part.log:
            listener = self._request.context.listener
            hint = current_leader(self._services.image, part.log.state, part.log.row(), listener)
            if hint is not None:
                leader, node = hint
                if node is not None:
                    endpoints[node.node_id] = node
        aborted = None if part.log else ()
        return FetchPartitionResponse(
            part.partition, code, aborted_transactions=aborted, current_leader=leader
        )


def _watch(answer: PartitionAnswer, row: Row) -> FetchPart:
    part = answer.part
    answer.watch = FetchPart(
        row.topic_id,
        part.partition,
        row.leader_epoch,
        part.fetch_offset,
        answer.segment,
        answer.position,
        row.generation,
        part.max_bytes,
    )
    return answer.watch
