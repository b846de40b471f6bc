"""The broker's replica actors: which there are, and what the controller must know of them.

A replica actor that died is reported at once, so that its partitions get other leaders and
leave no ISR waiting. One that comes back gets its metadata only after the controller has
recorded that it was away: so it can never lead on in its old epoch.
"""

from __future__ import annotations

import asyncio
import logging

from mobula.actors.broker.lifecycle import BrokerLifecycle
from mobula.actors.broker.metadata_publisher import MetadataPublisher
from mobula.actors.controller.messages import REPLICA_ACTOR_STATE, ReplicaActorState
from mobula.actors.link.ask import ask
from mobula.actors.link.interface import LinkError
from mobula.actors.placement import is_dedicated, replica_actor_of
from mobula.actors.runtime import Runtime
from mobula.actors.spec import (
    CONTROLLER_NAME,
    REPLICA,
    ActorSpec,
    dedicated_replica_name,
    replica_name,
)
from mobula.actors.tasks import Tasks
from mobula.protocol.errors import ErrorCode

log = logging.getLogger(__name__)

_RETRY_S = 0.2
_CALL_TIMEOUT_MS = 5_000


class ReplicaActors:
    def __init__(
        self,
        runtime: Runtime,
        publisher: MetadataPublisher,
        lifecycle: BrokerLifecycle,
        shared_count: int,
    ) -> None:
        self._runtime = runtime
        self._publisher = publisher
        self._lifecycle = lifecycle
        self._broker_id = runtime.spec.broker_id
        self._shared = [replica_name(self._broker_id, index) for index in range(shared_count)]
        self._dedicated: set[str] = set()
        self._away: set[str] = set()
        """Reported offline, not yet online again."""
        self._was_up: set[str] = set()
        self._stopping = False
        self._tasks = Tasks(runtime)

    def start(self) -> None:
        for name in self._shared:
            self._follow(name)
        self.metadata_changed()

    def stop(self) -> None:
        """From now on actors that go away do so on purpose."""
        self._stopping = True
        self._tasks.cancel()

    def names(self) -> list[str]:
        return [*self._shared, *self.dedicated()]

    def dedicated(self) -> list[str]:
        """Made by this broker as topics came, and so to be ended by it."""
        return sorted(self._dedicated)

    def metadata_changed(self) -> None:
        """Make the actors of new dedicated partitions, end those of partitions now gone."""
        wanted = self._dedicated_partitions()
        for name in wanted.keys() - self._dedicated:
            self._dedicated.add(name)
            self._tasks.spawn(self._spawn_dedicated(name))
        for name in self._dedicated - wanted.keys():
            self._dedicated.discard(name)
            self._publisher.remove(name)
            self._tasks.spawn(self._runtime.kill(name))

    def applied(self, name: str) -> None:
        """The actor has recovered its logs and knows the metadata."""
        if name in self._away:
            self._away.discard(name)
            self._tasks.spawn(self._report(name, online=True))

    def _follow(self, name: str) -> None:
        link = self._runtime.link(name)

        def changed(up: bool) -> None:
            if up:
                self._was_up.add(name)
            elif name in self._was_up and not self._stopping:
                self._was_up.discard(name)
                self._lost(name)

        link.on_state(changed)
        self._publisher.add(name, link, is_replica=True)

    def _lost(self, name: str) -> None:
        log.warning("replica actor was lost actor=%s", name)
        self._away.add(name)
        self._publisher.hold(name)
        self._tasks.spawn(self._report_lost(name))

    async def _report_lost(self, name: str) -> None:
        offset = await self._report(name, online=False)
        await self._lifecycle.wait_until(lambda: self._publisher.image.offset >= offset)
        self._publisher.release(name)

    async def _report(self, name: str, *, online: bool) -> int:
        """Returns the metadata offset at which the controller has taken note."""
        link = self._runtime.link(CONTROLLER_NAME)
        while True:
            message = ReplicaActorState(
                self._broker_id,
                self._lifecycle.broker_epoch,
                online,
                self._partitions_of(name),
            )
            try:
                answer = await ask(link, REPLICA_ACTOR_STATE, message, timeout_ms=_CALL_TIMEOUT_MS)
            except LinkError as error:
                log.info("replica state not reported actor=%s reason=%s", name, error)
            else:
                if answer.error_code == ErrorCode.none:
                    return answer.metadata_offset
                log.warning(
                    "replica state refused actor=%s code=%s",
                    name,
                    ErrorCode(answer.error_code).name,
                )
            await asyncio.sleep(_RETRY_S)

    async def _spawn_dedicated(self, name: str) -> None:
        spec = self._runtime.spec
        await self._runtime.spawn(
            ActorSpec(
                cluster=spec.cluster,
                kind=REPLICA,
                local_name=name,
                broker_id=self._broker_id,
                config=spec.config,
                run_dir=spec.run_dir,
                data_dir=spec.data_dir,
            )
        )
        if name in self._dedicated:
            self._follow(name)
        else:
            # Its topic was deleted meanwhile, when there was nothing to end yet.
            await self._runtime.kill(name)

    def _dedicated_partitions(self) -> dict[str, tuple[bytes, int]]:
        image = self._publisher.image
        return {
            dedicated_replica_name(self._broker_id, topic_id, index): (topic_id, index)
            for topic_id, topic in image.topics.items()
            if is_dedicated(image, topic_id)
            for index, partition in topic.partitions.items()
            if self._broker_id in partition.replicas
        }

    def _partitions_of(self, name: str) -> list[tuple[bytes, int]]:
        image = self._publisher.image
        return [
            (topic_id, index)
            for topic_id, topic in image.topics.items()
            for index, partition in topic.partitions.items()
            if self._broker_id in partition.replicas
            and replica_actor_of(image, self._broker_id, topic_id, index) == name
        ]
