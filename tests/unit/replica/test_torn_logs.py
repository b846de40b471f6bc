"""A replica that lost its end leads only by metadata written after the controller knew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mobula.actors.controller.messages import ReplicaActorAccepted, ReplicaActorState
from mobula.actors.link.interface import LinkError
from mobula.actors.replica.state_reports import StateReports
from mobula.actors.replica.torn_logs import TornLogs
from mobula.protocol.errors import ErrorCode

KEY = (b"t" * 16, 0)


class Controller:
    """Keeps reports until the test answers them; also runs what is scheduled, at once."""

    def __init__(self) -> None:
        self.reports: list[ReplicaActorState] = []
        self._open: list[tuple[Callable[..., None], Callable[[LinkError], None]]] = []

    def call(
        self, _method: Any, message: Any, on_reply: Any, on_error: Any, **_options: Any
    ) -> int:
        self.reports.append(message)
        self._open.append((on_reply, on_error))
        return 0

    def call_later(self, _delay_s: float, callback: Callable[[], None]) -> None:
        callback()

    def answer(self, metadata_offset: int = -1, code: ErrorCode = ErrorCode.none) -> None:
        on_reply, _ = self._open.pop(0)
        on_reply(ReplicaActorAccepted(int(code), metadata_offset), memoryview(b""))

    def break_link(self) -> None:
        _, on_error = self._open.pop(0)
        on_error(LinkError("controller", "gone", sent=True))


def bench() -> tuple[Controller, TornLogs, list[tuple[bytes, int]]]:
    controller = Controller()
    trusted: list[tuple[bytes, int]] = []
    reports = StateReports(
        controller=lambda: controller,  # type: ignore[arg-type, return-value]
        scheduler=controller,  # type: ignore[arg-type]
        broker_id=1,
        broker_epoch=lambda: 7,
    )
    return controller, TornLogs(reports, trusted.append), trusted


def test_a_whole_log_may_lead_at_once() -> None:
    _, torn, _ = bench()
    assert torn.may_lead(KEY, 0)


def test_a_torn_log_is_reported_away_and_then_back() -> None:
    controller, torn, trusted = bench()
    torn.found(KEY)
    assert [(report.online, report.partitions) for report in controller.reports] == [(False, [KEY])]
    assert not torn.may_lead(KEY, 1 << 40)
    controller.answer(metadata_offset=12)
    assert trusted == [KEY]
    assert [report.online for report in controller.reports] == [False, True]


def test_a_torn_log_leads_by_newer_metadata_only() -> None:
    controller, torn, _ = bench()
    torn.found(KEY)
    controller.answer(metadata_offset=12)
    assert not torn.may_lead(KEY, 11)
    assert torn.may_lead(KEY, 12)


def test_a_report_is_sent_again_until_the_controller_has_taken_note() -> None:
    controller, torn, trusted = bench()
    torn.found(KEY)
    controller.break_link()
    controller.answer(code=ErrorCode.stale_broker_epoch)
    assert trusted == []
    assert [report.online for report in controller.reports] == [False, False, False]
    controller.answer(metadata_offset=3)
    assert trusted == [KEY]
