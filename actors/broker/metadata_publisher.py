"""Keeps the broker's own actors up to date with the metadata log.

Replica actors come first: the others (gateways, purgatory) get a record only when every
replica actor that is up has applied it, so a gateway never knows a leader that its
replica actor does not know. An actor that comes back gets the whole image.

Invariant: each actor sees every record once, in order, beginning with a snapshot.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from mobula.actors.broker.messages import METADATA_UPDATE, MetadataUpdate
from mobula.actors.link.interface import Link, LinkError
from mobula.actors.link.method import Nothing
from mobula.actors.metadata.image import MetadataImage
from mobula.actors.metadata.records import decode_record, encode_record

log = logging.getLogger(__name__)

_HISTORY_RECORDS = 20_000
_UPDATE_TIMEOUT_MS = 600_000
"""Opening thousands of logs after a crash takes its time; a dead actor breaks its link."""


@dataclass(slots=True, eq=False)
class _Child:
    name: str
    link: Link
    is_replica: bool
    offset: int = -1
    """Applied up to here; -1: needs a snapshot."""
    up: bool = False
    held: bool = False
    """A replica actor that came back waits until the controller knows it was away."""
    sending: bool = False
    life: int = 0


class MetadataPublisher:
    def __init__(self, on_applied: Callable[[str, bool], None]) -> None:
        self.image = MetadataImage()
        self.broker_epoch = -1
        self._history: list[bytes] = []
        self._history_end = -1
        self._children: dict[str, _Child] = {}
        self._on_applied = on_applied
        """`on_applied(local name, first)` after each update that an actor applied."""

    def add(self, name: str, link: Link, *, is_replica: bool, held: bool = False) -> None:
        if name in self._children:
            return
        child = _Child(name, link, is_replica, held=held)
        self._children[name] = child
        link.on_state(lambda up: self._link_changed(child, up))

    def remove(self, name: str) -> None:
        child = self._children.pop(name, None)
        if child is not None:
            child.life += 1
            self._advance()

    def hold(self, name: str) -> None:
        """Send nothing to this actor until `release`."""
        if name in self._children:
            self._children[name].held = True

    def release(self, name: str) -> None:
        child = self._children.get(name)
        if child is not None:
            child.held = False
            self._advance()

    def applied(self, name: str) -> bool:
        """The actor has everything that the broker knows."""
        child = self._children.get(name)
        return child is not None and child.up and child.offset == self.image.offset >= 0

    def all_applied(self) -> bool:
        return all(child.up and child.offset >= 0 for child in self._children.values())

    def tick(self) -> None:
        """Try again what failed."""
        self._advance()

    def received(self, *, snapshot: bool, offset: int, records: list[bytes]) -> None:
        """The controller's log goes on."""
        if snapshot:
            self.image = MetadataImage()
            self._history.clear()
            for child in self._children.values():
                child.offset = -1
        self.image.replay_all(decode_record(record) for record in records)
        self.image.offset = offset
        self._history_end = offset
        if not snapshot:
            self._history += records
            del self._history[:-_HISTORY_RECORDS]
        self._advance()

    def _link_changed(self, child: _Child, up: bool) -> None:
        child.up = up
        child.offset = -1
        child.sending = False
        child.life += 1
        self._advance()

    def _advance(self) -> None:
        for child in self._children.values():
            if child.is_replica:
                self._send(child, self.image.offset)
        behind = [
            child.offset
            for child in self._children.values()
            if child.is_replica and child.up and not child.held
        ]
        ready = min(behind, default=self.image.offset)
        for child in self._children.values():
            if not child.is_replica:
                self._send(child, ready)

    def _send(self, child: _Child, upto: int) -> None:
        if not child.up or child.held or child.sending or upto < 0 or child.offset >= upto:
            return
        update = self._update_for(child, upto)
        if update is None:
            return
        child.sending = True
        life = child.life

        def applied(_reply: Nothing, _bulk: memoryview) -> None:
            if child.life != life:
                return
            first = child.offset < 0
            child.sending = False
            child.offset = update.offset
            self._on_applied(child.name, first)
            self._advance()

        def failed(error: LinkError) -> None:
            if child.life != life:
                return
            log.warning("metadata update failed actor=%s reason=%s", child.name, error)
            child.sending = False
            child.offset = -1

        child.link.call(METADATA_UPDATE, update, applied, failed, timeout_ms=_UPDATE_TIMEOUT_MS)

    def _update_for(self, child: _Child, upto: int) -> MetadataUpdate | None:
        first_kept = self._history_end - len(self._history) + 1
        if child.offset >= 0 and child.offset + 1 >= first_kept:
            start = child.offset + 1 - first_kept
            records = self._history[start : upto + 1 - first_kept]
            return MetadataUpdate(self.broker_epoch, False, upto, records)
        if upto != self.image.offset:
            return None
        records = [encode_record(record) for record in self.image.snapshot()]
        return MetadataUpdate(self.broker_epoch, True, upto, records)
