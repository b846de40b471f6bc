"""A classic group: its members, the state that they are in together, and who waits for what.

Nothing here decides when: that is `classic_protocol`'s.

Invariant: a member waits for a join or for a sync, never for both; who is asked to wait
again is answered first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any

from mobula.actors.coordinator.group.records import GroupValue, MemberValue
from mobula.protocol.errors import ErrorCode, KafkaError

Reply = Callable[[Mapping[str, Any]], None]
"""Answers a request that waits, with the fields of its response."""

NO_GENERATION = -1
CONSUMER_PROTOCOL_TYPE = "consumer"


class State(Enum):
    """Kafka's names of them, as clients see them."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


Protocols = tuple[tuple[str, bytes], ...]
"""Names of assignors, the preferred first, with what each needs to know."""


class Member:
    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "instance_id",
        "is_new",
        "join",
        "member_id",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
        "sync",
    )

    def __init__(
        self,
        member_id: str,
        *,
        instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocols: Protocols,
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocols = protocols
        self.assignment = assignment
        self.is_new = False
        """It was never told of a generation: it may be slow to begin."""
        self.join: Reply | None = None
        self.sync: Reply | None = None

    def metadata_of(self, protocol: str) -> bytes:
        for name, metadata in self.protocols:
            if name == protocol:
                return metadata
        return b""

    def vote(self, candidates: Iterable[str]) -> str:
        """The first of its protocols that everybody has."""
        among = set(candidates)
        return next(name for name, _ in self.protocols if name in among)

    def described(self, protocol: str | None) -> MemberValue:
        return MemberValue(
            self.member_id,
            self.instance_id,
            self.client_id,
            self.client_host,
            self.rebalance_timeout_ms,
            self.session_timeout_ms,
            self.metadata_of(protocol) if protocol is not None else b"",
            self.assignment,
        )


class ClassicGroup:
    def __init__(self, group_id: str, now_ms: int) -> None:
        self.group_id = group_id
        self.state = State.EMPTY
        self.former_state = State.EMPTY
        self.state_ms = now_ms
        """Wall time: since when it is in this state."""
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.generation = 0
        self.leader: str | None = None
        self.members: dict[str, Member] = {}
        self.pending_members: set[str] = set()
        """Have been given an id, and are to come back with it."""
        self.pending_syncs: set[str] = set()
        self.new_member_added = False
        """While the first rebalance waits for more members."""
        self._static: dict[str, str] = {}
        """Member ids by instance id."""
        self._supported: Counter[str] = Counter()

    @classmethod
    def replayed(cls, group_id: str, value: GroupValue) -> ClassicGroup:
        """As it was when that was written; nobody waits for anything."""
        group = cls(group_id, value.state_ms)
        group.generation = value.generation
        group.protocol_type = value.protocol_type or None
        group.protocol = value.protocol
        group.leader = value.leader
        for member in value.members:
            group.add(
                Member(
                    member.member_id,
                    instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout_ms=member.rebalance_timeout_ms,
                    session_timeout_ms=member.session_timeout_ms,
                    protocols=((value.protocol or "", member.subscription),),
                    assignment=member.assignment,
                )
            )
        group.leader = value.leader
        group.state = State.STABLE if value.members else State.EMPTY
        return group

    def described(self, assignments: Mapping[str, bytes] | None = None) -> GroupValue:
        """As it is to be written; `assignments` in place of what members have."""
        members = [member.described(self.protocol) for member in self.members.values()]
        if assignments is not None:
            members = [m._replace(assignment=assignments.get(m.member_id, b"")) for m in members]
        return GroupValue(
            self.protocol_type or "",
            self.generation,
            self.protocol,
            self.leader,
            self.state_ms,
            tuple(members),
        )

    def transition(self, state: State, now_ms: int) -> None:
        self.former_state, self.state = self.state, state
        self.state_ms = now_ms

    @property
    def can_rebalance(self) -> bool:
        return self.state in (State.EMPTY, State.STABLE, State.COMPLETING_REBALANCE)

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest of its members'."""
        return max((m.rebalance_timeout_ms for m in self.members.values()), default=0)

    @property
    def waiting_to_join(self) -> int:
        return sum(member.join is not None for member in self.members.values())

    @property
    def all_have_joined(self) -> bool:
        return not self.pending_members and self.waiting_to_join == len(self.members)

    def add(self, member: Member) -> None:
        if not self.members and self.protocol_type is None:
            self.protocol_type = CONSUMER_PROTOCOL_TYPE
        if self.leader is None:
            self.leader = member.member_id
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self._static[member.instance_id] = member.member_id
        self._supported.update({name for name, _ in member.protocols})
        self.pending_members.discard(member.member_id)

    def change_protocols(self, member: Member, protocols: Protocols) -> None:
        self._supported.subtract({name for name, _ in member.protocols})
        self._supported.update({name for name, _ in protocols})
        member.protocols = protocols

    def remove(self, member_id: str) -> Member | None:
        """Whoever leads next may not know it yet. The member's own waits are the caller's."""
        member = self.members.pop(member_id, None)
        self.pending_members.discard(member_id)
        self.pending_syncs.discard(member_id)
        if member is None:
            return None
        self._supported.subtract({name for name, _ in member.protocols})
        if member.instance_id is not None and self._static.get(member.instance_id) == member_id:
            del self._static[member.instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        return member

    def replace_static(self, instance_id: str, old_id: str, new_id: str) -> Member:
        """The instance has come back as another member, with all that the old one had."""
        members = {
            (new_id if member_id == old_id else member_id): member
            for member_id, member in self.members.items()
        }
        member = members[new_id]
        member.member_id = new_id
        self.members = members
        self._static[instance_id] = new_id
        if self.leader == old_id:
            self.leader = new_id
        if old_id in self.pending_syncs:
            self.pending_syncs.remove(old_id)
            self.pending_syncs.add(new_id)
        return member

    def static_member(self, instance_id: str) -> str | None:
        return self._static.get(instance_id)

    def supports(self, protocol_type: str, names: Iterable[str]) -> bool:
        """Whether a member with these can be in it: one of them all others have too."""
        if not self.members:
            return bool(protocol_type) and any(True for _ in names)
        if protocol_type != self.protocol_type:
            return False
        size = len(self.members)
        return any(self._supported[name] == size for name in names)

    def select_protocol(self) -> str:
        size = len(self.members)
        candidates = [name for name, count in self._supported.items() if count == size]
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return votes.most_common(1)[0][0]

    def elect_joined_leader(self) -> bool:
        """False: nobody has joined that could lead."""
        leader = None if self.leader is None else self.members.get(self.leader)
        if leader is not None and leader.join is None:
            joined = next((m for m in self.members.values() if m.join is not None), None)
            if joined is None:
                return False
            self.leader = joined.member_id
            return True
        return leader is not None

    def validate_member(self, member_id: str, instance_id: str | None) -> Member:
        """KafkaError: it is not in the group, or another has taken its place."""
        if instance_id is not None:
            known = self._static.get(instance_id)
            if known is None:
                raise KafkaError(ErrorCode.unknown_member_id)
            if known != member_id:
                raise KafkaError(ErrorCode.fenced_instance_id)
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(ErrorCode.unknown_member_id)
        return member
