"""Fetch sessions (KIP-227): what a client fetches, remembered between its requests.

A full fetch opens a session; incremental ones then name only partitions that changed, and
their answers leave out what did not. A session lives in one gateway, where the client's
connection is; a client that comes to another one hears FETCH_SESSION_ID_NOT_FOUND and
starts over.

Invariant: a session's epoch grows with each request it served, and a request with another
epoch changes nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from random import Random
from typing import TYPE_CHECKING, Final, TypeAlias

from mobula.actors.link.interface import Buffer
from mobula.actors.purgatory.messages import FetchPart
from mobula.actors.rows import Row
from mobula.protocol.errors import ErrorCode
from mobula.protocol.fetch import FetchPartition, FetchRequest

if TYPE_CHECKING:
    from mobula.actors.gateway.log_reader import PartitionLog

NO_SESSION: Final = 0
INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
FIRST_WITH_TOPIC_IDS: Final = 13
EVICTABLE_AFTER_MS: Final = 120_000
"""A session this old may be evicted by a larger one; unused for so long, by any."""

_MAX_INT = (1 << 31) - 1

PartitionKey: TypeAlias = tuple[str | bytes, int]
"""A topic's name or its id, as the client speaks, and the partition."""


def next_epoch(epoch: int) -> int:
    """After the largest comes 1: 0 opens a session."""
    return 1 if epoch == _MAX_INT else epoch + 1


class SessionPartition:
    """A partition as the client last asked for it, and what it was last told."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "high_watermark",
        "idle",
        "key",
        "last_fetched_epoch",
        "log",
        "log_start_offset",
        "max_bytes",
        "name",
        "partition",
    )

    def __init__(self, key: PartitionKey, asked: FetchPartition) -> None:
        self.key = key
        topic, self.partition = key
        self.name: str | None = topic if isinstance(topic, str) else None
        """None until a client that speaks in ids means a topic that is known."""
        self.high_watermark = -1
        self.log_start_offset = -1
        self.log: PartitionLog | None = None
        """Kept by the reader, so that the next fetch need not look it up."""
        self.asked(asked)

    def asked(self, asked: FetchPartition) -> None:
        self.idle: PartitionAnswer | None = None
        """The last answer, when there was nothing to read and nothing changed since."""
        self.fetch_offset = asked.fetch_offset
        self.max_bytes = asked.max_bytes
        self.current_leader_epoch = asked.current_leader_epoch
        self.last_fetched_epoch = asked.last_fetched_epoch


class PartitionAnswer:
    """What was found for one partition. `row` is None when there is only an error."""

    __slots__ = (
        "diverging",
        "error_code",
        "part",
        "position",
        "records",
        "row",
        "segment",
        "told",
        "urgent",
        "watch",
    )

    def __init__(
        self, part: SessionPartition, error_code: int, row: Row | None, *, urgent: bool = False
    ) -> None:
        self.part = part
        self.error_code = error_code
        self.row = row
        self.urgent = urgent
        """The request is to be answered at once."""
        self.records: Buffer = b""
        self.segment = -1
        self.position = -1
        """Where the fetch offset lies; -1 when that is not known."""
        self.diverging: tuple[int, int] | None = None
        self.told = False
        """The client knows all that is in it."""
        self.watch: FetchPart | None = None
        """What the purgatory is to watch, once it was asked to."""


class FetchSession:
    __slots__ = ("created_ms", "epoch", "id", "last_used_ms", "partitions", "uses_topic_ids")

    def __init__(
        self,
        session_id: int,
        partitions: dict[PartitionKey, SessionPartition],
        uses_topic_ids: bool,
        now_ms: int,
    ) -> None:
        self.id = session_id
        self.partitions = partitions
        """In the order in which they are served: who got records goes to the end."""
        self.uses_topic_ids = uses_topic_ids
        self.created_ms = self.last_used_ms = now_ms
        self.epoch = next_epoch(INITIAL_EPOCH)

    def update(self, request: FetchRequest) -> None:
        partitions = self.partitions
        for name, topic_id, asked_partitions in request.topics:
            topic = _topic(name, topic_id)
            for asked in asked_partitions:
                key = (topic, asked.index)
                known = partitions.get(key)
                if known is None:
                    partitions[key] = SessionPartition(key, asked)
                else:
                    known.asked(asked)
        for name, topic_id, indexes in request.forgotten:
            topic = _topic(name, topic_id)
            for index in indexes:
                partitions.pop((topic, index), None)


class FetchContext:
    """A request without a session, and the base of those with one."""

    __slots__ = ("error_code", "partitions")

    def __init__(self, partitions: list[SessionPartition], error_code: int = 0) -> None:
        self.partitions = partitions
        """To be served, in this order."""
        self.error_code = error_code
        """Of the whole request; there are no partitions then."""

    def settle(
        self, answers: list[PartitionAnswer], now_ms: int
    ) -> tuple[int, int, list[PartitionAnswer]]:
        """(error code, session id, what to answer). To be called once."""
        return self.error_code, NO_SESSION, answers


class FullFetchContext(FetchContext):
    """Opens a session when the cache has room."""

    __slots__ = ("_by_key", "_cache", "_uses_topic_ids")

    def __init__(
        self,
        cache: FetchSessionCache,
        by_key: dict[PartitionKey, SessionPartition],
        uses_topic_ids: bool,
    ) -> None:
        super().__init__(list(by_key.values()))
        self._cache = cache
        self._by_key = by_key
        self._uses_topic_ids = uses_topic_ids

    def settle(
        self, answers: list[PartitionAnswer], now_ms: int
    ) -> tuple[int, int, list[PartitionAnswer]]:
        for answer in answers:
            _remember(answer)
        session_id = self._cache.open(self._by_key, self._uses_topic_ids, now_ms)
        return 0, session_id, answers


class IncrementalFetchContext(FetchContext):
    __slots__ = ("_epoch", "_session")

    def __init__(self, session: FetchSession) -> None:
        super().__init__(list(session.partitions.values()))
        self._session = session
        self._epoch = session.epoch

    def settle(
        self, answers: list[PartitionAnswer], now_ms: int
    ) -> tuple[int, int, list[PartitionAnswer]]:
        session = self._session
        if session.epoch != self._epoch:
            # Another request of this session came while this one waited.
            return int(ErrorCode.invalid_fetch_session_epoch), session.id, []
        told = [answer for answer in answers if not answer.told and _remember(answer)]
        partitions = session.partitions
        for answer in told:
            if answer.records:
                key = answer.part.key
                partitions[key] = partitions.pop(key)
        return 0, session.id, told


def _remember(answer: PartitionAnswer) -> bool:
    """Whether the answer says something new to the client, who then knows it."""
    part, row = answer.part, answer.row
    if answer.error_code or row is None:
        # When the error goes away the partition is to be sent again.
        part.high_watermark = -1
        return True
    new = answer.diverging is not None
    if answer.records:
        new = True
    else:
        answer.told = not new
    if part.high_watermark != row.high_watermark:
        part.high_watermark = row.high_watermark
        new = True
    if part.log_start_offset != row.log_start_offset:
        part.log_start_offset = row.log_start_offset
        new = True
    return new


class FetchSessionCache:
    """The sessions of a gateway, at most `slots`.

    When there is no room, a new session takes the place of one that was not used for two
    minutes, or else of the smallest that is older than that and smaller than itself.
    """

    def __init__(self, slots: int, chance: Random) -> None:
        self._slots = slots
        self._chance = chance
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()
        """The least recently used first."""
        self.evictions = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, session_id: int) -> FetchSession | None:
        return self._sessions.get(session_id)

    def context(self, version: int, request: FetchRequest, now_ms: int) -> FetchContext:
        epoch = request.session_epoch
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            # A full request closes the session it names.
            self._sessions.pop(request.session_id, None)
            by_key = _by_key(request)
            if epoch == FINAL_EPOCH:
                return FetchContext(list(by_key.values()))
            return FullFetchContext(self, by_key, version >= FIRST_WITH_TOPIC_IDS)
        session = self._sessions.get(request.session_id)
        if session is None:
            return FetchContext([], int(ErrorCode.fetch_session_id_not_found))
        if session.epoch != epoch:
            return FetchContext([], int(ErrorCode.invalid_fetch_session_epoch))
        if session.uses_topic_ids != (version >= FIRST_WITH_TOPIC_IDS):
            return FetchContext([], int(ErrorCode.fetch_session_topic_id_error))
        session.update(request)
        if not session.partitions:
            del self._sessions[session.id]
            return FetchContext(list(_by_key(request).values()))
        session.last_used_ms = now_ms
        session.epoch = next_epoch(epoch)
        self._sessions.move_to_end(session.id)
        return IncrementalFetchContext(session)

    def open(
        self, partitions: dict[PartitionKey, SessionPartition], uses_topic_ids: bool, now_ms: int
    ) -> int:
        """A new session's id, or NO_SESSION when there is no room for it."""
        if len(self._sessions) >= self._slots and not self._evict(len(partitions), now_ms):
            return NO_SESSION
        session_id = NO_SESSION
        while session_id == NO_SESSION or session_id in self._sessions:
            session_id = self._chance.randint(1, _MAX_INT)
        self._sessions[session_id] = FetchSession(session_id, partitions, uses_topic_ids, now_ms)
        return session_id

    def _evict(self, size: int, now_ms: int) -> bool:
        if not self._sessions:
            return False
        victim = next(iter(self._sessions.values()))
        if now_ms - victim.last_used_ms <= EVICTABLE_AFTER_MS:
            settled = [
                session
                for session in self._sessions.values()
                if now_ms - session.created_ms > EVICTABLE_AFTER_MS
            ]
            if not settled:
                return False
            victim = min(settled, key=lambda session: len(session.partitions))
            if len(victim.partitions) >= size:
                return False
        del self._sessions[victim.id]
        self.evictions += 1
        return True


def _topic(name: str | None, topic_id: bytes | None) -> str | bytes:
    topic = name if topic_id is None else topic_id
    assert topic is not None
    return topic


def _by_key(request: FetchRequest) -> dict[PartitionKey, SessionPartition]:
    """A partition that is named twice is served once, as it was named last."""
    by_key: dict[PartitionKey, SessionPartition] = {}
    for name, topic_id, asked_partitions in request.topics:
        topic = _topic(name, topic_id)
        for asked in asked_partitions:
            key = (topic, asked.index)
            by_key[key] = SessionPartition(key, asked)
    return by_key
