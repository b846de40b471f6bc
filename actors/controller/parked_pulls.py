"""Pulls of the metadata log that wait for the next record: at most one a broker.

Invariant: each is answered exactly once, by new records or at its time with none, unless
its caller is gone.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import NamedTuple

from mobula.actors.controller.messages import PulledMetadata, PullMetadata
from mobula.actors.controller.metadata_feed import MetadataFeed
from mobula.actors.link.interface import Reply


class _Parked(NamedTuple):
    pull: PullMetadata
    reply: Reply
    timer: asyncio.TimerHandle


class ParkedPulls:
    def __init__(self, loop: asyncio.AbstractEventLoop, feed: MetadataFeed) -> None:
        self._loop = loop
        self._feed = feed
        self._parked: dict[int, _Parked] = {}

    def take(self, pull: PullMetadata, reply: Reply, *, now: bool) -> None:
        """Answer at once if `now` and there is something new, else when there is."""
        # A broker has one pull under way: an older one was given up.
        self._give_up(pull.broker_id)
        answer = self._feed.answer(pull) if now else None
        if answer is not None:
            reply(answer)
            return
        timer = self._loop.call_later(
            pull.max_wait_ms / 1000, partial(self._give_up, pull.broker_id)
        )
        self._parked[pull.broker_id] = _Parked(pull, reply, timer)
        reply.on_cancel = partial(self._forget, reply, pull.broker_id)

    def answer(self) -> None:
        """Records were committed: one answer for each broker that waits."""
        for broker_id, parked in list(self._parked.items()):
            answer = self._feed.answer(parked.pull)
            if answer is not None:
                self._end(broker_id, parked, answer)

    def give_up(self) -> None:
        """Answer all, if only that there is nothing."""
        for broker_id in list(self._parked):
            self._give_up(broker_id)

    def _give_up(self, broker_id: int) -> None:
        parked = self._parked.get(broker_id)
        if parked is not None:
            self._end(broker_id, parked, PulledMetadata(False, parked.pull.offset, []))

    def _end(self, broker_id: int, parked: _Parked, answer: PulledMetadata) -> None:
        del self._parked[broker_id]
        parked.timer.cancel()
        parked.reply.on_cancel = None
        parked.reply(answer)

    def _forget(self, reply: Reply, broker_id: int) -> None:
        parked = self._parked.get(broker_id)
        if parked is not None and parked.reply is reply:
            parked.timer.cancel()
            del self._parked[broker_id]
