"""Classic groups: joins, syncs, heartbeats, leaves, and the deadlines of each."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any
from uuid import UUID

import pytest

from mobula.actors.coordinator.group.classic_group import ClassicGroup, State
from mobula.actors.coordinator.group.classic_protocol import Client, Join, Settings, Sync
from mobula.actors.coordinator.group.group_machine import GroupMachine
from mobula.actors.coordinator.group.outcomes import GroupOutcome
from mobula.actors.coordinator.group.records import GroupRecord, Record
from mobula.protocol.errors import ErrorCode, KafkaError
from tests.unit.coordinator.virtual import Alarms

DELAY_MS = 3_000
SESSION_MS = 10_000
REBALANCE_MS = 60_000
RANGE = (("range", b"topics"),)


class Asked:
    """A request and what came back for it."""

    def __init__(self) -> None:
        self.answers: list[Mapping[str, Any]] = []
        self.error: ErrorCode | None = None

    @property
    def answer(self) -> Mapping[str, Any]:
        (answer,) = self.answers
        return answer

    @property
    def code(self) -> ErrorCode:
        if self.error is not None:
            return self.error
        code = self.answer["error_code"]
        assert isinstance(code, ErrorCode)
        return code

    @property
    def waits(self) -> bool:
        return self.error is None and not self.answers


class World:
    """A machine whose records are committed at once, unless told otherwise."""

    def __init__(self, max_size: int = 100) -> None:
        self.alarms = Alarms(self._settle)
        self.records: list[Record] = []
        self.fails: KafkaError | None = None
        numbers = count(1)
        self.machine = GroupMachine(
            Settings(initial_rebalance_delay_ms=DELAY_MS, max_size=max_size),
            self.alarms,
            now_ms=lambda: self.alarms.now_ms,
            new_uuid=lambda: UUID(int=next(numbers)),
        )

    @property
    def group(self) -> ClassicGroup:
        return self.machine.groups["g"]

    def _settle(self, outcome: GroupOutcome) -> None:
        if self.fails is None:
            self.records += outcome.records
            for record in outcome.records:
                self.machine.apply(record)
        if outcome.settled is not None:
            outcome.settled(self.fails)

    def _ask(self, decision: Any) -> Asked:
        asked = Asked()
        try:
            outcome = decision(asked.answers.append)
        except KafkaError as error:
            asked.error = error.code
            return asked
        self._settle(outcome)
        if outcome.answer is not None:
            asked.answers.append(outcome.answer)
        return asked

    def join(
        self,
        member_id: str = "",
        *,
        instance: str | None = None,
        protocols: tuple[tuple[str, bytes], ...] = RANGE,
        version: int = 9,
        rebalance_ms: int = REBALANCE_MS,
    ) -> Asked:
        client = Client(
            client_id="client",
            host="/host",
            needs_member_id=version >= 4,
            skips_assignment=version >= 9,
        )
        asked = Join(
            member_id=member_id,
            instance_id=instance,
            protocol_type="consumer",
            protocols=protocols,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=rebalance_ms,
        )

        def decide(reply: Any) -> GroupOutcome:
            group, is_new = self.machine.group_to_join("g", member_id)
            return self.machine.classic.join(group, client, asked, reply, is_new=is_new)

        return self._ask(decide)

    def sync(
        self, member_id: str, assignments: Mapping[str, bytes] | None = None, **other: Any
    ) -> Asked:
        asked = Sync(
            member_id=member_id,
            instance_id=other.get("instance"),
            generation=other.get("generation", self.group.generation),
            protocol_type=other.get("protocol_type", "consumer"),
            protocol=other.get("protocol", "range"),
            assignments=assignments or {},
        )
        return self._ask(lambda reply: self.machine.classic.sync(self.group, asked, reply))

    def heartbeat(self, member_id: str, generation: int | None = None) -> Asked:
        at = self.group.generation if generation is None else generation
        return self._ask(lambda _: self.machine.classic.heartbeat(self.group, member_id, None, at))

    def leave(self, *members: tuple[str, str | None]) -> Asked:
        return self._ask(lambda _: self.machine.classic.leave(self.group, members))

    def new_id(self) -> str:
        """As a member of today gets it."""
        member_id = self.join().answer["member_id"]
        assert isinstance(member_id, str)
        return member_id

    def stable(self, size: int = 2) -> list[str]:
        """A group of so many members, each with an assignment; the first leads."""
        ids = [self.new_id() for _ in range(size)]
        joins = [self.join(member_id) for member_id in ids]
        self.alarms.advance(2 * DELAY_MS)
        assert {join.code for join in joins} == {ErrorCode.none}
        leader = joins[0].answer["leader"]
        ids.sort(key=lambda member_id: member_id != leader)
        for member_id in ids[1:]:
            assert self.sync(member_id).waits
        assert self.sync(leader, {each: each.encode() for each in ids}).code is ErrorCode.none
        assert self.group.state is State.STABLE
        return ids


def test_a_first_join_is_sent_away_with_an_id() -> None:
    world = World()
    join = world.join()
    assert join.code is ErrorCode.member_id_required
    assert join.answer["member_id"].startswith("client-")
    assert world.join(join.answer["member_id"]).waits


def test_an_old_client_joins_without_an_id() -> None:
    world = World()
    join = world.join(version=3)
    assert join.waits
    world.alarms.advance(DELAY_MS)
    assert join.code is ErrorCode.none


def test_the_first_rebalance_waits_for_more_members() -> None:
    world = World()
    first = world.join(world.new_id())
    world.alarms.advance(DELAY_MS - 1)
    second = world.join(world.new_id())
    world.alarms.advance(2)
    assert first.waits
    assert second.waits
    world.alarms.advance(DELAY_MS)
    assert first.answer["generation_id"] == second.answer["generation_id"] == 1
    assert first.answer["leader"] == second.answer["leader"] == first.answer["member_id"]


def test_the_leader_alone_is_told_of_all() -> None:
    world = World()
    joins = [world.join(world.new_id()) for _ in range(3)]
    world.alarms.advance(3 * DELAY_MS)
    assert [len(join.answer["members"]) for join in joins] == [3, 0, 0]


def test_everybody_gets_what_the_leader_assigned_once_it_is_written() -> None:
    world = World()
    ids = world.stable(3)
    assert [world.sync(each).answer["assignment"] for each in ids] == [e.encode() for e in ids]
    written = [r for r in world.records if isinstance(r, GroupRecord)][-1]
    assert written.value is not None
    assert {m.member_id: m.assignment for m in written.value.members} == {
        each: each.encode() for each in ids
    }


def test_an_assignment_that_could_not_be_written_is_nobodys() -> None:
    world = World()
    ids = [world.new_id() for _ in range(2)]
    for member_id in ids:
        world.join(member_id)
    world.alarms.advance(2 * DELAY_MS)
    leader = world.group.leader
    assert leader is not None
    (other,) = set(ids) - {leader}
    waiting = world.sync(other)
    world.fails = KafkaError(ErrorCode.coordinator_not_available)
    world.sync(leader, {other: b"parts"})
    assert waiting.code is ErrorCode.coordinator_not_available
    assert world.group.members[other].assignment == b""


def test_a_member_that_is_silent_is_put_out_and_the_others_rebalance() -> None:
    world = World()
    leader, silent = world.stable(2)
    for _ in range(2):
        world.alarms.advance(SESSION_MS // 2)
        if world.group.state is State.STABLE:
            assert world.heartbeat(leader).code is ErrorCode.none
    assert world.heartbeat(leader).code is ErrorCode.rebalance_in_progress
    again = world.join(leader)
    assert again.answer["generation_id"] == 2
    assert silent not in world.group.members


def test_a_join_that_waits_needs_no_heartbeat() -> None:
    world = World()
    leader, other = world.stable(2)
    newcomer = world.join(world.new_id())
    waiting = world.join(leader)
    for _ in range(5):
        world.alarms.advance(SESSION_MS // 2)
        assert world.heartbeat(other).code is ErrorCode.rebalance_in_progress
    assert newcomer.waits
    assert waiting.waits
    world.join(other)
    assert len(world.group.members) == 3
    assert waiting.code is ErrorCode.none


def test_who_does_not_join_again_in_time_is_put_out() -> None:
    world = World()
    leader, late = world.stable(2)
    newcomer = world.join(world.new_id())
    world.join(leader)
    for _ in range(REBALANCE_MS // (SESSION_MS // 2)):
        if late in world.group.members:
            world.heartbeat(late)
        world.alarms.advance(SESSION_MS // 2)
    assert newcomer.code is ErrorCode.none
    assert late not in world.group.members


def test_who_does_not_sync_in_time_is_put_out() -> None:
    world = World()
    ids = [world.new_id() for _ in range(2)]
    joins = [world.join(each) for each in ids]
    world.alarms.advance(2 * DELAY_MS)
    assert joins[0].code is ErrorCode.none
    leader = world.group.leader
    assert leader is not None
    (late,) = set(ids) - {leader}
    world.sync(leader, {})
    for _ in range(REBALANCE_MS // (SESSION_MS // 2) + 1):
        for each in (leader, late):
            if each in world.group.members:
                world.heartbeat(each)
        world.alarms.advance(SESSION_MS // 2)
    assert late not in world.group.members


def test_a_member_that_joins_again_with_the_same_protocols_disturbs_nobody() -> None:
    world = World()
    _, follower = world.stable(2)
    assert world.join(follower).answer["generation_id"] == 1
    assert world.group.state is State.STABLE


@pytest.mark.parametrize("by_leader", [False, True])
def test_a_changed_subscription_or_a_leaders_join_rebalances(by_leader: bool) -> None:
    world = World()
    leader, follower = world.stable(2)
    if by_leader:
        world.join(leader)
    else:
        world.join(follower, protocols=(("range", b"other topics"),))
    assert world.group.state is State.PREPARING_REBALANCE


def test_the_protocol_is_one_that_all_have_and_most_prefer() -> None:
    world = World()
    a, b, c = world.new_id(), world.new_id(), world.new_id()
    world.join(a, protocols=(("sticky", b""), ("range", b"")))
    world.join(b, protocols=(("range", b""), ("sticky", b""), ("own", b"")))
    joined = world.join(c, protocols=(("range", b""), ("sticky", b"")))
    world.alarms.advance(3 * DELAY_MS)
    assert joined.answer["protocol_name"] == "range"
    odd = world.join(protocols=(("own", b""),), version=3)
    assert odd.code is ErrorCode.inconsistent_group_protocol


def test_a_leaving_member_is_gone_at_once() -> None:
    world = World()
    leader, follower = world.stable(2)
    left = world.leave((follower, None), ("nobody", None))
    codes = [member["error_code"] for member in left.answer["members"]]
    assert codes == [ErrorCode.none, ErrorCode.unknown_member_id]
    assert world.heartbeat(leader).code is ErrorCode.rebalance_in_progress


def test_the_last_member_leaves_an_empty_group_in_the_log() -> None:
    world = World()
    (only,) = world.stable(1)
    world.leave((only, None))
    assert world.group.state is State.EMPTY
    written = [r for r in world.records if isinstance(r, GroupRecord)][-1]
    assert written.value is not None
    assert written.value.members == ()
    assert written.value.generation == 2


def test_requests_of_another_generation_or_member_are_refused() -> None:
    world = World()
    leader, _ = world.stable(2)
    assert world.heartbeat(leader, generation=7).code is ErrorCode.illegal_generation
    assert world.heartbeat("nobody").code is ErrorCode.unknown_member_id
    assert world.sync(leader, generation=0).code is ErrorCode.illegal_generation
    assert world.sync(leader, protocol="own").code is ErrorCode.inconsistent_group_protocol
    assert world.join("nobody").code is ErrorCode.unknown_member_id


def test_a_group_that_is_full_takes_nobody_more() -> None:
    world = World(max_size=2)
    world.stable(2)
    assert world.join(version=3).code is ErrorCode.group_max_size_reached


def static_group(world: World) -> list[str]:
    joins = [world.join(instance=name) for name in ("one", "two")]
    world.alarms.advance(2 * DELAY_MS)
    ids = [str(join.answer["member_id"]) for join in joins]
    leader = str(joins[0].answer["leader"])
    for each in ids:
        if each != leader:
            world.sync(each)
    world.sync(leader, {each: each.encode() for each in ids})
    assert world.group.state is State.STABLE
    return ids


def test_a_static_member_comes_back_without_a_rebalance_and_fences_its_old_self() -> None:
    world = World()
    _, former = static_group(world)
    back = world.join(instance="two")
    now = back.answer["member_id"]
    assert now != former
    assert world.group.state is State.STABLE
    assert world.sync(now, instance="two").answer["assignment"] == former.encode()
    assert world.sync(former, instance="two").code is ErrorCode.fenced_instance_id


def test_a_static_leader_that_is_back_is_not_made_to_assign_again() -> None:
    world = World()
    static_group(world)
    new = world.join(instance="one")
    assert new.answer["skip_assignment"] is True
    old = world.join(instance="one", version=8)
    assert old.answer["leader"] == new.answer["member_id"]
    assert old.answer["leader"] != old.answer["member_id"]


def test_a_group_comes_back_from_its_record() -> None:
    world = World()
    ids = world.stable(2)
    again = World()
    for record in world.records:
        again.machine.replay(record)
    again.machine.loaded()
    assert again.group.state is State.STABLE
    assert again.group.leader == ids[0]
    assert again.sync(ids[1]).answer["assignment"] == ids[1].encode()
    again.alarms.advance(SESSION_MS)
    assert again.group.state is not State.STABLE
