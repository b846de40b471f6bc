"""Deadlines by name."""

from __future__ import annotations

from mobula.actors.coordinator.timers import Timers
from tests.unit.coordinator.virtual import VirtualScheduler


def world() -> tuple[VirtualScheduler, Timers, list[str]]:
    scheduler = VirtualScheduler()
    return scheduler, Timers(scheduler, scheduler.time_ms), []


def test_deadlines_fall_due_in_their_order_and_once() -> None:
    scheduler, timers, due = world()
    for name, delay_ms in (("late", 5_000), ("early", 10), ("middle", 700)):
        timers.schedule(name, delay_ms, lambda name=name: due.append(name))  # type: ignore[misc]
    scheduler.advance(9)
    assert due == []
    scheduler.advance(1)
    assert due == ["early"]
    scheduler.advance(100_000)
    assert due == ["early", "middle", "late"]


def test_scheduling_a_name_again_replaces_its_deadline() -> None:
    scheduler, timers, due = world()
    timers.schedule("name", 10, lambda: due.append("former"))
    timers.schedule("name", 1_000, lambda: due.append("latter"))
    scheduler.advance(999)
    assert due == []
    scheduler.advance(1)
    assert due == ["latter"]
    assert "name" not in timers


def test_a_deadline_may_cancel_one_that_is_due_with_it() -> None:
    scheduler, timers, due = world()
    timers.schedule("first", 10, lambda: timers.cancel("second"))
    timers.schedule("second", 10, lambda: due.append("second"))
    scheduler.advance(20)
    assert due == []


def test_a_deadline_may_schedule_itself_again() -> None:
    scheduler, timers, due = world()

    def again() -> None:
        due.append("again")
        if len(due) < 3:
            timers.schedule("name", 50, again)

    timers.schedule("name", 50, again)
    scheduler.advance(1_000)
    assert len(due) == 3


def test_after_close_nothing_is_due() -> None:
    scheduler, timers, due = world()
    timers.schedule("name", 10, lambda: due.append("name"))
    timers.close()
    scheduler.advance(1_000)
    assert due == []
