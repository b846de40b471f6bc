"""Produce (key 0, advertised v0-13, served v3-13).

Behaviour: each partition's one batch is checked here without touching its records, and
all batches for one replica actor go there in one append. acks=0: nothing is answered, an
error closes the connection; acks=1: answered when appended; acks=-1: when enough replicas
have it, by the replica actor's word or else the purgatory's (see `awaited_acks`). One bad
partition never fails the others. Transactions are refused with
UNSUPPORTED_VERSION (why: see InitProducerId).
Versions: v0-2 are advertised because old librdkafka compresses only where it sees them,
and close the connection; v4 knows KAFKA_STORAGE_ERROR, v7 zstd; v8 names the records that
keep a batch out (KIP-467); v10 names the current leader (KIP-951); v13 has topic ids (KIP-516).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from mobula.actors.gateway.ask_replicas import TIMEOUT_MS
from mobula.actors.gateway.awaited_acks import Key
from mobula.actors.gateway.leadership import current_leader
from mobula.actors.gateway.replica_errors import replica_error
from mobula.actors.gateway.request import Request
from mobula.actors.gateway.services import Services
from mobula.actors.link.interface import Link, LinkError
from mobula.actors.purgatory.delayed_produce import produce_code
from mobula.actors.purgatory.messages import (
    WATCH_PRODUCE,
    ProduceDone,
    ProducePart,
    WatchProduce,
)
from mobula.actors.replica.messages import (
    APPEND,
    Append,
    Appended,
    Origin,
    PartitionAppend,
    PartitionAppended,
)
from mobula.actors.rows import RowsReader
from mobula.protocol.api import Api, ApiKey
from mobula.protocol.endpoints import NodeEndpoint
from mobula.protocol.errors import ErrorCode, KafkaError
from mobula.protocol.produce import (
    PartitionResponse,
    TopicData,
    decode_produce_request,
    encode_produce_response,
)
from mobula.storage.batch import CODEC_MASK, TRANSACTIONAL_FLAG, validate_client_batch

if TYPE_CHECKING:
    import asyncio

API = Api(ApiKey.PRODUCE, range(14), served=range(3, 14))

_NO_ACKS: Final = 0
_LEADER_ACKS: Final = 1
_ALL_ACKS: Final = -1
_CLIENT: Final = int(Origin.CLIENT)
_ZSTD: Final = 4
_FIRST_WITH_STORAGE_ERROR: Final = 4
_FIRST_WITH_ZSTD: Final = 7
_FIRST_WITH_LEADER: Final = 10
_PURGATORY_GRACE_MS: Final = 5_000
"""The purgatory itself ends what it holds in time; its link may take this much longer."""
_WATCH_AGAIN_S: Final = 0.05

_OK: Final = int(ErrorCode.none)
_NOT_LEADER: Final = int(ErrorCode.not_leader_or_follower)
_STORAGE: Final = int(ErrorCode.kafka_storage_error)
_TIMED_OUT: Final = int(ErrorCode.request_timed_out)


def handle(request: Request, services: Services) -> None:
    version = request.header.api_version
    asked = decode_produce_request(version, request.body)
    if asked.transactional_id is not None:
        raise KafkaError(ErrorCode.unsupported_version, "transactions are not supported yet")
    if asked.acks not in (_ALL_ACKS, _LEADER_ACKS, _NO_ACKS):
        raise KafkaError(ErrorCode.invalid_required_acks)
    _Produce(request, services, asked.acks, asked.timeout_ms).start(asked.topics)


class _Append:
    """The one append of a request to one replica actor."""

    __slots__ = ("batches", "parts", "positions", "produce", "rows")

    def __init__(self, produce: _Produce, rows: RowsReader) -> None:
        self.produce = produce
        self.rows = rows
        """That the replica actor publishes."""
        self.positions: list[int] = []
        """Of its partitions among the request's."""
        self.parts: list[PartitionAppend] = []
        self.batches: list[memoryview] = []

    def send(self, link: Link) -> None:
        batches, self.batches = self.batches, []
        link.call(
            APPEND,
            Append(self.produce.acks, _CLIENT, self.parts),
            self.answered,
            self.unanswered,
            bulk=batches,
            timeout_ms=TIMEOUT_MS,
        )

    def answered(self, reply: Appended, _bulk: memoryview) -> None:
        self.produce.request.resume(self.produce.appended, self, reply.parts)

    def unanswered(self, error: LinkError) -> None:
        failed = PartitionAppended(int(replica_error(error)))
        self.produce.request.resume(self.produce.appended, self, [failed] * len(self.parts))


class _Produce:
    __slots__ = (
        "_again",
        "_appends_under_way",
        "_deadline_ms",
        "_endpoints",
        "_results",
        "_services",
        "_settled",
        "_topics",
        "_watch",
        "_watched",
        "_watched_positions",
        "_watched_rows",
        "acks",
        "request",
        "sweep",
        "timeout_ms",
    )

    def __init__(self, request: Request, services: Services, acks: int, timeout_ms: int) -> None:
        self.request = request
        self.acks = acks
        self._services = services
        self.timeout_ms = timeout_ms if timeout_ms > 0 else 0
        self.sweep = 0
        self._topics: list[tuple[str | None, bytes | None, int]] = []
        """As the request named them, and where the partitions of each end in `_results`."""
        self._results: list[PartitionResponse] = []
        self._endpoints: dict[int, NodeEndpoint] = {}
        """Of the leaders that some partition's error names."""
        self._appends_under_way = 0
        self._watched: list[ProducePart] = []
        self._watched_positions: list[int] = []
        self._watched_rows: list[RowsReader] = []
        self._settled = 0
        """So many of the watched were found replicated, in order."""
        self._deadline_ms = 0
        self._watch: int | None = None
        self._again: asyncio.TimerHandle | None = None

    def start(self, topics: list[TopicData]) -> None:
        """Check each batch, and send the good ones on."""
        services = self._services
        version = self.request.header.api_version
        known = services.produce_routes.known(services.image)
        results = self._results
        appends: dict[Link, _Append] = {}
        for name, topic_id, partitions in topics:
            topic = name if topic_id is None else topic_id
            assert topic is not None
            for index, records in partitions:
                try:
                    route = known.get((topic, index)) or services.produce_routes.find(
                        services, topic, index
                    )
                    if records is None:
                        raise KafkaError(ErrorCode.invalid_record, "no record batch")
                    attributes = validate_client_batch(records).attributes
                    if attributes:
                        _check_attributes(version, attributes)
                except KafkaError as error:
                    results.append(self._failed(topic, index, int(error.code), error.detail))
                    continue
                append = appends.get(route.link)
                if append is None:
                    append = appends[route.link] = _Append(self, route.rows)
                append.positions.append(len(results))
                append.parts.append(PartitionAppend(route.topic_id, index, len(records)))
                append.batches.append(records)
                results.append(_UNDER_WAY)
            self._topics.append((name, topic_id, len(results)))
        self._appends_under_way = len(appends)
        if not appends:
            self._respond()
            return
        self.request.holds_worker = True
        for link, append in appends.items():
            append.send(link)

    def appended(self, append: _Append, answers: list[PartitionAppended]) -> None:
        """One replica actor has answered."""
        for position, part, answer in zip(append.positions, append.parts, answers, strict=True):
            if answer.error_code == _OK:
                self._results[position] = PartitionResponse(
                    part.partition,
                    _OK,
                    answer.base_offset,
                    answer.log_append_time_ms,
                    answer.log_start_offset,
                )
                if answer.required_offset >= 0:
                    self._watched_positions.append(position)
                    self._watched_rows.append(append.rows)
                    self._watched.append(
                        ProducePart(
                            part.topic_id,
                            part.partition,
                            answer.leader_epoch,
                            answer.required_offset,
                        )
                    )
            else:
                self._results[position] = self._failed(
                    part.topic_id,
                    part.partition,
                    answer.error_code,
                    answer.detail,
                    answer.record_errors,
                )
        self._appends_under_way -= 1
        if self._appends_under_way:
            return
        self.request.release_records()
        self.request.local_done()
        if self.acks == _ALL_ACKS and self._watched:
            self._deadline_ms = self._services.runtime.clock.monotonic_ms() + self.timeout_ms
            self.request.on_abandoned = self._abandoned
            self._services.awaited_acks.add(self)
        else:
            self._respond()

    def advance(self) -> Key | None:
        """See `AckWait`. Only success is said from here."""
        if self.request.ended:
            return None
        watched = self._watched
        while self._settled < len(watched):
            part = watched[self._settled]
            row = self._watched_rows[self._settled].find(part.topic_id, part.partition)
            code = produce_code(part, row, _NOT_LEADER)
            if code is None:
                return part.topic_id, part.partition
            if code != _OK:
                self.to_purgatory()
                return None
            self._settled += 1
        self.request.resume(self._respond)
        return None

    def to_purgatory(self) -> None:
        self.request.resume(self._watch_rest)

    def _watch_rest(self) -> None:
        left_ms = self._deadline_ms - self._services.runtime.clock.monotonic_ms()
        self._send_watch(max(0, left_ms))

    def _send_watch(self, timeout_ms: int) -> None:
        self._watch = self._services.purgatory.call(
            WATCH_PRODUCE,
            WatchProduce(timeout_ms, self._watched),
            self._watch_answered,
            self._watch_unanswered,
            timeout_ms=timeout_ms + _PURGATORY_GRACE_MS,
        )

    def _watch_answered(self, reply: ProduceDone, _bulk: memoryview) -> None:
        self.request.resume(self._replicated, reply.error_codes)

    def _watch_unanswered(self, _error: LinkError) -> None:
        self.request.resume(self._purgatory_lost)

    def _replicated(self, codes: list[int]) -> None:
        for position, part, code in zip(self._watched_positions, self._watched, codes, strict=True):
            if code != _OK:
                self._settle(position, part, code)
        self._respond()

    def _settle(self, position: int, part: ProducePart, code: int) -> None:
        written = self._results[position]
        failed = self._failed(part.topic_id, part.partition, code, None)
        self._results[position] = PartitionResponse(
            part.partition,
            failed.error_code,
            written.base_offset,
            written.log_append_time_ms,
            written.log_start_offset,
            current_leader=failed.current_leader,
        )

    def _purgatory_lost(self) -> None:
        """It died with what it held: see for ourselves, and ask the next one for the rest."""
        now_ms = self._services.runtime.clock.monotonic_ms()
        parts: list[ProducePart] = []
        positions: list[int] = []
        for position, part in zip(self._watched_positions, self._watched, strict=True):
            row = self._services.row(part.topic_id, part.partition)
            code = None if row is None else produce_code(part, row, _NOT_LEADER)
            if code is None and now_ms < self._deadline_ms:
                parts.append(part)
                positions.append(position)
            elif code != _OK:
                self._settle(position, part, _TIMED_OUT if code is None else code)
        self._watched, self._watched_positions, self._watch = parts, positions, None
        if parts:
            self._again = self._services.runtime.loop.call_later(
                _WATCH_AGAIN_S, self.request.resume, self._watch_rest
            )
        else:
            self._respond()

    def _abandoned(self) -> None:
        if self._watch is not None:
            self._services.purgatory.cancel(self._watch)
        if self._again is not None:
            self._again.cancel()

    def _failed(
        self,
        topic: str | bytes,
        index: int,
        code: int,
        detail: str | None,
        record_errors: Sequence[tuple[int, str]] = (),
    ) -> PartitionResponse:
        version = self.request.header.api_version
        if code == _STORAGE and version < _FIRST_WITH_STORAGE_ERROR:
            code = _NOT_LEADER
        leader: tuple[int, int] | None = None
        if code == _NOT_LEADER and version >= _FIRST_WITH_LEADER:
            leader = self._current_leader(topic, index)
        return PartitionResponse(
            index,
            code,
            record_errors=record_errors,
            error_message=detail,
            current_leader=leader,
        )

    def _current_leader(self, topic: str | bytes, index: int) -> tuple[int, int] | None:
        image = self._services.image
        topic_id = image.topic_ids.get(topic) if isinstance(topic, str) else topic
        partition = None if topic_id is None else image.partition(topic_id, index)
        if topic_id is None or partition is None:
            return None
        row = self._services.row(topic_id, index)
        hint = current_leader(image, partition, row, self.request.context.listener)
        if hint is None:
            return None
        leader, endpoint = hint
        if endpoint is not None:
            self._endpoints[endpoint.node_id] = endpoint
        return leader

    def _respond(self) -> None:
        request = self.request
        if self.acks == _NO_ACKS:
            bad = next((result for result in self._results if result.error_code != _OK), None)
            if bad is None:
                request.no_response()
            else:
                request.close_connection(
                    f"{ErrorCode(bad.error_code).name} for a produce with acks=0"
                )
            return
        topics = []
        start = 0
        for name, topic_id, end in self._topics:
            if end > start:
                topics.append((name, topic_id, self._results[start:end]))
            start = end
        request.respond(
            encode_produce_response(
                request.header.api_version, topics, 0, tuple(self._endpoints.values())
            )
        )


_UNDER_WAY: Final = PartitionResponse(-1, int(ErrorCode.unknown_server_error))


def _check_attributes(version: int, attributes: int) -> None:
    """KafkaError when a client may not write such a batch in this version."""
    if attributes & CODEC_MASK == _ZSTD and version < _FIRST_WITH_ZSTD:
        raise KafkaError(
            ErrorCode.unsupported_compression_type, f"zstd needs Produce v7, this is v{version}"
        )
    if attributes & TRANSACTIONAL_FLAG:
        raise KafkaError(ErrorCode.unsupported_version, "transactions are not supported yet")
