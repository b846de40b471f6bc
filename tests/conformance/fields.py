"""The fields that must differ between two clusters, in one place: how each is compared.

Nothing is left out. A value that cannot be the same is replaced by what it stands for: an
id by its topic, an address by its broker. So a wrong id, or the address of another broker,
is still a difference.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias
from uuid import UUID

from mobula.protocol.api import ApiKey
from tests.conformance.batches import described

Json: TypeAlias = Any

OWN_PREFIX: Final = "~"
"""In place of what the names of one run of a scenario begin with."""

IDENTITIES: Final = (
    "api_key",
    "name",
    "topic",
    "topic_name",
    "resource_type",
    "resource_name",
    "node_id",
    "broker_id",
    "partition_index",
    "partition",
    "index",
    "topic_id",
    "group_id",
    "group_instance_id",
    "member_id",
    "key",
)
"""By the first of these that they have, the items of a list are told apart and sorted: the
order of topics in an answer is an accident on both sides."""

IN_ORDER: Final = {
    (ApiKey.DESCRIBE_TOPIC_PARTITIONS, "topics"),
    (ApiKey.DESCRIBE_TOPIC_PARTITIONS, "partitions"),
    (ApiKey.DESCRIBE_CONFIGS, "synonyms"),
}
"""Lists whose order is part of the answer."""

SETS: Final = {"isr_nodes", "offline_replicas", "isr"}
"""Lists of numbers whose order means nothing."""

ADDRESSES: Final = {"listeners", "advertised.listeners", "controller.quorum.voters"}
FOLDERS: Final = {"log.dir", "log.dirs"}
"""Configuration keys whose values are those of one machine."""

_TIMES = re.compile(r"\[-?\d{13,19}, \d{13}\]")
"""Between which a record's timestamp should be, in Kafka's words."""
_UUID = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""At the end of a member's id."""
_CLUSTER_ID = re.compile(r"[A-Za-z0-9_-]{22}")


def without_uuid(text: str) -> str:
    """A member's id as any run has it."""
    return _UUID.sub("-<uuid>", text)


class Roles:
    """What the ids and addresses of one cluster stand for."""

    def __init__(self, addresses: Sequence[tuple[str, int]]) -> None:
        self._brokers = {address: broker for broker, address in enumerate(addresses)}
        self._topic_ids: dict[str, str] = {}
        self._ids_of: dict[str, int] = {}

    def learn(self, answer: Json) -> None:
        """Topic ids, wherever one stands beside a name."""
        for item in _dicts(answer):
            name = item.get("name") or item.get("topic") or item.get("topic_name")
            topic_id = item.get("topic_id")
            if isinstance(name, str) and isinstance(topic_id, str):
                self._learn(name, topic_id)

    def _learn(self, name: str, topic_id: str) -> None:
        if topic_id in self._topic_ids:
            return
        times = self._ids_of[name] = self._ids_of.get(name, 0) + 1
        which = "id" if times == 1 else f"id {times}"
        self._topic_ids[topic_id] = f"<{which} of {name}>"

    def topic_id(self, topic_id: str) -> str:
        """As it is, when it belongs to no topic."""
        return self._topic_ids.get(topic_id, topic_id)

    def without_topic_ids(self, data: bytes) -> bytes:
        """A request's bytes with each known id replaced by what it stands for."""
        for topic_id, role in self._topic_ids.items():
            data = data.replace(UUID(topic_id).bytes, role.encode())
        return data

    def broker(self, host: str, port: int) -> str:
        broker = self._brokers.get((host, port))
        return f"{host}:{port}" if broker is None else f"broker {broker}"

    def in_addresses(self, text: str) -> str:
        """A list of addresses with their brokers' numbers as ports; other ports are a role."""

        def role(found: re.Match[str]) -> str:
            return f"<{self.broker(found[1], int(found[2]))}>"

        text = re.sub(r"([\d.]+):(\d+)", role, text)
        return re.sub(r"<[\d.]+:\d+>", "<no broker>", text)

    def is_broker(self, broker: object) -> bool:
        return broker in self._brokers.values()


def normalised(answer: Json, api: ApiKey, own_prefix: str, roles: Roles) -> Json:
    """The answer as it is recorded and compared."""
    roles.learn(answer)
    return _Normaliser(api, own_prefix, roles).value("", answer)


class _Normaliser:
    def __init__(self, api: ApiKey, own_prefix: str, roles: Roles) -> None:
        self._api = api
        self._own_prefix = own_prefix
        self._roles = roles

    def value(self, field: str, value: Json) -> Json:
        if field == "records" and isinstance(value, str):
            return described(bytes.fromhex(value))
        if isinstance(value, dict):
            return self._fields(value)
        if isinstance(value, list):
            return self._items(field, [self.value(field, item) for item in value])
        if isinstance(value, str):
            value = self._roles.topic_id(value) if field == "topic_id" else value
            value = value.replace(self._own_prefix, OWN_PREFIX)
            value = _TIMES.sub("[<two times>]", value)
            if field in ("member_id", "leader"):
                value = without_uuid(value)
        return self._role(field, value)

    def _fields(self, tree: dict[str, Json]) -> dict[str, Json]:
        found = {field: self.value(field, value) for field, value in tree.items()}
        if isinstance(tree.get("host"), str) and isinstance(tree.get("port"), int):
            where = self._roles.broker(tree["host"], tree["port"])
            found |= {"host": f"<host of {where}>", "port": f"<port of {where}>"}
        if found.get("value"):
            found["value"] = self._setting(found.get("name"), found["value"])
        return found

    def _setting(self, key: Json, value: str) -> str:
        if key in FOLDERS:
            return "<a folder>"
        return self._roles.in_addresses(value) if key in ADDRESSES else value

    def _items(self, field: str, items: list[Json]) -> list[Json]:
        if field in SETS:
            return sorted(items)
        if (self._api, field) in IN_ORDER or not all(isinstance(item, dict) for item in items):
            return items
        return sorted(items, key=_sort_key)

    def _role(self, field: str, value: Json) -> Json:
        match field:
            case "cluster_id" if value is not None and _CLUSTER_ID.fullmatch(value):
                return "<cluster id>"
            case "controller_id" if self._roles.is_broker(value):
                return "<a broker that lives>"
            case "finalized_features_epoch" if value >= 0:
                return "<an offset of the metadata log>"
            case "log_append_time" if value not in (None, -1):
                return "<a time>"
            case "session_id" if value > 0:
                return "<a session id>"
            case "producer_id" if value >= 0:
                return "<a producer id>"
            case "documentation" if value:
                return "<a text>"
            case "log_dir" if value:
                return "<a folder>"
            case "total_bytes" | "usable_bytes" if value > 0:
                return "<a size>"
        return value


def identity(item: Json) -> str | None:
    """What tells an item of a list from the others."""
    if isinstance(item, dict):
        for field in IDENTITIES:
            if item.get(field) is not None:
                return str(item[field])
    return None


def _sort_key(item: dict[str, Json]) -> list[tuple[bool, int, str]]:
    values = (item.get(field) for field in IDENTITIES)
    return [(value is None, value if isinstance(value, int) else 0, str(value)) for value in values]


def _dicts(tree: Json) -> Iterable[dict[str, Json]]:
    if isinstance(tree, dict):
        yield tree
        tree = list(tree.values())
    if isinstance(tree, list):
        for item in tree:
            yield from _dicts(item)
