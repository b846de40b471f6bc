"""Tells the controller which partitions cannot be used here, and which can again.

Invariant: a report is sent until the controller has taken note of it; what was said of one
partition is heard in the order in which it was said.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeAlias

from mobula.actors.controller.messages import (
    REPLICA_ACTOR_STATE,
    ReplicaActorAccepted,
    ReplicaActorState,
)
from mobula.actors.end_of_turn import Scheduler
from mobula.actors.link.interface import Link, LinkError
from mobula.actors.replica.pull_session import Key
from mobula.protocol.errors import ErrorCode

log = logging.getLogger(__name__)

_RETRY_S = 0.5
_TIMEOUT_MS = 5_000

OnNoted: TypeAlias = Callable[[Key, int], None]
"""`on_noted(key, metadata_offset)`: the metadata that takes account of it."""


class StateReports:
    def __init__(
        self,
        *,
        controller: Callable[[], Link],
        scheduler: Scheduler,
        broker_id: int,
        broker_epoch: Callable[[], int],
    ) -> None:
        self._controller = controller
        self._scheduler = scheduler
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._waiting: dict[Key, tuple[bool, OnNoted | None]] = {}
        self._busy = False

    def report(self, key: Key, *, online: bool, on_noted: OnNoted | None = None) -> None:
        """Replaces what waits to be said of the same partition."""
        self._waiting[key] = (online, on_noted)
        self._send_after(0.0)

    def _send_after(self, delay_s: float) -> None:
        if not self._busy and self._waiting:
            self._busy = True
            self._scheduler.call_later(delay_s, self._send)

    def _send(self) -> None:
        online = next(iter(self._waiting.values()))[0]
        sent = {key: report for key, report in self._waiting.items() if report[0] is online}

        def answered(answer: ReplicaActorAccepted, _bulk: memoryview) -> None:
            self._busy = False
            if answer.error_code != ErrorCode.none:
                log.info("replica states not taken code=%s", ErrorCode(answer.error_code).name)
                self._send_after(_RETRY_S)
                return
            for key, report in sent.items():
                if self._waiting.get(key) is report:
                    del self._waiting[key]
                if report[1] is not None:
                    report[1](key, answer.metadata_offset)
            self._send_after(0.0)

        def failed(error: LinkError) -> None:
            log.info("replica states not reported reason=%s", error.reason)
            self._busy = False
            self._send_after(_RETRY_S)

        self._controller().call(
            REPLICA_ACTOR_STATE,
            ReplicaActorState(self._broker_id, self._broker_epoch(), online, list(sent)),
            answered,
            failed,
            timeout_ms=_TIMEOUT_MS,
        )
