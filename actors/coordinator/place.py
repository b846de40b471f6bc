"""A partition of an internal topic as its broker sees it: who writes it, where it lies, and
what was last published about it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mobula.actors.link.interface import Link
from mobula.actors.rows import Role, Row, RowsReader


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Place:
    topic_id: bytes
    partition: int
    leader_epoch: int
    """Of this broker's leadership."""
    directory: Path
    replica: Link
    rows: RowsReader

    def row(self) -> Row | None:
        """None: this broker does not lead it in that epoch, not yet or not any more."""
        row = self.rows.find(self.topic_id, self.partition)
        if row is None or row.role != Role.LEADER or row.leader_epoch != self.leader_epoch:
            return None
        return row

    def has_enough_replicas(self) -> bool:
        """Whether an append with acks=all would be taken now."""
        row = self.row()
        return row is not None and row.in_sync_replicas >= row.min_in_sync_replicas
