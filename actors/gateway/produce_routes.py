"""Where a produce to a partition goes: looked up once per partition and metadata change.

Invariant: a route that `find` returns is of a partition that this broker leads, by the
image's present offset.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from mobula.actors.link.interface import Link
from mobula.actors.metadata.image import MetadataImage
from mobula.actors.metadata.topic_name import is_internal
from mobula.actors.rows import RowsReader
from mobula.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from mobula.actors.gateway.services import Services

_MAX_ROUTES: Final = 100_000


class Route(NamedTuple):
    topic_id: bytes
    link: Link
    """To the replica actor."""
    rows: RowsReader
    """That it publishes."""


class ProduceRoutes:
    def __init__(self) -> None:
        self._image: MetadataImage | None = None
        self._offset = -1
        self._routes: dict[tuple[str | bytes, int], Route] = {}

    def known(self, image: MetadataImage) -> dict[tuple[str | bytes, int], Route]:
        """The routes found so far, by (topic's name or id, partition)."""
        if image.offset != self._offset or image is not self._image:
            self._routes.clear()
            self._image, self._offset = image, image.offset
        return self._routes

    def find(self, services: Services, topic: str | bytes, partition: int) -> Route:
        """KafkaError: what the client is told about this partition instead."""
        image = services.image
        if isinstance(topic, str):
            name: str | None = topic
            found = image.topic(topic)
            missing = ErrorCode.unknown_topic_or_partition
        else:
            found = image.topics.get(topic)
            name = None if found is None else found.name
            missing = ErrorCode.unknown_topic_id
        if name is not None and is_internal(name):
            raise KafkaError(ErrorCode.invalid_topic_exception, f"clients may not write to {name}")
        if found is None:
            raise KafkaError(missing)
        state = found.partitions.get(partition)
        if state is None:
            raise KafkaError(ErrorCode.unknown_topic_or_partition)
        if state.leader != services.broker_id:
            raise KafkaError(ErrorCode.not_leader_or_follower)
        topic_id = found.topic_id
        route = Route(
            topic_id,
            services.replica(topic_id, partition),
            services.rows_reader(topic_id, partition),
        )
        routes = self.known(image)
        if len(routes) >= _MAX_ROUTES:
            routes.clear()
        routes[topic, partition] = route
        return route
