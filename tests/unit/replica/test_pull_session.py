"""The leader's sessions: what is answered, when, and what costs nothing."""

from __future__ import annotations

from mobula.actors.replica.messages import Pulled, PulledPartition, Range
from mobula.actors.replica.pull_session import Key, PullSessions
from mobula.protocol.errors import ErrorCode
from tests.unit.replica.fakes import FakeReply, FakeSource, position, pull


class Leader:
    """Sessions over some partitions, driven a turn at a time."""

    def __init__(self, *sources: FakeSource, partition_max_bytes: int = 10_000) -> None:
        self.sources = {source.key: source for source in sources}
        self.progressed: list[Key] = []
        self.sessions: PullSessions[FakeSource] = PullSessions(
            self.sources.get,
            on_progress=lambda source: self.progressed.append(source.key),
            first_session_id=7,
            partition_max_bytes=partition_max_bytes,
        )
        self.now_ms = 0

    def pull(
        self, *changed: PulledPartition, reply: FakeReply | None = None, **more: object
    ) -> FakeReply:
        reply = reply or FakeReply()
        self.sessions.pull(pull(*changed, **more), reply, self.now_ms)  # type: ignore[arg-type]
        self.sessions.answer_touched(self.now_ms)
        return reply

    def park(
        self, *changed: PulledPartition, caller: str = "broker-1/replica-0", session: int = 7
    ) -> FakeReply:
        """Open a session with these positions; the reply of the pull that is parked then."""
        opening = self.pull(*changed, reply=FakeReply(caller))
        assert opening.message.session_id == session
        return self.pull(reply=FakeReply(caller), session=session, sequence=1)

    def append(self, source: FakeSource, count: int = 1) -> None:
        source.log_end_offset += count
        self.sessions.appended(source)
        self.sessions.answer_touched(self.now_ms)


def test_a_pull_with_data_to_give_is_answered_at_once() -> None:
    leader = Leader(FakeSource(0, log_end_offset=3))
    answered: Pulled = leader.pull(position(0, 1)).message
    assert answered.session_id == 7
    (answer,) = answered.answers
    assert answer.ranges == [Range(0, 100, 200)]
    assert answer.next_offset == 3


def test_a_pull_with_nothing_to_give_is_parked_until_an_append() -> None:
    source = FakeSource(0, log_end_offset=3)
    leader = Leader(source)
    reply = leader.park(position(0, 3))
    assert reply.messages == []
    leader.append(source, 2)
    assert reply.message.answers[0].next_offset == 5


def test_the_pull_that_opens_a_session_is_answered_at_once() -> None:
    leader = Leader(FakeSource(0, log_end_offset=3))
    opening = leader.pull(position(0, 3))
    assert opening.message.session_id == 7


def test_only_partitions_with_something_to_say_are_answered() -> None:
    sources = [FakeSource(index, log_end_offset=3) for index in range(100)]
    leader = Leader(*sources)
    reply = leader.park(*(position(index, 3) for index in range(100)))
    leader.append(sources[42])
    assert [answer.partition for answer in reply.message.answers] == [42]


def test_a_later_pull_names_only_what_moved() -> None:
    first, second = FakeSource(0, 3), FakeSource(1, 3)
    leader = Leader(first, second)
    leader.park(position(0, 3), position(1, 3))
    leader.append(first)
    reply = leader.pull(position(0, 4), session=7, sequence=2)
    assert first.heard == [3, 4]
    assert second.heard == [3]
    leader.append(second)
    assert reply.message.answers[0].partition == 1


def test_appends_of_one_turn_are_answered_together() -> None:
    first, second = FakeSource(0, 3), FakeSource(1, 3)
    leader = Leader(first, second)
    reply = leader.park(position(0, 3), position(1, 3))
    first.log_end_offset = second.log_end_offset = 5
    leader.sessions.appended(first)
    leader.sessions.appended(second)
    assert reply.messages == []
    leader.sessions.answer_touched(0)
    assert len(reply.message.answers) == 2


def test_data_is_not_sent_twice_before_the_follower_has_answered_for_it() -> None:
    source = FakeSource(0, 3)
    leader = Leader(source)
    leader.pull(position(0, 0))
    reply = leader.pull(session=7, sequence=1)
    leader.append(source)
    assert reply.messages == []
    again = leader.pull(position(0, 0), session=7, sequence=2)
    assert again.message.answers[0].next_offset == 4


def test_a_moved_high_watermark_alone_waits_for_the_pulls_time() -> None:
    source = FakeSource(0, 3)
    leader = Leader(source)
    leader.pull(position(0, 0))
    reply = leader.pull(position(0, 3), session=7, sequence=1)
    source.high_watermark_offset = 3
    leader.sessions.high_watermark_moved(source)
    leader.sessions.answer_touched(100)
    assert reply.messages == []
    assert leader.sessions.next_deadline_ms() == 500
    assert leader.sessions.answer_overdue(500) is None
    (answer,) = reply.message.answers
    assert answer.high_watermark == 3
    assert answer.ranges == []


def test_a_moved_high_watermark_rides_with_another_partitions_data() -> None:
    quiet, busy = FakeSource(0, 3), FakeSource(1, 3)
    leader = Leader(quiet, busy)
    reply = leader.park(position(0, 3), position(1, 3))
    quiet.high_watermark_offset = 3
    leader.sessions.high_watermark_moved(quiet)
    leader.append(busy)
    assert {answer.partition: answer.high_watermark for answer in reply.message.answers} == {
        0: 3,
        1: 0,
    }


def test_a_pull_that_waited_long_enough_is_answered_empty() -> None:
    leader = Leader(FakeSource(0, 3))
    reply = leader.park(position(0, 3))
    leader.sessions.answer_overdue(499)
    assert reply.messages == []
    leader.sessions.answer_overdue(500)
    assert reply.message.answers == []


def test_a_moved_log_start_is_told_at_once() -> None:
    source = FakeSource(0, 3)
    leader = Leader(source)
    reply = leader.park(position(0, 3))
    source.log_start_offset = 2
    leader.sessions.log_start_moved(source)
    leader.sessions.answer_touched(1)
    assert reply.message.answers[0].log_start_offset == 2


def test_a_pull_of_an_unknown_session_is_refused() -> None:
    leader = Leader(FakeSource(0, 3))
    assert leader.pull(position(0, 0), session=99, sequence=1).message == Pulled(0, [])


def test_a_pull_out_of_sequence_is_refused() -> None:
    leader = Leader(FakeSource(0, 3))
    leader.pull(position(0, 0))
    assert leader.pull(session=7, sequence=5).message == Pulled(0, [])
    assert leader.pull(session=7, sequence=1).messages == []


def test_a_new_session_replaces_the_followers_old_one() -> None:
    source = FakeSource(0, 3)
    leader = Leader(source)
    old = leader.park(position(0, 3))
    new = leader.park(position(0, 3), session=8)
    assert old.message == Pulled(0, [])
    assert len(source.readers) == 1
    assert len(leader.sessions) == 1
    leader.append(source)
    assert new.message.session_id == 8


def test_followers_have_sessions_of_their_own() -> None:
    source = FakeSource(0, 3)
    leader = Leader(source)
    one = leader.park(position(0, 3), caller="broker-1/replica-0")
    two = leader.park(position(0, 3), caller="broker-2/replica-0", session=8)
    leader.append(source)
    assert one.message.answers[0].next_offset == 4
    assert two.message.answers[0].next_offset == 4


def test_a_follower_that_went_away_leaves_nothing_behind() -> None:
    source = FakeSource(0, 3)
    leader = Leader(source)
    reply = leader.park(position(0, 3))
    assert reply.on_cancel is not None
    reply.on_cancel()
    assert source.readers == []
    assert len(leader.sessions) == 0
    leader.append(source)
    assert reply.messages == []


def test_an_unknown_partition_is_refused_alone() -> None:
    leader = Leader(FakeSource(0, 3))
    answers = leader.pull(position(0, 0), position(9, 0)).message.answers
    codes = {answer.partition: answer.error_code for answer in answers}
    assert codes == {0: 0, 9: ErrorCode.unknown_topic_or_partition}


def test_a_follower_of_another_epoch_is_refused_and_forgotten() -> None:
    source = FakeSource(0, 3)
    leader = Leader(source)
    (answer,) = leader.pull(position(0, 0, epoch=4)).message.answers
    assert answer.error_code == ErrorCode.fenced_leader_epoch
    assert answer.leader_epoch == 5
    assert source.readers == []


def test_followers_of_a_partition_that_is_led_no_more_are_told_at_once() -> None:
    source = FakeSource(0, 3)
    leader = Leader(source)
    reply = leader.park(position(0, 3))
    leader.sessions.ended(source, ErrorCode.not_leader_or_follower, 6)
    leader.sessions.answer_touched(1)
    (answer,) = reply.message.answers
    assert answer.error_code == ErrorCode.not_leader_or_follower
    assert answer.leader_epoch == 6
    assert source.readers == []


def test_a_removed_partition_is_answered_no_more() -> None:
    first, second = FakeSource(0, 3), FakeSource(1, 3)
    leader = Leader(first, second)
    leader.pull(position(0, 3), position(1, 3))
    reply = leader.pull(session=7, sequence=1, removed=[first.key])
    leader.append(first)
    assert reply.messages == []
    assert first.readers == []


def test_a_second_pull_ends_the_parked_one_and_takes_its_place() -> None:
    first, second = FakeSource(0, 3), FakeSource(1, 3)
    leader = Leader(first, second)
    parked = leader.park(position(0, 3))
    joined = leader.pull(position(1, 0), session=7, sequence=2)
    assert parked.message == Pulled(7, [])
    assert joined.message.answers[0].partition == 1


def test_what_does_not_fit_waits_its_turn_behind_nobody() -> None:
    sources = [FakeSource(index, log_end_offset=10) for index in range(3)]
    leader = Leader(*sources, partition_max_bytes=500)
    answers = leader.pull(*(position(i, 0) for i in range(3)), max_bytes=600).message.answers
    assert [(each.partition, each.next_offset) for each in answers] == [(0, 5), (1, 1)]
    answers = leader.pull(
        position(0, 5), position(1, 1), session=7, sequence=1, max_bytes=600
    ).message.answers
    assert [(each.partition, each.next_offset) for each in answers] == [(2, 5), (0, 6)]


def test_bytes_stand_in_the_bulk_in_the_order_of_the_answers() -> None:
    sources = [FakeSource(index, log_end_offset=1) for index in range(1, 3)]
    leader = Leader(*sources)
    reply = leader.pull(position(1, 0), position(2, 0), wants_bytes=True)
    assert [answer.partition for answer in reply.message.answers] == [1, 2]
    assert reply.bulks == [b"\x01" * 100 + b"\x02" * 100]


def test_a_partition_that_cannot_be_read_fails_alone() -> None:
    good, bad = FakeSource(0, 3), FakeSource(1, 3)
    leader = Leader(good, bad)
    bad.unreadable = True
    answers = leader.pull(position(1, 0), position(0, 0)).message.answers
    codes = {answer.partition: answer.error_code for answer in answers}
    assert codes == {0: 0, 1: ErrorCode.kafka_storage_error}


def test_progress_is_heard_before_anything_is_answered() -> None:
    leader = Leader(FakeSource(0, 3), FakeSource(1, 3))
    leader.pull(position(0, 3), position(1, 2))
    assert [key[1] for key in leader.progressed] == [0, 1]


def test_a_follower_whose_position_was_forgotten_is_asked_for_it() -> None:
    source = FakeSource(0, 3)
    leader = Leader(source)
    forgotten = leader.park(position(0, 3))
    leader.sessions.ask_again(source, [2])
    leader.sessions.answer_touched(1)
    assert forgotten.messages == []
    leader.sessions.ask_again(source, [1])
    leader.sessions.answer_touched(1)
    (answer,) = forgotten.message.answers
    assert answer.error_code == ErrorCode.unknown_leader_epoch
    assert source.readers == []


def test_data_that_an_unanswered_pull_asked_for_is_not_given_once_the_follower_has_it() -> None:
    source = FakeSource(0, log_end_offset=3)
    leader = Leader(source)
    leader.pull()
    leader.sessions.pull(pull(position(0, 0), session=7, sequence=1), FakeReply(), 0)
    reply = leader.pull(position(0, 3), session=7, sequence=2)
    assert reply.messages == []


def test_an_answer_without_data_is_not_waited_for() -> None:
    source = FakeSource(0, log_end_offset=3)
    leader = Leader(source)
    reply = leader.park(position(0, 3))
    leader.sessions.appended(source)
    leader.sessions.answer_touched(0)
    assert reply.message.answers[0].ranges == []
    again = leader.pull(session=7, sequence=2)
    leader.append(source)
    assert again.message.answers[0].next_offset == 4
