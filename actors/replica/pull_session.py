"""The leader's side of pulls: one session per follower actor.

A session knows where the follower stands in each of its partitions, so a pull names only
those that moved, and an answer only those with something to say. The pull that opens a
session is answered at once. A later one with nothing to answer is parked; an append makes
it worth answering, once a turn. A high watermark that moved alone rides with the next
answer, which leaves at the latest when the pull has waited long enough.

Invariants: a partition that was answered with data says nothing more until the follower
has named it again. What is parked is answered or abandoned exactly once. A partition
without news costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from mobula.actors.link.interface import Reply
from mobula.actors.replica.messages import Pull, PullAnswer, Pulled, PulledPartition, Range
from mobula.protocol.errors import ErrorCode, KafkaError
from mobula.storage.log import LogRange

Key: TypeAlias = tuple[bytes, int]


class Source(Protocol):
    """A partition as sessions see it."""

    key: Key
    readers: list[SessionPartition]
    """Its places in sessions; kept by the sessions."""

    @property
    def leader_epoch(self) -> int: ...
    @property
    def log_start_offset(self) -> int: ...
    @property
    def log_end_offset(self) -> int: ...
    @property
    def high_watermark_offset(self) -> int: ...

    def follower_pulled(
        self, pull: Pull, position: PulledPartition, now_ms: int
    ) -> PullAnswer | None:
        """Take note of where the follower stands; an answer when it may not stand there."""

    def ranges_from(self, offset: int, max_bytes: int) -> tuple[list[LogRange], int]: ...
    def read(self, log_range: LogRange) -> memoryview: ...


SourceT = TypeVar("SourceT", bound=Source)


class SessionPartition:
    """One follower's place in one partition."""

    __slots__ = (
        "awaited",
        "fetch_offset",
        "sent_high_watermark",
        "sent_log_start_offset",
        "session",
        "source",
    )

    def __init__(self, session: PullSession, source: Source) -> None:
        self.session = session
        self.source = source
        self.fetch_offset = -1
        self.awaited = False
        """Data was sent: nothing more before the follower says what became of it."""
        self.sent_high_watermark = -1
        self.sent_log_start_offset = -1


class Parked(NamedTuple):
    reply: Reply
    deadline_ms: int
    max_bytes: int
    wants_bytes: bool


class PullSession:
    __slots__ = (
        "broker_id",
        "caller",
        "next_sequence",
        "parked",
        "partitions",
        "quiet",
        "ready",
        "said",
        "session_id",
        "urgent",
    )

    def __init__(self, caller: str, broker_id: int, session_id: int) -> None:
        self.caller = caller
        self.broker_id = broker_id
        self.session_id = session_id
        self.next_sequence = 0
        self.partitions: dict[Key, SessionPartition] = {}
        self.ready: dict[SessionPartition, None] = {}
        """With data for the follower, the one that waited longest first."""
        self.quiet: dict[SessionPartition, None] = {}
        """With another high watermark or log start offset, and perhaps nothing else."""
        self.said: list[PullAnswer] = []
        """Errors and differences to be told with the next answer."""
        self.urgent = False
        """The answer must not wait for data."""
        self.parked: Parked | None = None

    def has_news(self) -> bool:
        return bool(self.ready or self.said or self.urgent)


class PullSessions(Generic[SourceT]):
    def __init__(
        self,
        find: Callable[[Key], SourceT | None],
        *,
        on_progress: Callable[[SourceT], None],
        first_session_id: int,
        partition_max_bytes: int,
    ) -> None:
        """`on_progress` runs for each position that was accepted. `first_session_id` differs in
        each life of the actor, so that a session of an earlier one is not taken for one of
        this."""
        self._find = find
        self._on_progress = on_progress
        self._next_id = max(first_session_id, 1)
        self._partition_max_bytes = partition_max_bytes
        self._by_caller: dict[str, PullSession] = {}
        self._touched: dict[PullSession, None] = {}

    def __len__(self) -> int:
        return len(self._by_caller)

    def pull(self, pull: Pull, reply: Reply, now_ms: int) -> bool:
        """Take a pull in; it is answered by `answer_touched`. False when it was refused, and
        answered at once, because there is no such session."""
        caller = reply.caller
        session = self._by_caller.get(caller)
        if pull.session_id == 0:
            if session is not None:
                self._drop(session)
            session = PullSession(caller, pull.broker_id, self._next_id)
            self._next_id += 1
            self._by_caller[caller] = session
            # Answered at once: until then the follower has no session to add anything to.
            session.urgent = True
        elif (
            session is None
            or session.session_id != pull.session_id
            or session.next_sequence != pull.sequence
        ):
            reply(Pulled(0, []))
            return False
        session.next_sequence = pull.sequence + 1
        if session.parked is not None:
            # A pull sent ahead of the answer: the follower had something to add.
            session.parked.reply.on_cancel = None
            session.parked.reply(Pulled(session.session_id, []))
        for key in pull.removed:
            self._remove(session, key)
        for position in pull.changed:
            self._position(session, pull, position, now_ms)
        session.parked = Parked(reply, now_ms + pull.max_wait_ms, pull.max_bytes, pull.wants_bytes)
        reply.on_cancel = lambda: self._abandoned(session, reply)
        self._touched[session] = None
        return True

    def appended(self, source: Source) -> None:
        for place in source.readers:
            if not place.awaited:
                session = place.session
                session.ready[place] = None
                self._touched[session] = None

    def high_watermark_moved(self, source: Source) -> None:
        for place in source.readers:
            place.session.quiet[place] = None

    def log_start_moved(self, source: Source) -> None:
        """Followers are told at once: somebody may wait for them to delete too."""
        for place in source.readers:
            session = place.session
            session.quiet[place] = None
            session.urgent = True
            self._touched[session] = None

    def ask_again(self, source: Source, broker_ids: Collection[int]) -> None:
        """Where these followers stand was forgotten; an idle one would not say it again."""
        for place in list(source.readers):
            session = place.session
            if session.broker_id in broker_ids:
                self._remove(session, source.key)
                session.said.append(
                    _refusal(source.key, ErrorCode.unknown_leader_epoch, source.leader_epoch)
                )
                self._touched[session] = None

    def ended(self, source: Source, error: ErrorCode, leader_epoch: int) -> None:
        """The partition is not led here any more, or in another epoch: say so and forget."""
        for place in list(source.readers):
            session = place.session
            self._remove(session, source.key)
            session.said.append(_refusal(source.key, error, leader_epoch))
            self._touched[session] = None

    def answer_touched(self, now_ms: int) -> None:
        """At the end of a turn: answer what is parked and has news, or has waited enough."""
        touched = self._touched
        if not touched:
            return
        self._touched = {}
        for session in touched:
            parked = session.parked
            if parked is not None and (session.has_news() or parked.deadline_ms <= now_ms):
                self._answer(session, parked)

    def answer_overdue(self, now_ms: int) -> int | None:
        """Answer what has waited long enough; when to look again."""
        for session in self._by_caller.values():
            parked = session.parked
            if parked is not None and parked.deadline_ms <= now_ms:
                self._answer(session, parked)
        return self.next_deadline_ms()

    def next_deadline_ms(self) -> int | None:
        deadlines = [s.parked.deadline_ms for s in self._by_caller.values() if s.parked is not None]
        return min(deadlines) if deadlines else None

    def close(self) -> None:
        """No session is left; what is parked is told so."""
        for session in list(self._by_caller.values()):
            self._drop(session)

    def _position(
        self, session: PullSession, pull: Pull, position: PulledPartition, now_ms: int
    ) -> None:
        key = (position.topic_id, position.partition)
        source = self._find(key)
        if source is None:
            self._remove(session, key)
            session.said.append(_refusal(key, ErrorCode.unknown_topic_or_partition, -1))
            return
        try:
            answer = source.follower_pulled(pull, position, now_ms)
        except KafkaError as error:
            answer = out_of_reach(source, int(error.code))
        if answer is not None:
            self._remove(session, key)
            session.said.append(answer)
            return
        place = session.partitions.get(key)
        if place is None:
            place = session.partitions[key] = SessionPartition(session, source)
            source.readers.append(place)
        self._on_progress(source)
        place.awaited = False
        place.fetch_offset = position.fetch_offset
        if source.log_end_offset > position.fetch_offset:
            session.ready[place] = None
            return
        # An earlier pull that is not answered yet may have asked for what it has now.
        session.ready.pop(place, None)
        if place.sent_high_watermark != source.high_watermark_offset:
            session.quiet[place] = None

    def _answer(self, session: PullSession, parked: Parked) -> None:
        answers = session.said
        session.said = []
        bulk: list[memoryview] = []
        budget = parked.max_bytes
        ready = session.ready
        while ready and (budget > 0 or not answers):
            place = next(iter(ready))
            del ready[place]
            budget -= self._give(place, max(budget, 1), parked.wants_bytes, answers, bulk)
        for place in session.quiet:
            source = place.source
            if (
                place.sent_high_watermark != source.high_watermark_offset
                or place.sent_log_start_offset != source.log_start_offset
            ):
                answers.append(_told(place, [], -1))
        session.quiet.clear()
        session.urgent = False
        session.parked = None
        parked.reply.on_cancel = None
        parked.reply(Pulled(session.session_id, answers), bulk)

    def _give(
        self,
        place: SessionPartition,
        budget: int,
        wants_bytes: bool,
        answers: list[PullAnswer],
        bulk: list[memoryview],
    ) -> int:
        """One partition's data; its size."""
        source = place.source
        try:
            ranges, next_offset = source.ranges_from(
                place.fetch_offset, min(budget, self._partition_max_bytes)
            )
            data = [source.read(each) for each in ranges] if wants_bytes else ()
        except KafkaError as error:
            self._remove(place.session, source.key)
            answers.append(out_of_reach(source, int(error.code)))
            return 0
        # Of an answer without data the follower says nothing: it must not be waited for.
        place.awaited = bool(ranges)
        place.session.quiet.pop(place, None)
        bulk += data
        answers.append(_told(place, [Range(*each) for each in ranges], next_offset))
        return sum(each.length for each in ranges)

    def _abandoned(self, session: PullSession, reply: Reply) -> None:
        parked = session.parked
        if parked is not None and parked.reply is reply:
            session.parked = None
            if self._by_caller.get(session.caller) is session:
                self._drop(session)

    def _drop(self, session: PullSession) -> None:
        for key in list(session.partitions):
            self._remove(session, key)
        if session.parked is not None:
            session.parked.reply.on_cancel = None
            session.parked.reply(Pulled(0, []))
            session.parked = None
        del self._by_caller[session.caller]
        self._touched.pop(session, None)

    def _remove(self, session: PullSession, key: Key) -> None:
        place = session.partitions.pop(key, None)
        if place is not None:
            place.source.readers.remove(place)
            session.ready.pop(place, None)
            session.quiet.pop(place, None)


def _told(place: SessionPartition, ranges: list[Range], next_offset: int) -> PullAnswer:
    source = place.source
    high_watermark = source.high_watermark_offset
    log_start_offset = source.log_start_offset
    place.sent_high_watermark = high_watermark
    place.sent_log_start_offset = log_start_offset
    topic_id, partition = source.key
    return PullAnswer(
        topic_id,
        partition,
        0,
        source.leader_epoch,
        high_watermark,
        log_start_offset,
        -1,
        -1,
        ranges,
        next_offset,
    )


def out_of_reach(source: Source, error: int) -> PullAnswer:
    """An error about a partition that is led here; `next_offset` is its log end."""
    topic_id, partition = source.key
    return PullAnswer(
        topic_id,
        partition,
        error,
        source.leader_epoch,
        source.high_watermark_offset,
        source.log_start_offset,
        next_offset=source.log_end_offset,
    )


def _refusal(key: Key, error: ErrorCode, leader_epoch: int) -> PullAnswer:
    return PullAnswer(key[0], key[1], int(error), leader_epoch, -1, -1)
