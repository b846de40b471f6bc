"""The brokers: who is registered, who lives, who is fenced, who may go.

A session is what the controller remembers of a broker's heartbeats. It is not in the log:
after a restart every broker that was not fenced gets a full session timeout.

Invariant: nothing here changes the image; every method returns the records that would.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from mobula.actors.controller.messages import (
    BrokerAccepted,
    Heartbeat,
    HeartbeatAnswer,
    RegisterBroker,
)
from mobula.actors.controller.outcome import Outcome
from mobula.actors.controller.partitions import PartitionControl
from mobula.actors.metadata.image import MetadataImage
from mobula.actors.metadata.records import BrokerRegistered, BrokerStateChanged, Record
from mobula.protocol.errors import ErrorCode

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Session:
    last_contact_ms: int
    required_offset: int
    """The metadata that the broker must have before it is unfenced."""
    metadata_offset: int = -1
    """What the broker has, as far as it said."""
    handed_over_offset: int = -1
    """Of the last record that took leaderships from it because it shuts down."""
    serving: bool = False
    """It has said to this life of the controller that its logs are recovered."""


class BrokerControl:
    def __init__(
        self,
        image: MetadataImage,
        partitions: PartitionControl,
        session_timeout_ms: int,
        now_ms: int,
    ) -> None:
        self._image = image
        self._partitions = partitions
        self._session_timeout_ms = session_timeout_ms
        self._last_tick_ms = now_ms
        long_ago = now_ms - session_timeout_ms - 1
        self._sessions = {
            broker.broker_id: _Session(long_ago if broker.fenced else now_ms, image.offset)
            for broker in image.brokers.values()
        }

    def register(self, request: RegisterBroker, now_ms: int) -> Outcome[BrokerAccepted]:
        """A broker's new life. The same life may ask again and gets the same epoch."""
        refusal = self._refusal(request, now_ms)
        if refusal is not None:
            log.warning("registration refused broker=%d: %s", request.broker_id, refusal.detail)
            return Outcome([], refusal)
        known = self._image.brokers.get(request.broker_id)
        if known is not None and known.incarnation == request.incarnation:
            self._sessions[request.broker_id].last_contact_ms = now_ms
            return Outcome([], self._accepted(known.broker_epoch))
        records = self._records_of_new_life(request, known)
        broker_epoch = self._image.offset + 1
        self._sessions[request.broker_id] = _Session(now_ms, broker_epoch)
        return Outcome(records, self._accepted(broker_epoch))

    def heartbeat(self, beat: Heartbeat, now_ms: int) -> Outcome[HeartbeatAnswer]:
        broker = self._image.brokers.get(beat.broker_id)
        if broker is None or broker.broker_epoch != beat.broker_epoch:
            return Outcome([], HeartbeatAnswer(ErrorCode.stale_broker_epoch))
        session = self._sessions[beat.broker_id]
        session.last_contact_ms = now_ms
        session.metadata_offset = beat.metadata_offset
        session.serving = not beat.want_fence
        if broker.fenced:
            return self._fenced_heartbeat(broker, session, beat)
        if beat.want_shutdown or broker.in_controlled_shutdown:
            return self._shutdown_heartbeat(broker, session)
        return Outcome([], HeartbeatAnswer(ErrorCode.none, fenced=False))

    def pulled(self, broker_id: int, offset: int) -> None:
        """The broker asked for what follows `offset`, so it has everything up to there."""
        session = self._sessions.get(broker_id)
        if session is not None:
            session.metadata_offset = offset

    def fence_stale(self, now_ms: int) -> list[Record]:
        """Fence the brokers that have been silent too long, all together: none of them may be
        given what another loses."""
        silent = [
            broker
            for broker in self._image.brokers.values()
            if not broker.fenced and not self._in_session(broker.broker_id, now_ms)
        ]
        for broker in silent:
            log.warning(
                "broker is fenced: silent broker=%d for_ms=%d",
                broker.broker_id,
                now_ms - self._sessions[broker.broker_id].last_contact_ms,
            )
        return self._fence(silent) if silent else []

    def tick(self, now_ms: int, expected_ms: int) -> None:
        """Called about every `expected_ms`, before `fence_stale`.

        A controller that itself stood still cannot tell who was silent meanwhile: the
        heartbeats wait in its sockets. So the pause does not count.
        """
        pause_ms = now_ms - self._last_tick_ms - expected_ms
        self._last_tick_ms = now_ms
        if pause_ms > expected_ms:
            for session in self._sessions.values():
                session.last_contact_ms = min(now_ms, session.last_contact_ms + pause_ms)

    def _refusal(self, request: RegisterBroker, now_ms: int) -> BrokerAccepted | None:
        image = self._image
        if request.cluster_id and request.cluster_id != image.cluster_id:
            return BrokerAccepted(
                ErrorCode.inconsistent_cluster_id,
                detail=f"{request.data_dir} belongs to cluster {request.cluster_id}, "
                f"and this is cluster {image.cluster_id}",
            )
        for other in image.brokers.values():
            if other.broker_id != request.broker_id and other.directory_id == request.directory_id:
                return BrokerAccepted(
                    ErrorCode.invalid_registration,
                    detail=f"{request.data_dir} is the data folder of broker {other.broker_id}, "
                    f"not of broker {request.broker_id}",
                )
        known = image.brokers.get(request.broker_id)
        if (
            known is not None
            and known.directory_id != request.directory_id
            and (not known.fenced or self._in_session(request.broker_id, now_ms))
        ):
            return BrokerAccepted(
                ErrorCode.duplicate_broker_registration,
                detail=f"another broker {request.broker_id} is alive with the data folder "
                f"{known.data_dir}",
            )
        return None

    def _records_of_new_life(
        self, request: RegisterBroker, known: BrokerRegistered | None
    ) -> list[Record]:
        # Its replica actors may have kept running all the time: then nothing moves.
        goes_on = known is not None and not known.fenced and not request.replicas_restarted
        # The whole cluster starts: nobody could take over, so everyone keeps what he had.
        begins_anew = (
            known is not None
            and not known.fenced
            and known.directory_id == request.directory_id
            and request.replicas_restarted
            and not self._others_serve(request.broker_id)
        )
        records: list[Record] = [
            BrokerRegistered(
                broker_id=request.broker_id,
                broker_epoch=self._image.offset + 1,
                incarnation=request.incarnation,
                endpoints=request.endpoints,
                rack=request.rack,
                ray_node_id=request.ray_node_id,
                data_dir=request.data_dir,
                directory_id=request.directory_id,
                num_replica_actors=request.num_replica_actors,
                fenced=not (goes_on or begins_anew),
                in_controlled_shutdown=False,
            )
        ]
        if goes_on:
            records += self._partitions.returns(request.broker_id)
        elif begins_anew:
            records += self._partitions.begins_anew(request.broker_id)
        elif known is not None and not known.fenced:
            records += self._partitions.leave([request.broker_id])
        elif known is not None and known.directory_id != request.directory_id:
            records += self._partitions.lost_directory(request.broker_id, known.directory_id)
        log.info(
            "broker registered broker=%d incarnation=%s fenced=%s data_dir=%s",
            request.broker_id,
            request.incarnation,
            not (goes_on or begins_anew),
            request.data_dir,
        )
        return records

    def _others_serve(self, broker_id: int) -> bool:
        return any(
            self._sessions[other.broker_id].serving
            for other in self._image.live_brokers()
            if other.broker_id != broker_id
        )

    def _accepted(self, broker_epoch: int) -> BrokerAccepted:
        return BrokerAccepted(ErrorCode.none, broker_epoch, self._image.cluster_id)

    def _fenced_heartbeat(
        self, broker: BrokerRegistered, session: _Session, beat: Heartbeat
    ) -> Outcome[HeartbeatAnswer]:
        if beat.want_shutdown:
            return Outcome([], HeartbeatAnswer(ErrorCode.none, fenced=True, may_shut_down=True))
        if beat.want_fence or beat.metadata_offset < session.required_offset:
            return Outcome([], HeartbeatAnswer(ErrorCode.none, fenced=True))
        log.info("broker is unfenced broker=%d", broker.broker_id)
        records: list[Record] = [
            BrokerStateChanged(broker.broker_id, broker.broker_epoch, False, False),
            *self._partitions.returns(broker.broker_id),
        ]
        return Outcome(records, HeartbeatAnswer(ErrorCode.none, fenced=False))

    def _shutdown_heartbeat(
        self, broker: BrokerRegistered, session: _Session
    ) -> Outcome[HeartbeatAnswer]:
        """Leaderships move first; it may go when the others know of it."""
        moved = self._partitions.hands_over(broker.broker_id)
        if moved:
            records: list[Record] = []
            if not broker.in_controlled_shutdown:
                records.append(
                    BrokerStateChanged(broker.broker_id, broker.broker_epoch, False, True)
                )
            records += moved
            session.handed_over_offset = self._image.offset + len(records)
            log.info("broker shuts down broker=%d moved=%d", broker.broker_id, len(moved))
            return Outcome(records, HeartbeatAnswer(ErrorCode.none, fenced=False))
        if not self._others_have(session.handed_over_offset, broker.broker_id):
            return Outcome([], HeartbeatAnswer(ErrorCode.none, fenced=False))
        log.info("broker may shut down broker=%d", broker.broker_id)
        return Outcome(
            self._fence([broker], shut_down=True),
            HeartbeatAnswer(ErrorCode.none, fenced=True, may_shut_down=True),
        )

    def _others_have(self, offset: int, broker_id: int) -> bool:
        return all(
            self._sessions[other.broker_id].metadata_offset >= offset
            for other in self._image.brokers.values()
            if other.broker_id != broker_id and self._partitions.is_active(other.broker_id)
        )

    def _fence(
        self, brokers: Sequence[BrokerRegistered], *, shut_down: bool = False
    ) -> list[Record]:
        records: list[Record] = [
            BrokerStateChanged(broker.broker_id, broker.broker_epoch, True, shut_down)
            for broker in brokers
        ]
        records += self._partitions.leave([broker.broker_id for broker in brokers])
        for broker in brokers:
            self._sessions[broker.broker_id].required_offset = self._image.offset + len(records)
        return records

    def _in_session(self, broker_id: int, now_ms: int) -> bool:
        return now_ms - self._sessions[broker_id].last_contact_ms <= self._session_timeout_ms
