"""The broker's replica actors: those of dedicated topics come and go with their topics."""

from __future__ import annotations

import asyncio
from typing import Any

from mobula.actors.broker.metadata_publisher import MetadataPublisher
from mobula.actors.broker.replica_actors import ReplicaActors
from mobula.actors.metadata.image import TOPIC_RESOURCE
from mobula.actors.metadata.records import (
    ConfigChanged,
    PartitionChanged,
    Record,
    TopicCreated,
    TopicRemoved,
    encode_record,
)
from mobula.actors.spec import BROKER, ActorSpec, dedicated_replica_name
from tests.unit.replica.fakes import TOPIC, FakeLink

DEDICATED = dedicated_replica_name(0, TOPIC, 0)


class FakeRuntime:
    """Makes actors when it is told to."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.spec = ActorSpec(
            cluster="c", kind=BROKER, local_name="broker-0/broker", broker_id=0, config={},
            run_dir="", data_dir="",
        )  # fmt: skip
        self.may_spawn = asyncio.Event()
        self.running: set[str] = set()

    def link(self, name: str) -> FakeLink:
        return FakeLink(name)

    async def spawn(self, spec: ActorSpec) -> None:
        await self.may_spawn.wait()
        self.running.add(spec.local_name)

    async def kill(self, name: str) -> None:
        self.running.discard(name)


def received(publisher: MetadataPublisher, *records: Record) -> None:
    offset = publisher.image.offset + len(records)
    publisher.received(snapshot=False, offset=offset, records=[encode_record(r) for r in records])


def test_an_actor_whose_topic_is_deleted_while_it_is_made_does_not_stay() -> None:
    async def scenario() -> None:
        runtime: Any = FakeRuntime()
        publisher = MetadataPublisher(lambda _name, _first: None)
        lifecycle: Any = None
        actors = ReplicaActors(runtime, publisher, lifecycle, 1)
        received(
            publisher,
            TopicCreated(TOPIC, "topic"),
            ConfigChanged(TOPIC_RESOURCE, "topic", "replica.actor", "dedicated"),
            PartitionChanged(TOPIC, 0, [0], [0], 0, 0, 0),
        )
        actors.metadata_changed()
        await asyncio.sleep(0)
        received(publisher, TopicRemoved(TOPIC))
        actors.metadata_changed()
        runtime.may_spawn.set()
        for _ in range(5):
            await asyncio.sleep(0)
        assert actors.dedicated() == []
        assert DEDICATED not in runtime.running

    asyncio.run(scenario())
