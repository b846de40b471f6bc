"""Which signals end a cluster cleanly."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from mobula.cluster.supervisor import StopSignals

_NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def _handlers_as_before() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in _NUMBERS}
    # Also when the tests themselves run under nohup.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", _NUMBERS)
def test_ctrl_c_a_request_to_end_and_a_closed_terminal_are_waited_for(number: int) -> None:
    with StopSignals() as signals:
        assert not signals.arrived()
        os.kill(os.getpid(), number)
        assert signals.arrived()


def test_under_nohup_a_closed_terminal_ends_nothing() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with StopSignals() as signals:
        os.kill(os.getpid(), signal.SIGHUP)
        assert not signals.arrived()
