"""The classic protocol: join, sync, heartbeat, leave, and the deadlines of each.

A rebalance: everybody joins again (or is put out when the time for it is over), the leader
is told of all, and what it assigns is written and then handed to each. A request that has
to wait keeps its reply in its member.

Invariant: nobody is told of an assignment that is not committed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from mobula.actors.coordinator.group.classic_group import (
    NO_GENERATION,
    ClassicGroup,
    Member,
    Protocols,
    Reply,
    State,
)
from mobula.actors.coordinator.group.outcomes import Answer, GroupOutcome
from mobula.actors.coordinator.group.records import GroupKey, GroupRecord
from mobula.actors.coordinator.outcome import Outcome
from mobula.actors.coordinator.shard import Alarms
from mobula.protocol.errors import ErrorCode, KafkaError

log = logging.getLogger(__name__)

NOTHING: GroupOutcome = Outcome(())

_NEW_MEMBER_TIMEOUT_MS = 5 * 60 * 1000
"""For a new member to come back from its first join: clients may be slow to begin."""

_OK = ErrorCode.none


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    initial_rebalance_delay_ms: int
    max_size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    client_id: str
    host: str
    needs_member_id: bool
    """It knows MEMBER_ID_REQUIRED (JoinGroup v4 and later)."""
    skips_assignment: bool
    """It knows a leader that need not assign (JoinGroup v9 and later)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    member_id: str
    instance_id: str | None
    protocol_type: str
    protocols: Protocols
    session_timeout_ms: int
    rebalance_timeout_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sync:
    member_id: str
    instance_id: str | None
    generation: int
    protocol_type: str | None
    protocol: str | None
    assignments: Mapping[str, bytes]


class ClassicProtocol:
    """What can happen to a classic group. Its methods are decisions: see `Outcome`."""

    def __init__(
        self,
        settings: Settings,
        alarms: Alarms,
        now_ms: Callable[[], int],
        new_uuid: Callable[[], UUID],
    ) -> None:
        """`now_ms` is wall time: it is written."""
        self._settings = settings
        self._alarms = alarms
        self._now_ms = now_ms
        self._new_uuid = new_uuid

    def join(
        self, group: ClassicGroup, client: Client, asked: Join, reply: Reply, *, is_new: bool
    ) -> GroupOutcome:
        """`reply` is kept until the rebalance is over, if it comes to one. `is_new`: the
        group was made for this request, and is written when nothing else is."""
        if group.state is State.DEAD:
            raise KafkaError(ErrorCode.coordinator_not_available)
        if not self._accepts(group, asked.member_id):
            group.remove(asked.member_id)
            raise KafkaError(ErrorCode.group_max_size_reached)
        if not group.supports(asked.protocol_type, [name for name, _ in asked.protocols]):
            raise KafkaError(ErrorCode.inconsistent_group_protocol)
        if not asked.member_id:
            outcome = self._join_new(group, client, asked, reply)
        else:
            outcome = self._join_known(group, client, asked, reply)
        if is_new and not outcome.records:
            return outcome._replace(records=[_written(group)])
        return outcome

    def _accepts(self, group: ClassicGroup, member_id: str) -> bool:
        """Whether there is room, for one that is in it or one more."""
        match group.state:
            case State.EMPTY | State.DEAD:
                return True
            case State.PREPARING_REBALANCE:
                # Who is first to join again stays.
                member = group.members.get(member_id)
                return (member is not None and member.join is not None) or (
                    group.waiting_to_join < self._settings.max_size
                )
            case State.COMPLETING_REBALANCE | State.STABLE:
                return member_id in group.members or len(group.members) < self._settings.max_size

    def _join_new(
        self, group: ClassicGroup, client: Client, asked: Join, reply: Reply
    ) -> GroupOutcome:
        prefix = client.client_id if asked.instance_id is None else asked.instance_id
        member_id = f"{prefix}-{self._new_uuid()}"
        if asked.instance_id is not None:
            if group.static_member(asked.instance_id) is not None:
                return self._join_in_place(group, client, asked, member_id, reply)
            return self._add(group, client, asked, member_id, reply)
        if client.needs_member_id:
            group.pending_members.add(member_id)
            self._alarms.schedule(
                _session(group, member_id),
                asked.session_timeout_ms,
                lambda: self._session_over(group, member_id),
            )
            return Outcome((), failed_join(ErrorCode.member_id_required, member_id))
        return self._add(group, client, asked, member_id, reply)

    def _join_known(
        self, group: ClassicGroup, client: Client, asked: Join, reply: Reply
    ) -> GroupOutcome:
        if asked.member_id in group.pending_members:
            return self._add(group, client, asked, asked.member_id, reply)
        member = group.validate_member(asked.member_id, asked.instance_id)
        same = member.protocols == asked.protocols
        match group.state:
            case State.PREPARING_REBALANCE:
                return self._rejoin(group, member, asked, reply)
            case State.COMPLETING_REBALANCE:
                # With the same protocols: it did not hear the answer to its join.
                if not same:
                    return self._rejoin(group, member, asked, reply)
                return Outcome((), _joined(group, member))
            case State.STABLE:
                # A leader that joins again wants to assign anew.
                if not same or member.member_id == group.leader:
                    return self._rejoin(group, member, asked, reply)
                return Outcome((), _joined(group, member))
            case State.EMPTY | State.DEAD:
                raise KafkaError(ErrorCode.unknown_member_id)

    def _add(
        self, group: ClassicGroup, client: Client, asked: Join, member_id: str, reply: Reply
    ) -> GroupOutcome:
        member = Member(
            member_id,
            instance_id=asked.instance_id,
            client_id=client.client_id,
            client_host=client.host,
            rebalance_timeout_ms=asked.rebalance_timeout_ms,
            session_timeout_ms=asked.session_timeout_ms,
            protocols=asked.protocols,
        )
        if not group.members:
            group.protocol_type = asked.protocol_type
        member.is_new = True
        member.join = reply
        group.add(member)
        if group.state is State.PREPARING_REBALANCE and group.former_state is State.EMPTY:
            group.new_member_added = True
        # A new member is put out only when it does not come back at all, for its join may
        # wait as long as the slowest member needs.
        self._expect(group, member, _NEW_MEMBER_TIMEOUT_MS)
        return self._rebalance_or_complete(group)

    def _rejoin(
        self, group: ClassicGroup, member: Member, asked: Join, reply: Reply
    ) -> GroupOutcome:
        self._take_up(group, member, asked)
        _answer_join(member, failed_join(ErrorCode.unknown_member_id, member.member_id))
        member.join = reply
        return self._rebalance_or_complete(group)

    def _take_up(self, group: ClassicGroup, member: Member, asked: Join) -> None:
        group.change_protocols(member, asked.protocols)
        member.rebalance_timeout_ms = asked.rebalance_timeout_ms
        member.session_timeout_ms = asked.session_timeout_ms

    def _join_in_place(
        self, group: ClassicGroup, client: Client, asked: Join, member_id: str, reply: Reply
    ) -> GroupOutcome:
        """A static member is back under a new id: the former one is fenced, and in a stable
        group in which nothing else changed nobody is disturbed."""
        assert asked.instance_id is not None
        former_id = group.static_member(asked.instance_id)
        assert former_id is not None
        former = group.members[former_id]
        fenced = ErrorCode.fenced_instance_id
        _answer_join(former, failed_join(fenced, former_id))
        _answer_sync(former, failed_sync(fenced))
        self._alarms.cancel(_session(group, former_id))
        former_metadata = former.metadata_of(group.protocol or "")
        member = group.replace_static(asked.instance_id, former_id, member_id)
        self._take_up(group, member, asked)
        member.client_id, member.client_host = client.client_id, client.host
        self._expect(group, member, member.session_timeout_ms)
        match group.state:
            case State.STABLE:
                if (
                    group.select_protocol() == group.protocol
                    and member.metadata_of(group.protocol) == former_metadata
                ):
                    return self._keep_assignment(group, client, member, former_id, reply)
                member.join = reply
                return self._rebalance_or_complete(group)
            case State.COMPLETING_REBALANCE:
                # Its former self may have been told of a generation that it cannot sync for.
                member.join = reply
                return self._prepare(group)
            case State.PREPARING_REBALANCE:
                member.join = reply
                return self._complete_if_all_joined(group)
            case State.EMPTY | State.DEAD:
                raise KafkaError(ErrorCode.unknown_member_id)

    def _keep_assignment(
        self,
        group: ClassicGroup,
        client: Client,
        member: Member,
        former_id: str,
        reply: Reply,
    ) -> GroupOutcome:
        """It goes on with what its former self had, once its new name is written."""

        def settled(error: KafkaError | None) -> None:
            if error is not None:
                reply(failed_join(error.code, member.member_id))
                return
            leads = group.leader == member.member_id
            answer = _joined(group, member)
            if leads and not client.skips_assignment:
                # It would assign anew if it knew that it leads: it is told of the former.
                answer = {**answer, "leader": former_id, "members": ()}
            elif leads:
                answer = {**answer, "skip_assignment": True}
            reply(answer)

        return Outcome([_written(group)], settled=settled)

    def _rebalance_or_complete(self, group: ClassicGroup) -> GroupOutcome:
        return self._prepare(group) if group.can_rebalance else self._complete_if_all_joined(group)

    def _prepare(self, group: ClassicGroup) -> GroupOutcome:
        """Begin a rebalance."""
        if group.state is State.COMPLETING_REBALANCE:
            self._assign_none(group, ErrorCode.rebalance_in_progress)
        group.pending_syncs.clear()
        self._alarms.cancel(_sync(group))
        is_first = group.state is State.EMPTY
        group.transition(State.PREPARING_REBALANCE, self._now_ms())
        log.info("rebalance begins group=%s generation=%d", group.group_id, group.generation)
        if is_first:
            delay_ms = self._settings.initial_rebalance_delay_ms
            left_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
            return self._wait_for_more(group, delay_ms, left_ms)
        if group.all_have_joined:
            return self._complete_join(group)
        self._alarms.schedule(
            _join(group), group.rebalance_timeout_ms, lambda: self._complete_join(group)
        )
        return NOTHING

    def _wait_for_more(self, group: ClassicGroup, delay_ms: int, left_ms: int) -> GroupOutcome:
        """The first members of a group seldom come alone."""
        if delay_ms <= 0:
            return self._complete_join(group)
        self._alarms.schedule(
            _join(group), delay_ms, lambda: self._waited_for_more(group, delay_ms, left_ms)
        )
        return NOTHING

    def _waited_for_more(self, group: ClassicGroup, delay_ms: int, left_ms: int) -> GroupOutcome:
        if not group.new_member_added or not left_ms:
            return self._complete_join(group)
        group.new_member_added = False
        again_ms = min(self._settings.initial_rebalance_delay_ms, left_ms)
        return self._wait_for_more(group, again_ms, max(left_ms - delay_ms, 0))

    def _complete_if_all_joined(self, group: ClassicGroup) -> GroupOutcome:
        if (
            group.state is State.PREPARING_REBALANCE
            and group.former_state is not State.EMPTY
            and group.all_have_joined
        ):
            return self._complete_join(group)
        return NOTHING

    def _complete_join(self, group: ClassicGroup) -> GroupOutcome:
        """Everybody has joined, or the time for it is over."""
        self._alarms.cancel(_join(group))
        for member in [m for m in group.members.values() if m.join is None]:
            if member.instance_id is None:
                group.remove(member.member_id)
                self._alarms.cancel(_session(group, member.member_id))
        if group.state is State.DEAD:
            return NOTHING
        if group.members and not group.elect_joined_leader():
            # Static members alone, all away: they have until their sessions end.
            self._alarms.schedule(
                _join(group), group.rebalance_timeout_ms, lambda: self._complete_join(group)
            )
            return NOTHING
        group.generation += 1
        if not group.members:
            group.protocol = group.leader = None
            group.transition(State.EMPTY, self._now_ms())
            log.info("group is empty group=%s generation=%d", group.group_id, group.generation)
            return Outcome([_written(group)])
        group.protocol = group.select_protocol()
        group.transition(State.COMPLETING_REBALANCE, self._now_ms())
        for member in group.members.values():
            _answer_join(member, _joined(group, member))
            self._expect(group, member, member.session_timeout_ms)
            member.is_new = False
            group.pending_syncs.add(member.member_id)
        generation = group.generation
        self._alarms.schedule(
            _sync(group),
            group.rebalance_timeout_ms,
            lambda: self._sync_over(group, generation),
        )
        return NOTHING

    def sync(self, group: ClassicGroup, asked: Sync, reply: Reply) -> GroupOutcome:
        if group.state is State.DEAD:
            raise KafkaError(ErrorCode.coordinator_not_available)
        member = group.validate_member(asked.member_id, asked.instance_id)
        if asked.generation != group.generation:
            raise KafkaError(ErrorCode.illegal_generation)
        if asked.protocol_type is not None and asked.protocol_type != group.protocol_type:
            raise KafkaError(ErrorCode.inconsistent_group_protocol)
        if asked.protocol is not None and asked.protocol != group.protocol:
            raise KafkaError(ErrorCode.inconsistent_group_protocol)
        match group.state:
            case State.EMPTY | State.DEAD:
                raise KafkaError(ErrorCode.unknown_member_id)
            case State.PREPARING_REBALANCE:
                raise KafkaError(ErrorCode.rebalance_in_progress)
            case State.COMPLETING_REBALANCE:
                _answer_sync(member, failed_sync(ErrorCode.rebalance_in_progress))
                member.sync = reply
                group.pending_syncs.discard(member.member_id)
                if member.member_id != group.leader:
                    return NOTHING
                return self._assign(group, asked.assignments)
            case State.STABLE:
                group.pending_syncs.discard(member.member_id)
                return Outcome((), _synced(group, member))

    def _assign(self, group: ClassicGroup, assignments: Mapping[str, bytes]) -> GroupOutcome:
        """The leader has spoken."""
        generation = group.generation
        record = GroupRecord(GroupKey(group.group_id), group.described(assignments))

        def settled(error: KafkaError | None) -> None:
            # Meanwhile another rebalance may have begun.
            if group.state is not State.COMPLETING_REBALANCE or group.generation != generation:
                return
            if error is not None:
                self._assign_none(group, error.code)
                return
            for member in group.members.values():
                member.assignment = assignments.get(member.member_id, b"")
            group.transition(State.STABLE, self._now_ms())
            log.info(
                "group is stable group=%s generation=%d members=%d",
                group.group_id,
                generation,
                len(group.members),
            )
            for member in group.members.values():
                _answer_sync(member, _synced(group, member))
                self._expect(group, member, member.session_timeout_ms)

        return Outcome([record], settled=settled)

    def _assign_none(self, group: ClassicGroup, code: ErrorCode) -> None:
        for member in group.members.values():
            member.assignment = b""
            if member.sync is not None:
                _answer_sync(member, failed_sync(code))
                self._expect(group, member, member.session_timeout_ms)

    def _sync_over(self, group: ClassicGroup, generation: int) -> GroupOutcome:
        """Who has not synced by now is put out."""
        if group.generation != generation or group.state not in (
            State.COMPLETING_REBALANCE,
            State.STABLE,
        ):
            return NOTHING
        late = [member_id for member_id in group.pending_syncs if member_id in group.members]
        if not late:
            return NOTHING
        log.info("members did not sync in time group=%s members=%s", group.group_id, late)
        for member_id in late:
            group.remove(member_id)
            self._alarms.cancel(_session(group, member_id))
        return self._prepare(group)

    def heartbeat(
        self, group: ClassicGroup, member_id: str, instance_id: str | None, generation: int
    ) -> GroupOutcome:
        if group.state is State.DEAD:
            raise KafkaError(ErrorCode.coordinator_not_available)
        member = group.validate_member(member_id, instance_id)
        if generation != group.generation:
            raise KafkaError(ErrorCode.illegal_generation)
        if group.state is State.EMPTY:
            raise KafkaError(ErrorCode.unknown_member_id)
        self._expect(group, member, member.session_timeout_ms)
        if group.state is State.PREPARING_REBALANCE:
            raise KafkaError(ErrorCode.rebalance_in_progress)
        return Outcome((), {"error_code": _OK})

    def seen(self, group: ClassicGroup, member_id: str) -> None:
        """The member has shown that it lives."""
        member = group.members.get(member_id)
        if member is not None:
            self._expect(group, member, member.session_timeout_ms)

    def watch_all(self, group: ClassicGroup) -> None:
        """After the group was read from the log: everybody has a session's time to show up."""
        for member in group.members.values():
            self._expect(group, member, member.session_timeout_ms)

    def leave(self, group: ClassicGroup, members: Sequence[tuple[str, str | None]]) -> GroupOutcome:
        """(member id, instance id) of each; an instance may leave without its member id."""
        if group.state is State.DEAD:
            raise KafkaError(ErrorCode.coordinator_not_available)
        answers = []
        someone_left = False
        for member_id, instance_id in members:
            code = _OK
            try:
                left = self._leaving(group, member_id, instance_id)
            except KafkaError as error:
                code = error.code
            else:
                someone_left = True
                self._put_out(group, left, ErrorCode.unknown_member_id)
            answers.append(
                {"member_id": member_id, "group_instance_id": instance_id, "error_code": code}
            )
        after = self._after_removal(group) if someone_left else NOTHING
        return after._replace(answer={"error_code": _OK, "members": answers})

    def _leaving(self, group: ClassicGroup, member_id: str, instance_id: str | None) -> str:
        if not member_id:
            known = None if instance_id is None else group.static_member(instance_id)
            if known is None:
                raise KafkaError(ErrorCode.unknown_member_id)
            return known
        if member_id in group.pending_members:
            return member_id
        return group.validate_member(member_id, instance_id).member_id

    def _put_out(self, group: ClassicGroup, member_id: str, code: ErrorCode) -> None:
        self._alarms.cancel(_session(group, member_id))
        member = group.remove(member_id)
        if member is not None:
            _answer_join(member, failed_join(code, member_id))
            _answer_sync(member, failed_sync(code))

    def _after_removal(self, group: ClassicGroup) -> GroupOutcome:
        match group.state:
            case State.STABLE | State.COMPLETING_REBALANCE:
                return self._prepare(group)
            case State.PREPARING_REBALANCE:
                return self._complete_if_all_joined(group)
            case State.EMPTY | State.DEAD:
                return NOTHING

    def _expect(self, group: ClassicGroup, member: Member, within_ms: int) -> None:
        """The next sign of life."""
        member_id = member.member_id
        self._alarms.schedule(
            _session(group, member_id), within_ms, lambda: self._session_over(group, member_id)
        )

    def _session_over(self, group: ClassicGroup, member_id: str) -> GroupOutcome:
        if group.state is State.DEAD:
            return NOTHING
        if member_id in group.pending_members:
            group.pending_members.discard(member_id)
            return self._complete_if_all_joined(group)
        member = group.members.get(member_id)
        if member is None:
            return NOTHING
        if not member.is_new and (member.join is not None or member.sync is not None):
            # It waits for us.
            return NOTHING
        log.info("session is over group=%s member=%s", group.group_id, member_id)
        self._put_out(group, member_id, ErrorCode.unknown_member_id)
        return self._after_removal(group)

    def close(self, group: ClassicGroup, code: ErrorCode) -> None:
        """The group is another coordinator's from now on: who waits is told so."""
        group.transition(State.DEAD, self._now_ms())
        for member in group.members.values():
            _answer_join(member, failed_join(code, member.member_id))
            _answer_sync(member, failed_sync(code))


def failed_join(code: ErrorCode, member_id: str) -> Answer:
    return {
        "error_code": code,
        "generation_id": NO_GENERATION,
        "protocol_type": None,
        "protocol_name": None,
        "leader": "",
        "member_id": member_id,
        "members": (),
    }


def failed_sync(code: ErrorCode) -> Answer:
    return {"error_code": code, "protocol_type": None, "protocol_name": None, "assignment": b""}


def _joined(group: ClassicGroup, member: Member) -> Answer:
    assert group.protocol is not None
    members = group.members.values() if member.member_id == group.leader else ()
    return {
        "error_code": _OK,
        "generation_id": group.generation,
        "protocol_type": group.protocol_type,
        "protocol_name": group.protocol,
        "leader": group.leader or "",
        "member_id": member.member_id,
        "members": [
            {
                "member_id": other.member_id,
                "group_instance_id": other.instance_id,
                "metadata": other.metadata_of(group.protocol),
            }
            for other in members
        ],
    }


def _synced(group: ClassicGroup, member: Member) -> Answer:
    return {
        "error_code": _OK,
        "protocol_type": group.protocol_type,
        "protocol_name": group.protocol,
        "assignment": member.assignment,
    }


def _answer_join(member: Member, answer: Answer) -> None:
    reply, member.join = member.join, None
    if reply is not None:
        reply(answer)


def _answer_sync(member: Member, answer: Answer) -> None:
    reply, member.sync = member.sync, None
    if reply is not None:
        reply(answer)


def _written(group: ClassicGroup) -> GroupRecord:
    return GroupRecord(GroupKey(group.group_id), group.described())


def _session(group: ClassicGroup, member_id: str) -> tuple[str, ...]:
    return ("session", group.group_id, member_id)


def _join(group: ClassicGroup) -> tuple[str, ...]:
    return ("join", group.group_id)


def _sync(group: ClassicGroup) -> tuple[str, ...]:
    return ("sync", group.group_id)
