"""What a scenario talks to: one of the two clusters, ours or Apache Kafka.

`Brokers` lives as long as the cluster: its connections and shared topics. `Side` is what
one run of a scenario sees: topics with names of its own, and the exchanges to compare.

Names are the same on both sides, and replicas are placed by the scenario, so that node ids
and names can be compared as they are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from mobula.protocol.api import ApiKey
from mobula.storage.records import NewRecord, build_batch
from tests.conformance.fields import Roles, normalised
from tests.conformance.requests import stable
from tests.conformance.wire import (
    CLIENT_ID,
    Connection,
    ConnectionClosedError,
    Json,
    Tree,
    decode_response,
    encode_request,
    plain,
)

T = TypeVar("T")

CLOSED = "closed"
NO_ANSWER = "no answer"
BASE_TIME_MS = 1_750_000_000_000
"""Of records that set-up produces."""
FOREVER = {"retention.ms": "-1"}
"""Settings of a topic whose records, older than a week, are to stay."""
ONE_PARTITION = ((0, 1, 2),)
THREE_PARTITIONS = ((0, 1, 2), (1, 2, 0), (2, 0, 1))

_DEADLINE_S = 30.0
_CREATE_VERSION, _METADATA_VERSION, _LIST_OFFSETS_VERSION, _PRODUCE_VERSION = 7, 12, 7, 9


@dataclass(frozen=True, slots=True)
class Exchange:
    request: Json
    """For whoever reads about a difference."""
    answer: Json
    """A tree with the fields that must differ normalised, or CLOSED, or NO_ANSWER."""
    asked: Json
    """The request as every run has it: for the hash of what was asked."""


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    topic_id: UUID


class Brokers:
    def __init__(self, bootstrap: str) -> None:
        """Addresses in the order of the broker ids, which count from 0."""
        self.addresses: list[tuple[str, int]] = []
        for address in bootstrap.split(","):
            host, _, port = address.rpartition(":")
            self.addresses.append((host, int(port)))
        self.roles = Roles(self.addresses)
        self.shared: dict[str, Topic] = {}
        self._connections: dict[int, Connection] = {}

    def exchange(
        self,
        broker: int,
        key: int,
        version: int,
        body: bytes,
        *,
        answer_version: int | None = None,
        client_id: str | None = CLIENT_ID,
    ) -> Json:
        """The decoded answer, or CLOSED; the connection stays open for the next request."""
        answer_version = version if answer_version is None else answer_version

        def ask(connection: Connection) -> Json:
            correlation_id = connection.send(key, version, body, client_id)
            found = connection.receive(key, answer_version, correlation_id)
            return decode_response(key, answer_version, found)

        return self._with_connection(broker, ask)

    def exchange_unanswered(self, broker: int, key: int, version: int, body: bytes) -> Json:
        """A request that expects no response: CLOSED, or NO_ANSWER when the broker went on
        with the next request."""

        def ask(connection: Connection) -> Json:
            connection.send(key, version, body, CLIENT_ID)
            follows = connection.send(ApiKey.API_VERSIONS, 0, b"", CLIENT_ID)
            connection.receive(ApiKey.API_VERSIONS, 0, follows)
            return NO_ANSWER

        return self._with_connection(broker, ask)

    def _with_connection(self, broker: int, ask: Callable[[Connection], Json]) -> Json:
        try:
            return ask(self._connection(broker))
        except ConnectionClosedError:
            self._forget(broker)
            return CLOSED
        except (AssertionError, TimeoutError):
            # What is still to come on it belongs to this request.
            self._forget(broker)
            raise

    def close(self) -> None:
        for broker in list(self._connections):
            self._forget(broker)

    def _connection(self, broker: int) -> Connection:
        if broker not in self._connections:
            self._connections[broker] = Connection(self.addresses[broker])
        return self._connections[broker]

    def _forget(self, broker: int) -> None:
        connection = self._connections.pop(broker, None)
        if connection is not None:
            connection.close()


class Side:
    def __init__(self, brokers: Brokers, api: ApiKey, prefix: str) -> None:
        self.exchanges: list[Exchange] = []
        self._brokers = brokers
        self._api = api
        self._prefix = prefix.replace("_", "-") + "-"

    def ask(
        self,
        broker: int,
        key: int,
        version: int,
        request: Tree | bytes,
        *,
        answer_version: int | None = None,
        own_topics_only: bool = False,
        client_id: str | None = CLIENT_ID,
    ) -> Json:
        """An exchange that is compared; its answer (ids and names as they are), or CLOSED.

        `request` is a tree, or the body's bytes. `own_topics_only` leaves the topics and
        groups of other scenarios out of an answer that lists everything.
        """
        body = request if isinstance(request, bytes) else encode_request(key, version, request)
        answer = self._brokers.exchange(
            broker, key, version, body, answer_version=answer_version, client_id=client_id
        )
        if own_topics_only and answer != CLOSED:
            answer = self._own_topics(answer)
        self._note(broker, key, version, request, answer)
        return answer

    def ask_unanswered(self, broker: int, key: int, version: int, request: Tree | bytes) -> Json:
        """The same for a request that expects no response (acks=0): CLOSED or NO_ANSWER."""
        body = request if isinstance(request, bytes) else encode_request(key, version, request)
        answer = self._brokers.exchange_unanswered(broker, key, version, body)
        self._note(broker, key, version, request, answer)
        return answer

    def do(self, broker: int, key: int, version: int, request: Tree) -> Json:
        """An exchange of the set-up: not compared, but must be answered."""
        answer = self._brokers.exchange(broker, key, version, encode_request(key, version, request))
        assert answer != CLOSED, f"the connection was closed on {ApiKey(key).name} v{version}"
        self._brokers.roles.learn(answer)
        return answer

    def name(self, suffix: str) -> str:
        """A name that no other scenario has; nothing is created."""
        return self._prefix + suffix

    def topic(
        self,
        suffix: str,
        replicas: Sequence[Sequence[int]] = ONE_PARTITION,
        configs: Mapping[str, str] | None = None,
    ) -> Topic:
        """A topic of this scenario alone, one entry of `replicas` (leader first) a partition.
        Every broker knows of it, and its leaders lead."""
        return self._create(self.name(suffix), replicas, configs or {})

    def shared_topic(
        self,
        name: str,
        replicas: Sequence[Sequence[int]] = ONE_PARTITION,
        configs: Mapping[str, str] | None = None,
        fill: Callable[[Topic], None] | None = None,
    ) -> Topic:
        """A topic that is made (and filled) once, for scenarios that only look at it."""
        shared = self._brokers.shared
        if name not in shared:
            topic = self._create(f"shared-{name}", replicas, configs or {})
            if fill is not None:
                fill(topic)
            shared[name] = topic
        return shared[name]

    def produce(self, topic: Topic, partition: int, *values: bytes) -> int:
        """One batch with a record for each value, acks=all; its base offset."""
        records = [
            NewRecord(BASE_TIME_MS + index, None, value, ()) for index, value in enumerate(values)
        ]
        return self.append(topic, partition, bytes(build_batch(records)))

    def append(self, topic: Topic, partition: int, batch: bytes) -> int:
        """This batch, acks=all; its base offset."""
        partitions = [{"index": partition, "records": batch}]
        answer = self.do(
            self.leader(topic, partition),
            ApiKey.PRODUCE,
            _PRODUCE_VERSION,
            {
                "acks": -1,
                "timeout": 10_000,
                "topic_data": [{"name": topic.name, "partition_data": partitions}],
            },
        )
        (produced,) = answer["responses"][0]["partition_responses"]
        assert produced["error_code"] == "none", produced
        base_offset: int = produced["base_offset"]
        return base_offset

    def leader(self, topic: Topic, partition: int = 0) -> int:
        """Its broker's id, as broker 0 knows it."""
        leader: int = self._partitions(0, topic.name)[partition]["leader_id"]
        return leader

    def wait_until(self, condition: Callable[[], T | None], what: str) -> T:
        """What `condition` returns once it is true."""
        deadline = time.monotonic() + _DEADLINE_S
        while not (found := condition()):
            assert time.monotonic() < deadline, f"not within {_DEADLINE_S:.0f} s: {what}"
            time.sleep(0.01)
        return found

    def wait_until_known(self, name: str, partitions: int | None = None) -> None:
        """Every broker describes the topic, each partition with a leader that answers."""
        for broker in range(len(self._brokers.addresses)):
            self.wait_until(
                partial(self._is_led, broker, name, partitions),
                f"broker {broker} to know the leaders of {name}",
            )
        led: dict[int, list[int]] = {}
        for partition in self._partitions(0, name).values():
            led.setdefault(partition["leader_id"], []).append(partition["partition_index"])
        for leader, indexes in led.items():
            self.wait_until(
                partial(self._answers, leader, name, indexes),
                f"broker {leader} to lead partitions of {name}",
            )

    def wait_until_gone(self, name: str) -> None:
        """No broker knows the topic any more."""
        for broker in range(len(self._brokers.addresses)):
            self.wait_until(
                partial(self._is_gone, broker, name),
                f"broker {broker} to forget {name}",
            )

    def _create(
        self, name: str, replicas: Sequence[Sequence[int]], configs: Mapping[str, str]
    ) -> Topic:
        answer = self.do(
            0,
            ApiKey.CREATE_TOPICS,
            _CREATE_VERSION,
            {
                "timeout": 10_000,
                "topics": [
                    {
                        "name": name,
                        "num_partitions": -1,
                        "replication_factor": -1,
                        "assignments": [
                            {"partition_index": index, "broker_ids": list(brokers)}
                            for index, brokers in enumerate(replicas)
                        ],
                        "configs": [{"name": k, "value": v} for k, v in configs.items()],
                    }
                ],
            },
        )
        (created,) = answer["topics"]
        assert created["error_code"] == "none", created
        self.wait_until_known(name, len(replicas))
        return Topic(name, UUID(created["topic_id"]))

    def _partitions(self, broker: int, name: str) -> dict[int, Any]:
        answer = self.do(
            broker,
            ApiKey.METADATA,
            _METADATA_VERSION,
            {"topics": [{"name": name}], "allow_auto_topic_creation": False},
        )
        (topic,) = answer["topics"]
        return {partition["partition_index"]: partition for partition in topic["partitions"]}

    def _is_gone(self, broker: int, name: str) -> bool:
        return not self._partitions(broker, name)

    def _is_led(self, broker: int, name: str, partitions: int | None) -> bool:
        found = self._partitions(broker, name).values()
        enough = bool(found) if partitions is None else len(found) == partitions
        return enough and all(partition["leader_id"] >= 0 for partition in found)

    def _answers(self, leader: int, name: str, indexes: Sequence[int]) -> bool:
        partitions = [{"partition_index": index, "timestamp": -1} for index in indexes]
        answer = self.do(
            leader,
            ApiKey.LIST_OFFSETS,
            _LIST_OFFSETS_VERSION,
            {"replica_id": -1, "topics": [{"name": name, "partitions": partitions}]},
        )
        (topic,) = answer["topics"]
        return all(partition["error_code"] == "none" for partition in topic["partitions"])

    def _own_topics(self, answer: Json) -> Json:
        """Of DescribeLogDirs the topics of every folder, of ListGroups the groups."""
        if "groups" in answer:
            own = [g for g in answer["groups"] if g["group_id"].startswith(self._prefix)]
            return {**answer, "groups": own}
        if "topics" not in answer:
            return {**answer, "results": [self._own_topics(item) for item in answer["results"]]}
        return {**answer, "topics": [t for t in answer["topics"] if self._is_own(t)]}

    def _is_own(self, topic: Json) -> bool:
        return bool(topic["name"]) and topic["name"].startswith(self._prefix)

    def _note(
        self, broker: int, key: int, version: int, request: Tree | bytes, answer: Json
    ) -> None:
        known = key in ApiKey.__members__.values()
        head = {"api": ApiKey(key).name if known else key, "version": version, "broker": broker}
        roles = self._brokers.roles
        self.exchanges.append(
            Exchange(
                request={
                    **head,
                    "request": request.hex() if isinstance(request, bytes) else request,
                },
                answer=normalised(answer, self._api, self._prefix, roles),
                asked=head | {"request": stable(_with_bytes(request), self._prefix, roles)},
            )
        )


def _with_bytes(value: Any) -> Json:
    """A request as JSON, but for its bytes."""
    match value:
        case Mapping():
            return {name: _with_bytes(item) for name, item in value.items()}
        case tuple() | list() | range():
            return [_with_bytes(item) for item in value]
        case bytes() | bytearray() | memoryview():
            return bytes(value)
    return plain(value)
