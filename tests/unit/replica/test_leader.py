"""The partition leader's decisions: high watermark, ISR, low watermark."""

from __future__ import annotations

from typing import Any

from mobula.actors.replica.leader import IsrAnswer, Leadership, PartitionLeader, ProposeIsr
from mobula.protocol.errors import ErrorCode

LAG_MS = 30_000
LIVE = {0: 100, 1: 101, 2: 102}


def make_leader(
    isr: tuple[int, ...] = (0, 1, 2),
    replicas: tuple[int, ...] = (0, 1, 2),
    **changes: Any,
) -> PartitionLeader:
    """Broker 0 leads in epoch 5, its log ends at 100, 90 is known to be committed."""
    arguments: dict[str, Any] = {
        "broker_id": 0,
        "leadership": Leadership(5, 7, replicas, isr),
        "log_start_offset": 10,
        "log_end_offset": 100,
        "high_watermark": 90,
        "min_insync_replicas": 1,
        "lag_time_max_ms": LAG_MS,
        "live_brokers": dict(LIVE),
        "now_ms": 0,
    }
    return PartitionLeader(**(arguments | changes))


def pulled(
    leader: PartitionLeader, broker: int, offset: int, now_ms: int = 0, start: int = 10
) -> bool:
    return leader.follower_pulled(broker, LIVE[broker], offset, start, now_ms)


def settle(leader: PartitionLeader, proposal: ProposeIsr | None, now_ms: int = 0) -> None:
    assert proposal is not None
    answer = leader.isr_answered(
        proposal,
        ErrorCode.none,
        isr=proposal.new_isr,
        leader_epoch=proposal.leader_epoch,
        partition_epoch=proposal.partition_epoch + 1,
    )
    assert answer is IsrAnswer.SETTLED
    leader.settled(now_ms)


def test_the_high_watermark_waits_for_every_member_of_the_isr() -> None:
    leader = make_leader()
    assert not pulled(leader, 1, 100)
    assert leader.high_watermark == 90
    assert pulled(leader, 2, 95)
    assert leader.high_watermark == 95


def test_a_follower_that_was_not_heard_of_holds_the_high_watermark() -> None:
    leader = make_leader()
    pulled(leader, 1, 100)
    assert leader.high_watermark == 90


def test_the_high_watermark_does_not_go_back_when_a_follower_does() -> None:
    leader = make_leader(isr=(0, 1), replicas=(0, 1))
    pulled(leader, 1, 100)
    assert leader.high_watermark == 100
    assert not pulled(leader, 1, 40)
    assert leader.high_watermark == 100


def test_a_leader_alone_commits_what_it_appends() -> None:
    leader = make_leader(isr=(0,), replicas=(0,))
    assert leader.high_watermark == 100
    assert leader.log_end_moved(120, 1)
    assert leader.high_watermark == 120


def test_a_new_leader_keeps_the_high_watermark_it_knew_as_follower() -> None:
    assert make_leader().high_watermark == 90


def test_acks_all_is_refused_when_fewer_than_min_insync_replicas_are_in_sync() -> None:
    leader = make_leader(isr=(0,), min_insync_replicas=2)
    assert not leader.enough_in_sync()
    assert make_leader(isr=(0, 1), min_insync_replicas=2).enough_in_sync()


def test_min_insync_replicas_counts_at_most_the_replicas_there_are() -> None:
    leader = make_leader(isr=(0,), replicas=(0,), min_insync_replicas=3)
    assert leader.enough_in_sync()
    assert leader.min_in_sync_replicas == 1


def test_nothing_is_committed_while_too_few_replicas_are_in_sync() -> None:
    leader = make_leader(isr=(0,), min_insync_replicas=2)
    leader.log_end_moved(120, 1)
    assert leader.high_watermark == 90
    assert leader.set_min_insync_replicas(1, 2)
    assert leader.high_watermark == 120


def test_a_follower_behind_for_too_long_is_to_leave_the_isr() -> None:
    leader = make_leader()
    pulled(leader, 1, 100, now_ms=0)
    pulled(leader, 2, 100, now_ms=0)
    leader.log_end_moved(110, 1_000)
    pulled(leader, 1, 110, now_ms=LAG_MS)
    assert leader.maybe_shrink(LAG_MS + 1_000) is None
    proposal = leader.maybe_shrink(LAG_MS + 1_001)
    assert proposal is not None
    assert proposal.new_isr == (0, 1)
    assert proposal.partition_epoch == 7
    assert proposal.leader_epoch == 5


def test_an_idle_follower_at_the_log_end_stays_in_the_isr_for_ever() -> None:
    leader = make_leader()
    pulled(leader, 1, 100)
    pulled(leader, 2, 100)
    assert leader.maybe_shrink(1_000 * LAG_MS) is None


def test_an_append_after_a_long_idle_time_leaves_followers_their_time() -> None:
    leader = make_leader()
    pulled(leader, 1, 100)
    pulled(leader, 2, 100)
    late = 1_000 * LAG_MS
    leader.log_end_moved(101, late)
    assert leader.maybe_shrink(late + LAG_MS) is None
    assert leader.maybe_shrink(late + LAG_MS + 1) is not None


def test_a_follower_that_always_is_one_pull_behind_is_in_sync() -> None:
    leader = make_leader(isr=(0, 1), replicas=(0, 1))
    pulled(leader, 1, 100, now_ms=0)
    now_ms = 0
    for end in range(110, 1_100, 10):
        now_ms += LAG_MS // 2
        leader.log_end_moved(end, now_ms)
        pulled(leader, 1, end - 10, now_ms)
        assert leader.maybe_shrink(now_ms) is None


def test_a_member_that_never_pulled_is_given_the_lag_time_from_the_leaders_start() -> None:
    leader = make_leader(now_ms=500)
    assert leader.maybe_shrink(500 + LAG_MS) is None
    proposal = leader.maybe_shrink(501 + LAG_MS)
    assert proposal is not None
    assert proposal.new_isr == (0,)


def test_the_isr_is_not_touched_before_the_controller_says_so() -> None:
    leader = make_leader()
    leader.maybe_shrink(LAG_MS + 1)
    assert leader.isr == {0, 1, 2}
    leader.log_end_moved(200, LAG_MS + 2)
    assert leader.high_watermark == 90


def test_a_confirmed_shrink_lets_the_high_watermark_move() -> None:
    leader = make_leader()
    pulled(leader, 1, 100, now_ms=LAG_MS)
    settle(leader, leader.maybe_shrink(LAG_MS + 1), LAG_MS + 1)
    assert leader.isr == {0, 1}
    assert leader.high_watermark == 100
    assert leader.partition_epoch == 8


def test_only_one_change_of_the_isr_is_asked_for_at_a_time() -> None:
    leader = make_leader(isr=(0, 1))
    pulled(leader, 1, 100, now_ms=0)
    pulled(leader, 2, 100, now_ms=0)
    assert leader.maybe_expand() is not None
    leader.log_end_moved(200, 1)
    assert leader.maybe_shrink(10 * LAG_MS) is None
    assert leader.maybe_expand() is None


def test_a_follower_joins_when_it_has_reached_the_high_watermark_and_the_epochs_start() -> None:
    leader = make_leader(isr=(0, 1))
    pulled(leader, 2, 95)
    # It has all that is known to be committed, but not all that may be.
    assert leader.maybe_expand() is None
    pulled(leader, 2, 100)
    proposal = leader.maybe_expand()
    assert proposal is not None
    assert proposal.new_isr == (0, 1, 2)
    assert proposal.broker_epochs == (-1, -1, 102)


def test_a_follower_that_was_asked_for_holds_the_high_watermark_before_it_is_confirmed() -> None:
    leader = make_leader(isr=(0, 1))
    pulled(leader, 2, 100)
    leader.maybe_expand()
    leader.log_end_moved(110, 1)
    pulled(leader, 1, 110)
    assert leader.high_watermark == 100
    assert leader.in_sync_replicas == 3
    pulled(leader, 2, 110)
    assert leader.high_watermark == 110


def test_the_high_watermark_waits_for_a_caught_up_follower_that_is_not_yet_asked_for() -> None:
    leader = make_leader(isr=(0,), replicas=(0, 1))
    pulled(leader, 1, 100, now_ms=10)
    leader.log_end_moved(120, 11)
    assert leader.high_watermark == 100


def test_a_fenced_follower_neither_joins_nor_holds_the_high_watermark() -> None:
    live = dict(LIVE)
    leader = make_leader(isr=(0,), replicas=(0, 1), live_brokers=live)
    del live[1]
    pulled(leader, 1, 100, now_ms=10)
    assert leader.maybe_expand() is None
    leader.log_end_moved(120, 11)
    assert leader.high_watermark == 120


def test_a_follower_whose_pulls_came_from_an_earlier_life_does_not_join() -> None:
    live = dict(LIVE)
    leader = make_leader(isr=(0,), replicas=(0, 1), live_brokers=live)
    pulled(leader, 1, 100)
    live[1] = 999
    assert leader.maybe_expand() is None


def test_what_a_follower_said_in_an_earlier_life_counts_no_more() -> None:
    leader = make_leader(isr=(0, 1), replicas=(0, 1))
    pulled(leader, 1, 100)
    leader.broker_registered(1, 999)
    leader.log_end_moved(110, 1)
    assert leader.high_watermark == 100
    leader.follower_pulled(1, 999, 110, 10, 2)
    assert leader.high_watermark == 110


def test_the_followers_whose_position_is_not_known_can_be_named() -> None:
    leader = make_leader()
    assert leader.unheard() == [1, 2]
    pulled(leader, 1, 100)
    pulled(leader, 2, 100)
    assert leader.unheard() == []
    leader.broker_registered(2, 999)
    assert leader.unheard() == [2]


def test_a_refused_expansion_goes_back_to_the_isr_that_holds() -> None:
    leader = make_leader(isr=(0, 1))
    pulled(leader, 2, 100)
    proposal = leader.maybe_expand()
    assert proposal is not None
    answer = leader.isr_answered(proposal, ErrorCode.ineligible_replica)
    assert answer is IsrAnswer.SETTLED
    assert leader.in_sync_replicas == 2


def test_a_refused_follower_is_not_asked_for_again_until_it_pulls_or_some_time_has_passed() -> None:
    leader = make_leader(isr=(0, 1))
    pulled(leader, 2, 100)
    for renew in (lambda: pulled(leader, 2, 100), leader.try_refused_again):
        proposal = leader.maybe_expand()
        assert proposal is not None
        leader.isr_answered(proposal, ErrorCode.ineligible_replica)
        assert leader.maybe_expand() is None
        renew()
    assert leader.maybe_expand() is not None


def test_a_follower_that_the_controller_took_out_holds_nothing_up_until_it_pulls_again() -> None:
    leader = make_leader(isr=(0, 1, 2))
    pulled(leader, 1, 100)
    pulled(leader, 2, 100)
    leader.log_end_moved(110, 1)
    pulled(leader, 1, 110)
    assert leader.high_watermark == 100
    assert leader.metadata(
        Leadership(
            leader_epoch=leader.leader_epoch,
            partition_epoch=leader.partition_epoch + 1,
            replicas=(0, 1, 2),
            isr=(0, 1),
        ),
        2,
    )
    leader.settled(2)
    assert leader.high_watermark == 110
    assert leader.maybe_expand() is None
    pulled(leader, 2, 110)
    assert leader.maybe_expand() is not None


def test_an_outdated_proposal_waits_for_metadata() -> None:
    leader = make_leader(isr=(0, 1))
    pulled(leader, 2, 100)
    proposal = leader.maybe_expand()
    assert proposal is not None
    answer = leader.isr_answered(proposal, ErrorCode.invalid_update_version)
    assert answer is IsrAnswer.AWAIT_METADATA
    # It may have been carried out all the same.
    assert leader.in_sync_replicas == 3
    assert leader.metadata(Leadership(5, 8, (0, 1, 2), (0, 1)), 1)
    assert leader.in_sync_replicas == 2
    assert leader.pending is None


def test_a_lost_answer_is_asked_for_again() -> None:
    leader = make_leader(isr=(0, 1))
    pulled(leader, 2, 100)
    proposal = leader.maybe_expand()
    assert proposal is not None
    assert leader.isr_answered(proposal, ErrorCode.not_controller) is IsrAnswer.RETRY
    assert leader.pending is proposal


def test_metadata_that_is_known_already_settles_nothing() -> None:
    leader = make_leader(isr=(0, 1))
    pulled(leader, 2, 100)
    leader.maybe_expand()
    assert not leader.metadata(Leadership(5, 7, (0, 1, 2), (0, 1)), 1)
    assert leader.in_sync_replicas == 3


def test_metadata_can_settle_a_change_before_its_answer_comes() -> None:
    leader = make_leader(isr=(0, 1))
    pulled(leader, 2, 100)
    proposal = leader.maybe_expand()
    assert proposal is not None
    assert leader.metadata(Leadership(5, 8, (0, 1, 2), (0, 1, 2)), 1)
    answer = leader.isr_answered(
        proposal, ErrorCode.none, isr=(0, 1, 2), leader_epoch=5, partition_epoch=8
    )
    assert answer is IsrAnswer.SETTLED
    assert leader.isr == {0, 1, 2}


def test_the_low_watermark_is_the_smallest_log_start_of_live_replicas() -> None:
    live = dict(LIVE)
    leader = make_leader(live_brokers=live)
    assert leader.low_watermark == -1
    pulled(leader, 1, 100, start=10)
    pulled(leader, 2, 100, start=5)
    assert leader.low_watermark == 5
    del live[2]
    assert leader.low_watermark == 10
    leader.log_start_offset = 50
    assert leader.low_watermark == 10
    pulled(leader, 1, 100, start=60)
    assert leader.low_watermark == 50
