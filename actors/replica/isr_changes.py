"""Asks the controller for other ISRs, many partitions in one call.

Invariant: one call is under way at a time, and a partition has at most one proposal in it
or waiting for it. A proposal is sent until the controller has judged it or the partition
has gone on without it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from mobula.actors.controller.messages import (
    ALTER_PARTITION,
    AlteredPartitions,
    AlterPartition,
    PartitionAltered,
    PartitionIsr,
)
from mobula.actors.end_of_turn import Scheduler
from mobula.actors.link.interface import Link, LinkError
from mobula.actors.replica.leader import IsrAnswer, PartitionLeader, ProposeIsr
from mobula.actors.replica.pull_session import Key
from mobula.protocol.errors import ErrorCode

log = logging.getLogger(__name__)

_RETRY_S = 0.1
_TIMEOUT_MS = 10_000


class Led(Protocol):
    key: Key
    leader: PartitionLeader | None

    @property
    def name(self) -> str: ...


class IsrChanges:
    def __init__(
        self,
        *,
        controller: Callable[[], Link],
        scheduler: Scheduler,
        broker_id: int,
        broker_epoch: Callable[[], int],
        on_settled: Callable[[Led], None],
    ) -> None:
        """`on_settled` runs when a partition's ISR is known again."""
        self._controller = controller
        self._scheduler = scheduler
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._on_settled = on_settled
        self._waiting: dict[Key, tuple[Led, ProposeIsr]] = {}
        self._sent: list[tuple[Led, ProposeIsr]] = []
        self._scheduled = False
        self._failures = 0

    def propose(self, partition: Led, proposal: ProposeIsr) -> None:
        log.info(
            "asking for another ISR partition=%s isr=%s epoch=%d",
            partition.name,
            list(proposal.new_isr),
            proposal.leader_epoch,
        )
        self._waiting[partition.key] = (partition, proposal)
        self._send_soon(0.0)

    def _send_soon(self, delay_s: float) -> None:
        if self._scheduled or self._sent:
            return
        self._scheduled = True
        if delay_s:
            self._scheduler.call_later(delay_s, self._send)
        else:
            self._scheduler.call_soon(self._send)

    def _send(self) -> None:
        self._scheduled = False
        # What the partition no longer waits for was settled by metadata, or it is not led.
        self._sent = [each for each in self._waiting.values() if _is_pending(*each)]
        self._waiting.clear()
        if not self._sent:
            return
        parts = [
            PartitionIsr(
                partition.key[0],
                partition.key[1],
                proposal.leader_epoch,
                proposal.partition_epoch,
                list(proposal.new_isr),
                list(proposal.broker_epochs),
            )
            for partition, proposal in self._sent
        ]
        self._controller().call(
            ALTER_PARTITION,
            AlterPartition(self._broker_id, self._broker_epoch(), parts),
            self._answered,
            self._failed,
            timeout_ms=_TIMEOUT_MS,
        )

    def _answered(self, altered: AlteredPartitions, _bulk: memoryview) -> None:
        sent, self._sent = self._sent, []
        self._failures = 0
        if altered.error_code != ErrorCode.none:
            self._again(sent, ErrorCode(altered.error_code).name)
            return
        retry = [
            (partition, proposal)
            for (partition, proposal), answer in zip(sent, altered.parts, strict=True)
            if not self._judged(partition, proposal, answer)
        ]
        if retry:
            self._again(retry, "refused")
        elif self._waiting:
            self._send_soon(0.0)

    def _judged(self, partition: Led, proposal: ProposeIsr, answer: PartitionAltered) -> bool:
        if not _is_pending(partition, proposal):
            return True
        assert partition.leader is not None
        outcome = partition.leader.isr_answered(
            proposal,
            ErrorCode(answer.error_code),
            isr=answer.isr,
            leader_epoch=answer.leader_epoch,
            partition_epoch=answer.partition_epoch,
        )
        if outcome is IsrAnswer.SETTLED:
            log.info(
                "ISR settled partition=%s isr=%s code=%s",
                partition.name,
                sorted(partition.leader.isr),
                ErrorCode(answer.error_code).name,
            )
            self._on_settled(partition)
        return outcome is not IsrAnswer.RETRY

    def _failed(self, error: LinkError) -> None:
        sent, self._sent = self._sent, []
        self._again(sent, error.reason)

    def _again(self, proposals: list[tuple[Led, ProposeIsr]], reason: str) -> None:
        level = logging.DEBUG if self._failures else logging.INFO
        log.log(level, "ISRs not changed, asking again count=%d reason=%s", len(proposals), reason)
        self._failures += 1
        for partition, proposal in proposals:
            self._waiting.setdefault(partition.key, (partition, proposal))
        self._send_soon(_RETRY_S)


def _is_pending(partition: Led, proposal: ProposeIsr) -> bool:
    return partition.leader is not None and partition.leader.pending is proposal
