"""A broker's life as the controller sees it: registered, fenced, unfenced, leaving.

Owns the heartbeats and the pull of the metadata log. Both go on for as long as the actor
lives: a lost controller is asked again, a stale epoch registers again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from mobula.actors.controller.messages import (
    HEARTBEAT,
    PULL_METADATA,
    REGISTER_BROKER,
    Heartbeat,
    PulledMetadata,
    PullMetadata,
    RegisterBroker,
)
from mobula.actors.link.ask import ask
from mobula.actors.link.interface import Link, LinkError
from mobula.protocol.errors import ErrorCode

log = logging.getLogger(__name__)

_CALL_TIMEOUT_MS = 5_000
_PULL_WAIT_MS = 10_000
_RETRY_S = 0.1


class RegistrationRefused(Exception):
    """The controller will never take this broker as it is. One sentence for the user."""


class BrokerLifecycle:
    """`registration` is what the broker says of itself; its first answer fixes the epoch."""

    def __init__(
        self,
        controller: Link,
        registration: RegisterBroker,
        *,
        heartbeat_interval_ms: int,
        metadata_offset: Callable[[], int],
        on_metadata: Callable[[PulledMetadata], None],
        on_epoch: Callable[[int], None],
    ) -> None:
        self._controller = controller
        self._registration = registration
        self._interval_s = heartbeat_interval_ms / 1000
        self._metadata_offset = metadata_offset
        self._on_metadata = on_metadata
        self._on_epoch = on_epoch
        self._nudge = asyncio.Event()
        self._changed = asyncio.Condition()
        self.broker_epoch = -1
        self.cluster_id = registration.cluster_id
        self.fenced = True
        self.may_shut_down = False
        self.recovered = False
        self.leaving = False

    async def register(self) -> None:
        """Returns once the controller has taken this life of the broker."""
        while True:
            try:
                answer = await ask(
                    self._controller,
                    REGISTER_BROKER,
                    self._registration,
                    timeout_ms=_CALL_TIMEOUT_MS,
                )
            except LinkError as error:
                log.info("waiting for the controller reason=%s", error)
                await asyncio.sleep(_RETRY_S)
                continue
            code = ErrorCode(answer.error_code)
            if code is ErrorCode.none:
                break
            if code in (ErrorCode.inconsistent_cluster_id, ErrorCode.invalid_registration):
                raise RegistrationRefused(answer.detail or code.name)
            log.warning("registration refused code=%s detail=%s", code.name, answer.detail)
            await asyncio.sleep(_RETRY_S * 5)
        self.cluster_id = answer.cluster_id
        self.broker_epoch = answer.broker_epoch
        self._on_epoch(answer.broker_epoch)
        log.info("registered broker_epoch=%d", answer.broker_epoch)

    def nudge(self) -> None:
        """Something changed that the controller should hear of now."""
        self._nudge.set()

    async def wait_until(self, condition: Callable[[], bool]) -> None:
        async with self._changed:
            await self._changed.wait_for(condition)

    async def changed(self) -> None:
        """Let those in `wait_until` look again."""
        async with self._changed:
            self._changed.notify_all()

    async def heartbeats(self) -> None:
        # A controller that comes back must hear at once who serves: it would take a broker
        # that registers before that for the first of a cluster that starts as a whole.
        self._controller.on_state(lambda up: self.nudge() if up else None)
        while True:
            message = Heartbeat(
                self._registration.broker_id,
                self.broker_epoch,
                self._metadata_offset(),
                not self.recovered,
                self.leaving,
            )
            try:
                answer = await ask(
                    self._controller, HEARTBEAT, message, timeout_ms=_CALL_TIMEOUT_MS
                )
            except LinkError as error:
                log.info("heartbeat not answered reason=%s", error)
                await self._pause(_RETRY_S * 2)
                continue
            if answer.error_code != ErrorCode.none:
                log.warning("heartbeat refused code=%s", ErrorCode(answer.error_code).name)
                await self.register()
                continue
            if answer.fenced != self.fenced:
                log.info("broker is %s", "fenced" if answer.fenced else "unfenced")
            self.fenced = answer.fenced
            self.may_shut_down = answer.may_shut_down
            await self.changed()
            # Until the broker serves, every round trip is start-up time.
            settled = not self.fenced and not self.leaving
            await self._pause(self._interval_s if settled else _RETRY_S)

    async def follow_metadata(self) -> None:
        while True:
            message = PullMetadata(
                self._registration.broker_id,
                self._metadata_offset(),
                self.cluster_id,
                _PULL_WAIT_MS,
            )
            try:
                pulled = await ask(
                    self._controller,
                    PULL_METADATA,
                    message,
                    timeout_ms=_PULL_WAIT_MS + _CALL_TIMEOUT_MS,
                )
            except LinkError as error:
                log.info("metadata not pulled reason=%s", error)
                await asyncio.sleep(_RETRY_S)
                continue
            if pulled.snapshot or pulled.records:
                self._on_metadata(pulled)
                await self.changed()

    async def _pause(self, seconds: float) -> None:
        self._nudge.clear()
        try:
            await asyncio.wait_for(self._nudge.wait(), seconds)
        except TimeoutError:
            return
