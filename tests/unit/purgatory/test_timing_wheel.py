from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mobula.actors.purgatory.timing_wheel import SLOTS, TimerEntry, TimingWheel


def test_an_entry_expires_at_its_millisecond_and_not_before() -> None:
    wheel = TimingWheel(1000)
    entry = TimerEntry(1007)
    assert wheel.insert(entry)
    assert wheel.advance(1006) == []
    assert wheel.advance(1007) == [entry]
    assert len(wheel) == 0


def test_a_deadline_that_has_passed_is_refused() -> None:
    wheel = TimingWheel(1000)
    assert not wheel.insert(TimerEntry(1000))
    assert not wheel.insert(TimerEntry(3))
    assert len(wheel) == 0


@pytest.mark.parametrize("delay_ms", [1, 19, 20, 21, 399, 400, 401, 7999, 8000, 159_999, 10**9])
def test_an_entry_far_away_moves_down_the_levels_and_expires_on_time(delay_ms: int) -> None:
    wheel = TimingWheel(123_457)
    entry = TimerEntry(123_457 + delay_ms)
    assert wheel.insert(entry)
    assert wheel.advance(123_457 + delay_ms - 1) == []
    assert wheel.advance(123_457 + delay_ms) == [entry]


def test_levels_are_made_on_demand() -> None:
    wheel = TimingWheel(0)
    wheel.insert(TimerEntry(SLOTS - 1))
    assert len(wheel._levels) == 1
    wheel.insert(TimerEntry(SLOTS))
    assert len(wheel._levels) == 2
    wheel.insert(TimerEntry(SLOTS**4))
    assert len(wheel._levels) == 5


def test_a_cancelled_entry_never_expires_and_leaves_its_slot_empty() -> None:
    wheel = TimingWheel(0)
    kept, gone = TimerEntry(500), TimerEntry(500)
    wheel.insert(kept)
    wheel.insert(gone)
    wheel.cancel(gone)
    wheel.cancel(gone)
    assert len(wheel) == 1
    assert wheel.advance(1000) == [kept]
    wheel.insert(again := TimerEntry(2000))
    wheel.cancel(again)
    assert wheel.next_deadline_ms() is None


def test_cancelling_what_expired_changes_nothing() -> None:
    wheel = TimingWheel(0)
    entry = TimerEntry(5)
    wheel.insert(entry)
    wheel.advance(5)
    wheel.cancel(entry)
    assert len(wheel) == 0


def test_the_next_deadline_is_never_late_and_gets_exact() -> None:
    wheel = TimingWheel(7)
    wheel.insert(TimerEntry(12_345))
    looks = 0
    while True:
        next_ms = wheel.next_deadline_ms()
        assert next_ms is not None
        assert next_ms <= 12_345
        looks += 1
        if wheel.advance(next_ms):
            break
    assert next_ms == 12_345
    assert looks <= 5, "an idle wheel is looked at once a level, not once a tick"


def test_an_empty_wheel_has_no_deadline() -> None:
    assert TimingWheel(0).next_deadline_ms() is None


@settings(max_examples=200, deadline=None)
@given(
    start=st.integers(0, 10**13),
    delays=st.lists(st.integers(-5, 100_000), max_size=60),
    steps=st.lists(st.integers(0, 30_000), max_size=30),
    seed=st.integers(0, 2**32),
)
def test_whatever_happens_each_entry_expires_once_in_the_step_that_reaches_it(
    start: int, delays: list[int], steps: list[int], seed: int
) -> None:
    chance = random.Random(seed)
    wheel, now_ms = TimingWheel(start), start
    waiting: set[TimerEntry] = set()
    for delay in delays:
        entry = TimerEntry(start + delay)
        assert wheel.insert(entry) == (delay > 0)
        if delay > 0:
            waiting.add(entry)
    for step in [*steps, 200_000]:
        if waiting and chance.random() < 0.3:
            victim = min(waiting, key=lambda entry: (entry.deadline_ms * 7919) % 101)
            wheel.cancel(victim)
            waiting.discard(victim)
        if chance.random() < 0.3:
            late = TimerEntry(now_ms + chance.randint(1, 9000))
            wheel.insert(late)
            waiting.add(late)
        next_ms = wheel.next_deadline_ms()
        assert (next_ms is None) == (not waiting)
        if next_ms is not None:
            assert now_ms < next_ms <= min(entry.deadline_ms for entry in waiting)
        now_ms += step
        expired = wheel.advance(now_ms)
        assert [entry.deadline_ms for entry in expired] == sorted(
            entry.deadline_ms for entry in expired
        )
        assert set(expired) == {entry for entry in waiting if entry.deadline_ms <= now_ms}
        assert len(expired) == len(set(expired))
        waiting -= set(expired)
        assert len(wheel) == len(waiting)
    assert not waiting
