"""The groups of one partition of `__consumer_offsets`, and the offsets that they committed.

Invariant: a group that has committed offsets exists, with members or without.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias
from uuid import UUID

from mobula.actors.coordinator.group.classic_group import (
    CONSUMER_PROTOCOL_TYPE,
    ClassicGroup,
    State,
)
from mobula.actors.coordinator.group.classic_protocol import ClassicProtocol, Settings
from mobula.actors.coordinator.group.outcomes import Answer, GroupOutcome
from mobula.actors.coordinator.group.records import (
    GroupKey,
    GroupRecord,
    OffsetKey,
    OffsetRecord,
    OffsetValue,
    Record,
)
from mobula.actors.coordinator.group.subscriptions import subscribed_topics
from mobula.actors.coordinator.outcome import Outcome
from mobula.actors.coordinator.shard import Alarms
from mobula.protocol.errors import ErrorCode, KafkaError

Place: TypeAlias = tuple[str, int]
"""Topic and partition."""

_FIRST_WITH_GROUP_ID_NOT_FOUND = 9


class Committer(NamedTuple):
    """Who commits offsets, as it says of itself."""

    member_id: str
    instance_id: str | None
    generation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    topic: str
    partition: int
    value: OffsetValue


class GroupMachine:
    def __init__(
        self,
        settings: Settings,
        alarms: Alarms,
        *,
        now_ms: Callable[[], int],
        new_uuid: Callable[[], UUID],
    ) -> None:
        self.groups: dict[str, ClassicGroup] = {}
        self.classic = ClassicProtocol(settings, alarms, now_ms, new_uuid)
        self._offsets: dict[str, dict[Place, OffsetValue]] = {}
        self._now_ms = now_ms

    def replay(self, record: Record) -> None:
        if isinstance(record, OffsetRecord):
            self._set_offset(record)
        elif record.value is None:
            self.groups.pop(record.key.group, None)
        else:
            self.groups[record.key.group] = ClassicGroup.replayed(record.key.group, record.value)

    def apply(self, record: Record) -> None:
        """A classic group has changed already when it is written."""
        if isinstance(record, OffsetRecord):
            self._set_offset(record)
        elif record.value is None:
            self.groups.pop(record.key.group, None)

    def _set_offset(self, record: OffsetRecord) -> None:
        group_id, topic, partition = record.key
        if record.value is None:
            offsets = self._offsets.get(group_id)
            if offsets is not None:
                offsets.pop((topic, partition), None)
                if not offsets:
                    del self._offsets[group_id]
            return
        self._offsets.setdefault(group_id, {})[topic, partition] = record.value
        if group_id not in self.groups:
            self.groups[group_id] = ClassicGroup(group_id, self._now_ms())

    def loaded(self) -> None:
        for group in self.groups.values():
            self.classic.watch_all(group)

    def close(self, code: ErrorCode) -> None:
        for group in self.groups.values():
            self.classic.close(group, code)

    def group(self, group_id: str) -> ClassicGroup:
        """KafkaError GROUP_ID_NOT_FOUND."""
        group = self.groups.get(group_id)
        if group is None:
            raise KafkaError(ErrorCode.group_id_not_found, f"Group {group_id} not found.")
        return group

    def joined_group(self, group_id: str) -> ClassicGroup:
        """Of a request by a member: without the group, there is no such member."""
        group = self.groups.get(group_id)
        if group is None:
            raise KafkaError(ErrorCode.unknown_member_id)
        return group

    def group_to_join(self, group_id: str, member_id: str) -> tuple[ClassicGroup, bool]:
        """The group, and whether it was made for that."""
        group = self.groups.get(group_id)
        if group is not None:
            return group, False
        if member_id:
            raise KafkaError(ErrorCode.unknown_member_id)
        group = self.groups[group_id] = ClassicGroup(group_id, self._now_ms())
        return group, True

    def commit(
        self,
        group_id: str,
        by: Committer,
        version: int,
        commits: Sequence[Commit],
        answer: Answer,
    ) -> GroupOutcome:
        """Of offsets that are known to be fit: topics exist, metadata is short enough."""
        self._check_commit(group_id, by, version)
        records = [
            OffsetRecord(OffsetKey(group_id, commit.topic, commit.partition), commit.value)
            for commit in commits
        ]
        return Outcome(records, answer)

    def _check_commit(self, group_id: str, by: Committer, version: int) -> None:
        group = self.groups.get(group_id)
        if group is None:
            if by.generation < 0:
                # Nobody's group: its offsets are all there is of it.
                return
            raise KafkaError(
                ErrorCode.group_id_not_found
                if version >= _FIRST_WITH_GROUP_ID_NOT_FOUND
                else ErrorCode.illegal_generation
            )
        if group.state is State.DEAD:
            raise KafkaError(ErrorCode.coordinator_not_available)
        if by.generation < 0 and group.state is State.EMPTY:
            return
        if by.generation >= 0 or by.member_id or by.instance_id is not None:
            group.validate_member(by.member_id, by.instance_id)
            if by.generation != group.generation:
                raise KafkaError(ErrorCode.illegal_generation)
        elif group.state is not State.EMPTY:
            raise KafkaError(ErrorCode.unknown_member_id)
        if group.state is State.COMPLETING_REBALANCE:
            raise KafkaError(ErrorCode.rebalance_in_progress)
        if group.state in (State.STABLE, State.PREPARING_REBALANCE):
            self.classic.seen(group, by.member_id)

    def offset(self, group_id: str, topic: str, partition: int) -> OffsetValue | None:
        return self._offsets.get(group_id, {}).get((topic, partition))

    def offsets(self, group_id: str) -> Mapping[Place, OffsetValue]:
        return self._offsets.get(group_id, {})

    def delete_group(self, group_id: str) -> GroupOutcome:
        group = self.groups.get(group_id)
        if group is None or group.state is State.DEAD:
            raise KafkaError(ErrorCode.group_id_not_found)
        if group.state is not State.EMPTY:
            raise KafkaError(ErrorCode.non_empty_group)
        records: list[Record] = [
            OffsetRecord(OffsetKey(group_id, topic, partition), None)
            for topic, partition in self.offsets(group_id)
        ]
        records.append(GroupRecord(GroupKey(group_id), None))
        return Outcome(records, {"group_id": group_id, "error_code": ErrorCode.none})

    def delete_offsets(
        self, group_id: str, places: Sequence[Place]
    ) -> tuple[GroupOutcome, frozenset[str]]:
        """The outcome, and the topics that keep theirs because members read them."""
        group = self.group(group_id)
        topics = frozenset(topic for topic, _ in places)
        if group.state is State.DEAD:
            raise KafkaError(ErrorCode.group_id_not_found)
        if group.state is not State.EMPTY:
            subscribed = subscribed_topics(group)
            if subscribed is None:
                if group.protocol_type != CONSUMER_PROTOCOL_TYPE:
                    raise KafkaError(ErrorCode.non_empty_group)
                refused = topics
            else:
                refused = topics & subscribed
        else:
            refused = frozenset()
        kept = self.offsets(group_id)
        records = [
            OffsetRecord(OffsetKey(group_id, topic, partition), None)
            for topic, partition in places
            if topic not in refused and (topic, partition) in kept
        ]
        return Outcome(records), refused
