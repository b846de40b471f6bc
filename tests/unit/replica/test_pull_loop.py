"""The follower's loop: what is named, when, and what happens when things fail."""

from __future__ import annotations

from mobula.actors.replica.messages import Pull, PullAnswer, Pulled, PulledPartition, Range
from mobula.actors.replica.pull_loop import Outcome, PullLoop, PullSettings
from mobula.actors.replica.pull_session import Key
from tests.sim.virtual import VirtualLoop
from tests.unit.replica.fakes import TOPIC, FakeLink


class Partition:
    def __init__(self, index: int) -> None:
        self.key: Key = (TOPIC, index)
        self.offset = 0

    def position(self) -> PulledPartition:
        return PulledPartition(TOPIC, self.key[1], 5, self.offset, -1, 0)


class Follower:
    def __init__(self) -> None:
        self.time = VirtualLoop()
        self.link = FakeLink("broker-0/replica-0")
        self.outcomes: dict[int, Outcome] = {}
        self.data: list[bytes] = []
        self.broker_epoch = 101
        self.loop: PullLoop[Partition] = PullLoop(
            link=self.link,
            scheduler=self.time,
            now_ms=self.time.monotonic_ms,
            settings=PullSettings(broker_id=1, max_bytes=1_000, max_wait_ms=500),
            broker_epoch=lambda: self.broker_epoch,
            apply=self._apply,
            wants_bytes=False,
        )

    def _apply(self, partition: Partition, answer: PullAnswer, data: memoryview) -> Outcome:
        self.data.append(bytes(data))
        outcome = self.outcomes.get(partition.key[1], Outcome.QUIET)
        if answer.ranges:
            partition.offset = answer.next_offset
            return Outcome.MOVED
        return outcome

    def follow(self, *indexes: int) -> None:
        for index in indexes:
            self.loop.add(Partition(index))
        self.time.settle()

    def pulls(self) -> list[Pull]:
        return [call.message for call in self.link.calls.values()]

    def pull(self) -> Pull:
        (only,) = self.pulls()
        return only

    def answer(self, *answers: PullAnswer, session: int = 7, bulk: bytes = b"") -> None:
        self.link.answer(Pulled(session, list(answers)), bulk)
        self.time.settle()


def named(pull: Pull) -> list[tuple[int, int]]:
    return [(each.partition, each.fetch_offset) for each in pull.changed]


def told(index: int, error: int = 0) -> PullAnswer:
    return PullAnswer(TOPIC, index, error, 5, 0, 0)


def data(index: int, next_offset: int, length: int = 100) -> PullAnswer:
    return PullAnswer(
        TOPIC, index, 0, 5, 0, 0, ranges=[Range(0, 0, length)], next_offset=next_offset
    )


def test_the_first_pull_opens_a_session_and_names_everything() -> None:
    follower = Follower()
    follower.follow(0, 1)
    pull = follower.pull()
    assert (pull.session_id, pull.sequence) == (0, 0)
    assert named(pull) == [(0, 0), (1, 0)]


def test_an_answer_is_followed_by_the_next_pull_that_names_what_moved() -> None:
    follower = Follower()
    follower.follow(0, 1)
    follower.answer(data(1, 8))
    pull = follower.pull()
    assert (pull.session_id, pull.sequence) == (7, 1)
    assert named(pull) == [(1, 8)]


def test_an_empty_answer_is_followed_by_a_pull_that_names_nothing() -> None:
    follower = Follower()
    follower.follow(0)
    follower.answer()
    assert named(follower.pull()) == []


def test_a_partition_that_joins_does_not_wait_for_the_parked_pull() -> None:
    follower = Follower()
    follower.follow(0)
    follower.answer()
    follower.follow(1)
    parked, joined = follower.pulls()
    assert (parked.sequence, joined.sequence) == (1, 2)
    assert named(joined) == [(1, 0)]
    follower.answer()
    assert follower.pulls() == [joined]


def test_what_joins_while_a_session_is_being_opened_waits_for_its_number() -> None:
    follower = Follower()
    follower.follow(0)
    follower.follow(1)
    assert named(follower.pull()) == [(0, 0)]
    follower.answer()
    pull = follower.pull()
    assert (pull.session_id, pull.sequence) == (7, 1)
    assert named(pull) == [(1, 0)]


def test_many_partitions_that_join_in_one_turn_are_named_in_one_pull() -> None:
    follower = Follower()
    follower.follow(*range(1_000))
    assert len(follower.pull().changed) == 1_000


def test_a_partition_that_leaves_is_named_once_as_removed() -> None:
    follower = Follower()
    follower.follow(0, 1)
    follower.answer()
    follower.loop.remove((TOPIC, 0))
    follower.time.settle()
    _, pull = follower.pulls()
    assert pull.removed == [(TOPIC, 0)]
    follower.answer()
    follower.answer()
    assert follower.pull().removed == []


def test_without_partitions_nothing_is_pulled() -> None:
    follower = Follower()
    follower.follow(0)
    follower.loop.remove((TOPIC, 0))
    follower.time.run_for(10_000)
    assert follower.pulls() == []


def test_a_lost_session_is_opened_anew_with_everything_named() -> None:
    follower = Follower()
    follower.follow(0, 1)
    follower.answer(data(0, 8))
    follower.answer(session=0)
    pull = follower.pull()
    assert (pull.session_id, pull.sequence) == (0, 0)
    assert sorted(named(pull)) == [(0, 8), (1, 0)]


def test_a_broken_link_is_tried_again_after_a_pause_that_grows() -> None:
    follower = Follower()
    follower.follow(0)
    waits = []
    for _ in range(10):
        follower.link.break_calls()
        before = follower.time.monotonic_ms()
        assert follower.pulls() == []
        while not follower.pulls():
            follower.time.step()
        waits.append(follower.time.monotonic_ms() - before)
    assert waits[:4] == [10, 20, 40, 80]
    assert waits[-1] == 1_000
    assert named(follower.pull()) == [(0, 0)]


def test_a_link_that_is_back_ends_the_pause() -> None:
    follower = Follower()
    follower.follow(0)
    follower.link.break_calls()
    follower.link.came_up()
    follower.time.settle()
    assert named(follower.pull()) == [(0, 0)]


def test_answers_of_a_session_that_was_given_up_are_not_heard() -> None:
    follower = Follower()
    follower.follow(0)
    follower.answer()
    follower.follow(1)
    follower.answer(session=0)
    assert len(follower.pulls()) == 1
    assert follower.pull().session_id == 0


def test_a_partition_in_trouble_rests_and_the_others_go_on() -> None:
    follower = Follower()
    follower.follow(0, 1)
    follower.outcomes[0] = Outcome.REST
    follower.answer(told(0, error=74), data(1, 8))
    assert named(follower.pull()) == [(1, 8)]
    follower.time.run_for(10)
    assert named(follower.pulls()[-1]) == [(0, 0)]


def test_a_partition_that_waits_for_metadata_is_forgotten_until_it_is_added_again() -> None:
    follower = Follower()
    follower.follow(0, 1)
    follower.outcomes[0] = Outcome.GONE
    follower.answer(told(0))
    follower.time.run_for(5_000)
    assert follower.pull().removed == [(TOPIC, 0)]
    follower.answer()
    follower.follow(0)
    assert named(follower.pulls()[-1]) == [(0, 0)]


def test_each_partition_gets_its_own_share_of_the_bytes() -> None:
    follower = Follower()
    follower.follow(0, 1, 2)
    follower.answer(data(0, 1, 3), told(1), data(2, 1, 2), bulk=b"aaabb")
    assert follower.data == [b"aaa", b"", b"bb"]


def test_a_bug_with_one_partition_does_not_stop_the_loop() -> None:
    follower = Follower()
    follower.follow(0, 1)
    broken: PullAnswer = told(0)
    apply = follower._apply

    def failing(partition: Partition, answer: PullAnswer, bulk: memoryview) -> Outcome:
        if partition.key[1] == 0:
            raise RuntimeError("a bug")
        return apply(partition, answer, bulk)

    follower.loop._apply = failing
    follower.answer(broken, data(1, 8))
    assert named(follower.pull()) == [(1, 8)]


def test_a_closed_loop_pulls_no_more() -> None:
    follower = Follower()
    follower.follow(0)
    follower.loop.close()
    follower.time.run_for(5_000)
    assert follower.pulls() == []


def test_a_resting_partition_that_moved_is_not_named_a_second_time_after_its_rest() -> None:
    follower = Follower()
    follower.outcomes[0] = Outcome.REST
    follower.follow(0)
    follower.answer(told(0, error=6))
    follower.answer(data(0, 8))
    assert named(follower.pull()) == [(0, 8)]
    follower.time.run_for(1_000)
    assert named(follower.pull()) == [(0, 8)]


def test_a_broker_that_registered_anew_names_its_idle_partitions_in_its_new_epoch() -> None:
    follower = Follower()
    follower.follow(0, 1)
    follower.answer()
    follower.broker_epoch = 202
    follower.loop.name_all_again()
    follower.time.settle()
    _, again = follower.pulls()
    assert (again.broker_epoch, named(again)) == (202, [(0, 0), (1, 0)])
