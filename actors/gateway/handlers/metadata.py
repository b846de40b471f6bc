"""Metadata (key 3, v0-13).

Behaviour: brokers, topics and partition leaders as the request's listener reaches them. A
topic that does not exist is created on request where the client and the configuration
allow it; the client is told UNKNOWN_TOPIC_OR_PARTITION meanwhile and asks again. Clients
cannot talk to the controller; a live broker, which forwards, is named in its place.
Versions: to v0 an empty list of topics means all, from v1 null does; v0 leaves replicas out
that are away; v4 may forbid auto-creation; v6 knows LISTENER_NOT_FOUND; v10 has topic ids in
the answer, and v12 looks topics up by them (v10 and v11 must not); v13 has a code of its own.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from mobula.actors.authorized_operations import ALL_ON_CLUSTER, ALL_ON_TOPIC, NOT_ASKED
from mobula.actors.gateway.request import Request
from mobula.actors.gateway.services import Services
from mobula.actors.metadata.image import MetadataImage, TopicImage
from mobula.actors.metadata.records import Endpoint, PartitionChanged
from mobula.actors.metadata.topic_name import is_internal, topic_name_problem
from mobula.protocol.api import Api, ApiKey
from mobula.protocol.errors import ErrorCode, KafkaError
from mobula.protocol.messages import build_response, decode_request, encode

API = Api(ApiKey.METADATA, range(14))

_FIRST_WITH_NULL_FOR_ALL = 1
_FIRST_WITH_LISTENER_NOT_FOUND = 6
_FIRST_BY_TOPIC_ID = 12
_NO_LEADER = -1


def handle(request: Request, services: Services) -> None:
    version = request.header.api_version
    image = services.image
    key = (request.context.listener, version, bytes(request.body))
    response = services.metadata_responses.get(image, key)
    if response is None:
        asked = decode_request(API.key, version, request.body)
        answer = _Answer(asked, version, request.context.listener, image, services.broker_id)
        tree = answer.tree()
        response = encode(build_response(API.key, version, tree))
        missing = [name for name in answer.missing if not is_internal(name)]
        if (
            missing
            and getattr(asked, "allow_auto_topic_creation", True)
            and services.config.boolean("auto.create.topics.enable")
        ):
            services.auto_topic_creation.create(missing, request.context)
        else:
            services.metadata_responses.put(key, response)
    request.respond(response)


class _Answer:
    def __init__(
        self, asked: Any, version: int, listener: str, image: MetadataImage, broker_id: int
    ) -> None:
        self._asked = asked
        self._version = version
        self._listener = listener
        self._image = image
        self._broker_id = broker_id
        self._reachable = {
            broker.broker_id: endpoint
            for broker in image.live_brokers()
            if (endpoint := self._endpoint(broker.endpoints)) is not None
        }
        self._topic_operations = (
            ALL_ON_TOPIC
            if getattr(asked, "include_topic_authorized_operations", False)
            else NOT_ASKED
        )
        self.missing: list[str] = []
        """Topics with a good name that do not exist."""

    def tree(self) -> dict[str, Any]:
        image = self._image
        all_operations = getattr(self._asked, "include_cluster_authorized_operations", False)
        if self._broker_id in self._reachable:
            controller_id = self._broker_id
        else:
            controller_id = min(self._reachable, default=-1)
        return {
            "brokers": [
                {
                    "node_id": broker_id,
                    "host": endpoint.host,
                    "port": endpoint.port,
                    "rack": image.brokers[broker_id].rack,
                }
                for broker_id, endpoint in sorted(self._reachable.items())
            ],
            "cluster_id": image.cluster_id,
            "controller_id": controller_id,
            "topics": self._topics(),
            "cluster_authorized_operations": ALL_ON_CLUSTER if all_operations else NOT_ASKED,
        }

    def _topics(self) -> list[dict[str, Any]]:
        topics = self._asked.topics
        if topics is None or (not topics and self._version < _FIRST_WITH_NULL_FOR_ALL):
            return [self._topic(topic) for topic in self._image.topics.values()]
        if self._version < _FIRST_BY_TOPIC_ID:
            self._refuse_topic_ids(topics)
        by_id = dict.fromkeys(
            topic_id for topic in topics if (topic_id := _topic_id(topic)) is not None
        )
        if by_id:
            return [self._by_id(topic_id) for topic_id in by_id]
        return [self._by_name(name) for name in dict.fromkeys(topic.name for topic in topics)]

    def _refuse_topic_ids(self, topics: Any) -> None:
        if any(topic.name is None or _topic_id(topic) is not None for topic in topics):
            raise KafkaError(
                ErrorCode.invalid_request,
                f"Metadata v{self._version} looks topics up by name only",
            )

    def _by_id(self, topic_id: bytes) -> dict[str, Any]:
        topic = self._image.topics.get(topic_id)
        if topic is None:
            return {"error_code": ErrorCode.unknown_topic_id, "name": None, "topic_id": topic_id}
        return self._topic(topic)

    def _by_name(self, name: str | None) -> dict[str, Any]:
        topic = None if name is None else self._image.topic(name)
        if topic is not None:
            return self._topic(topic)
        if name is None or topic_name_problem(name) is not None:
            code = ErrorCode.invalid_topic_exception
        else:
            code = ErrorCode.unknown_topic_or_partition
            self.missing.append(name)
        return {
            "error_code": code,
            "name": name or "",
            "is_internal": name is not None and is_internal(name),
            "topic_authorized_operations": self._topic_operations,
        }

    def _topic(self, topic: TopicImage) -> dict[str, Any]:
        return {
            "error_code": ErrorCode.none,
            "name": topic.name,
            "topic_id": topic.topic_id,
            "is_internal": is_internal(topic.name),
            "partitions": [
                self._partition(partition) for _, partition in sorted(topic.partitions.items())
            ],
            "topic_authorized_operations": self._topic_operations,
        }

    def _partition(self, partition: PartitionChanged) -> dict[str, Any]:
        replicas, isr = partition.replicas, partition.isr
        if self._version == 0:
            replicas = [replica for replica in replicas if replica in self._reachable]
            isr = [replica for replica in isr if replica in self._reachable]
        if not self._leads(partition.leader):
            code = self._why_no_leader(partition.leader)
        elif len(replicas) < len(partition.replicas) or len(isr) < len(partition.isr):
            code = ErrorCode.replica_not_available
        else:
            code = ErrorCode.none
        return {
            "error_code": code,
            "partition_index": partition.partition,
            "leader_id": partition.leader if self._leads(partition.leader) else _NO_LEADER,
            "leader_epoch": partition.leader_epoch,
            "replica_nodes": replicas,
            "isr_nodes": isr,
            "offline_replicas": [
                replica for replica in partition.replicas if replica not in self._reachable
            ],
        }

    def _leads(self, leader: int) -> bool:
        return leader in self._reachable

    def _why_no_leader(self, leader: int) -> ErrorCode:
        broker = self._image.brokers.get(leader)
        if broker is None or broker.fenced or self._version < _FIRST_WITH_LISTENER_NOT_FOUND:
            return ErrorCode.leader_not_available
        return ErrorCode.listener_not_found

    def _endpoint(self, endpoints: list[Endpoint]) -> Endpoint | None:
        for endpoint in endpoints:
            if endpoint.listener == self._listener:
                return endpoint
        return None


def _topic_id(topic: Any) -> bytes | None:
    """None when the topic is asked for by name (or the version has no ids)."""
    topic_id: UUID | None = getattr(topic, "topic_id", None)
    return topic_id.bytes if topic_id is not None and topic_id.int else None
