"""The end of a turn: one pass, in order, whatever a callback adds or raises."""

from __future__ import annotations

import asyncio

import pytest

from mobula.actors.end_of_turn import EndOfTurn


def test_what_a_callback_adds_runs_in_the_same_pass() -> None:
    async def scenario() -> list[str]:
        loop = asyncio.get_running_loop()
        turn = EndOfTurn(loop)
        ran: list[str] = []

        def first() -> None:
            ran.append("first")
            turn.call_soon(lambda: ran.append("added"))
            loop.call_soon(ran.append, "next turn")

        turn.call_soon(first)
        turn.call_soon(lambda: ran.append("second"))
        assert ran == []
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        turn.call_soon(lambda: ran.append("again"))
        await asyncio.sleep(0)
        return ran

    assert asyncio.run(scenario()) == ["first", "second", "added", "next turn", "again"]


def test_a_callback_that_raises_stops_no_other(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> list[str]:
        turn = EndOfTurn(asyncio.get_running_loop())
        ran: list[str] = []

        def broken() -> None:
            raise ValueError("broken")

        turn.call_soon(broken)
        turn.call_soon(lambda: ran.append("next"))
        await asyncio.sleep(0)
        return ran

    assert asyncio.run(scenario()) == ["next"]
    assert "a callback failed" in caplog.text
