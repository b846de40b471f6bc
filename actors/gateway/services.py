"""What a handler may use: the gateway's view of the cluster and its ways to act."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

from mobula.actors.gateway.api_version_manager import ApiVersionManager
from mobula.actors.gateway.auto_topic_creation_manager import AutoTopicCreationManager
from mobula.actors.gateway.awaited_acks import AwaitedAcks
from mobula.actors.gateway.fetch_session import FetchSessionCache
from mobula.actors.gateway.forwarding_manager import ForwardingManager
from mobula.actors.gateway.log_reader import LogReader
from mobula.actors.gateway.produce_routes import ProduceRoutes
from mobula.actors.gateway.producer_id_manager import ProducerIdManager
from mobula.actors.gateway.response_cache import ResponseCache
from mobula.actors.link.interface import Link
from mobula.actors.metadata.image import MetadataImage
from mobula.actors.placement import replica_actor_of
from mobula.actors.rows import Row, RowsReader
from mobula.actors.runtime import Runtime
from mobula.actors.spec import CONTROLLER_NAME, purgatory_name, rows_path

if TYPE_CHECKING:
    from mobula.actors.config import Config


@dataclass(slots=True, kw_only=True)
class Services:
    runtime: Runtime
    broker_id: int
    config: Config
    image: MetadataImage
    """Replaced as a whole by a snapshot, changed in place by later records."""
    rows: dict[str, RowsReader]
    """By replica actor; filled by `rows_reader`."""
    versions: ApiVersionManager = field(default_factory=lambda: ApiVersionManager(()))
    """Of the table of handlers that is served."""
    forwarding: ForwardingManager = field(init=False)
    auto_topic_creation: AutoTopicCreationManager = field(init=False)
    producer_ids: ProducerIdManager = field(init=False)
    produce_routes: ProduceRoutes = field(init=False, default_factory=ProduceRoutes)
    awaited_acks: AwaitedAcks = field(init=False)
    metadata_responses: ResponseCache = field(init=False, default_factory=ResponseCache)
    fetch_sessions: FetchSessionCache = field(init=False)
    logs: LogReader = field(init=False)

    _purgatory: Link | None = field(init=False, default=None, repr=False)

    def __post_init__(self) -> None:
        self.awaited_acks = AwaitedAcks(self.runtime)
        self.forwarding = ForwardingManager(self.runtime)
        self.auto_topic_creation = AutoTopicCreationManager(self.forwarding, self.config)
        self.producer_ids = ProducerIdManager(self.runtime, self.broker_id)
        slots = self.config.integer("max.incremental.fetch.session.cache.slots")
        gateways = self.config.integer("num.network.threads")
        self.fetch_sessions = FetchSessionCache(-(-slots // gateways), Random())
        self.logs = LogReader(self)

    def replica(self, topic_id: bytes, partition: int) -> Link:
        """The link to this broker's actor for the partition."""
        return self.runtime.link(replica_actor_of(self.image, self.broker_id, topic_id, partition))

    def row(self, topic_id: bytes, partition: int) -> Row | None:
        """What this broker's replica last published, or None when it holds none."""
        return self.rows_reader(topic_id, partition).find(topic_id, partition)

    def rows_reader(self, topic_id: bytes, partition: int) -> RowsReader:
        """The table that this broker's actor for the partition publishes."""
        actor = replica_actor_of(self.image, self.broker_id, topic_id, partition)
        reader = self.rows.get(actor)
        if reader is None:
            reader = RowsReader(rows_path(self.runtime.spec.run_dir, actor))
            self.rows[actor] = reader
            self.runtime.link(actor).on_state(lambda up: reader.reopen() if up else None)
        return reader

    @property
    def purgatory(self) -> Link:
        link = self._purgatory
        if link is None:
            link = self._purgatory = self.runtime.link(purgatory_name(self.broker_id))
        return link

    @property
    def controller(self) -> Link:
        return self.runtime.link(CONTROLLER_NAME)
