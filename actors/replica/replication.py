"""What a follower does with a leader's answer: cut, copy, take over offsets.

After each answer the log is as the leader says, or as it was; an error of this disk takes
the partition offline and nothing else.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import assert_never

from mobula.actors.purgatory.messages import Cause
from mobula.actors.replica.follower import (
    AwaitMetadata,
    Copy,
    Ignore,
    Rest,
    StartAt,
    Truncate,
)
from mobula.actors.replica.leader_files import LeaderFiles
from mobula.actors.replica.messages import PullAnswer
from mobula.actors.replica.partition import Partition
from mobula.actors.replica.pull_loop import Outcome
from mobula.storage.log import RejectedBatchesError, StorageError

log = logging.getLogger(__name__)


class Replication:
    """For the partitions of one pull loop."""

    def __init__(
        self,
        *,
        data_dir: str,
        on_changed: Callable[[Partition, int], None],
        on_failed: Callable[[Partition, StorageError], None],
        on_no_ranges: Callable[[], None],
    ) -> None:
        """`on_no_ranges` runs when the leader's files turn out not to be readable."""
        self._files: LeaderFiles | None = None
        self._on_changed = on_changed
        self._on_failed = on_failed
        self._on_no_ranges = on_no_ranges
        self._unreadable = 0
        self.copy_from(data_dir)

    def copy_from(self, data_dir: str) -> None:
        """The leader's files are there; empty: it sends bytes."""
        self.close()
        self._files = LeaderFiles(Path(data_dir)) if data_dir else None
        self._unreadable = 0

    def apply(self, partition: Partition, answer: PullAnswer, data: memoryview) -> Outcome:
        follower = partition.follower
        if follower is None:
            return Outcome.GONE
        decision = follower.decide(answer, partition)
        try:
            match decision:
                case Copy():
                    return self._copy(partition, answer, data)
                case Truncate(offset=offset):
                    return self._truncate(partition, offset)
                case StartAt(offset=offset):
                    return self._start_at(partition, offset)
                case Rest(reason=reason):
                    log.debug("partition rests partition=%s reason=%s", partition.name, reason)
                    return Outcome.REST
                case AwaitMetadata():
                    return Outcome.GONE
                case Ignore():
                    return Outcome.QUIET
                case _:
                    assert_never(decision)
        except StorageError as error:
            self._on_failed(partition, error)
            return Outcome.GONE if partition.offline else Outcome.REST

    def forget(self, partition: Partition) -> None:
        """The leader's epoch changed: its files are opened again."""
        if self._files is not None:
            self._files.forget(partition.key)

    def close(self) -> None:
        if self._files is not None:
            self._files.close()

    def _copy(self, partition: Partition, answer: PullAnswer, data: memoryview) -> Outcome:
        outcome = Outcome.QUIET
        if answer.ranges:
            outcome = self._append(partition, answer, data)
            if outcome is not Outcome.MOVED:
                return outcome
        changed = outcome is Outcome.MOVED
        changed |= partition.take_high_watermark(answer.high_watermark)
        if answer.log_start_offset > partition.log.log_start_offset:
            start = min(answer.log_start_offset, partition.high_watermark.offset)
            if partition.log.advance_log_start(start):
                partition.log_start_moved()
                changed, outcome = True, Outcome.MOVED
        if changed:
            self._on_changed(partition, 0)
        return outcome

    def _append(self, partition: Partition, answer: PullAnswer, data: memoryview) -> Outcome:
        at = 0
        try:
            for each in answer.ranges:
                if len(data):
                    end = at + each.length
                    partition.log.append_as_follower(
                        data[at:end],
                        max_leader_epoch=answer.leader_epoch,
                        segment_base=each.segment_base,
                    )
                    at = end
                else:
                    self._copy_range(
                        partition, answer, each.segment_base, each.position, each.length
                    )
        except RejectedBatchesError as error:
            log.warning("pulled batches refused partition=%s reason=%s", partition.name, error)
            self.forget(partition)
            self._on_changed(partition, 0)
            return Outcome.REST
        except OSError as error:
            # The leader's file: retention may have taken it, or it cannot be read at all.
            log.info("leader's segment not read partition=%s reason=%s", partition.name, error)
            self.forget(partition)
            self._on_changed(partition, 0)
            self._unreadable += 1
            if self._unreadable >= _UNREADABLE_LIMIT:
                self._on_no_ranges()
            return Outcome.REST
        return Outcome.MOVED

    def _copy_range(
        self, partition: Partition, answer: PullAnswer, base: int, position: int, length: int
    ) -> None:
        files = self._files
        if files is None:
            raise RejectedBatchesError("ranges came where bytes were asked for")
        fd = files.descriptor(partition.key, partition.topic, base)
        self._unreadable = 0
        partition.log.append_range(fd, position, length, answer.leader_epoch, segment_base=base)

    def _truncate(self, partition: Partition, offset: int) -> Outcome:
        end = partition.log_end_offset
        if offset < partition.high_watermark.offset:
            log.warning(
                "cutting the log below its high watermark partition=%s high_watermark=%d to=%d",
                partition.name,
                partition.high_watermark.offset,
                offset,
            )
        if partition.log.truncate_to(offset):
            log.info("log cut partition=%s from=%d to=%d", partition.name, end, offset)
        partition.truncated()
        self._on_changed(partition, int(Cause.TRUNCATED))
        return Outcome.MOVED

    def _start_at(self, partition: Partition, offset: int) -> Outcome:
        log.warning(
            "dropping the whole log, the leader starts later partition=%s end=%d leader_start=%d",
            partition.name,
            partition.log_end_offset,
            offset,
        )
        partition.log.truncate_fully_and_start_at(offset)
        partition.truncated()
        self._on_changed(partition, int(Cause.TRUNCATED))
        return Outcome.MOVED


_UNREADABLE_LIMIT = 5
"""Failures in a row after which the leader is asked for bytes instead."""
