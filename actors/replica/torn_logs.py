"""Logs that lost their end before this life: they may miss what was acknowledged.

Such a replica must not lead before the controller had the chance to let another member of
the ISR lead, else the others would cut off what only they still have. So it is reported as
away and back again: away moves leadership and takes it out of the ISR; back lets it follow,
catch up, and lead where nobody else could.

Invariant: a torn replica leads only by metadata that the controller wrote after it knew.
"""

from __future__ import annotations

from collections.abc import Callable

from mobula.actors.replica.pull_session import Key
from mobula.actors.replica.state_reports import StateReports

_NOT_YET = 1 << 62


class TornLogs:
    def __init__(self, reports: StateReports, on_trusted: Callable[[Key], None]) -> None:
        """`on_trusted`: the partition may have a role that was withheld."""
        self._reports = reports
        self._on_trusted = on_trusted
        self._trusted_from: dict[Key, int] = {}

    def found(self, key: Key) -> None:
        self._trusted_from[key] = _NOT_YET
        self._reports.report(key, online=False, on_noted=self._noted)

    def may_lead(self, key: Key, metadata_offset: int) -> bool:
        return not self._trusted_from or metadata_offset >= self._trusted_from.get(key, -1)

    def all_noted(self) -> bool:
        return _NOT_YET not in self._trusted_from.values()

    def forget(self, key: Key) -> None:
        self._trusted_from.pop(key, None)

    def _noted(self, key: Key, metadata_offset: int) -> None:
        if key not in self._trusted_from:
            return
        self._trusted_from[key] = metadata_offset
        self._reports.report(key, online=True)
        self._on_trusted(key)
