"""The document that `mobula status --json` prints: the shape that users may rely on."""

from __future__ import annotations

from typing import NotRequired, TypedDict


class ActorDocument(TypedDict):
    name: str
    kind: str
    pid: int
    node: str
    restarts: int
    state: str
    counters: NotRequired[dict[str, int]]


class BrokerDocument(TypedDict):
    id: int
    host: str
    port: int
    state: str
    """running, fenced, starting, stopping or dead."""
    data_dir: NotRequired[str]
    rack: NotRequired[str | None]
    actors: list[ActorDocument]


# `from` is a keyword, which the class form cannot name. Both ends are actors' names;
# `transport` is local, ray or down.
LinkDocument = TypedDict("LinkDocument", {"from": str, "to": str, "transport": str})


class PartitionsDocument(TypedDict):
    total: int
    under_replicated: int
    offline: int


class ControllerDocument(TypedDict):
    name: str
    pid: int
    node: str
    restarts: int
    state: str


class StatusDocument(TypedDict):
    name: str
    bootstrap: str
    cluster_id: NotRequired[str]
    data_dir: NotRequired[str]
    ray_address: NotRequired[str]
    brokers: list[BrokerDocument]
    controller: ControllerDocument | None
    links: list[LinkDocument]
    partitions: PartitionsDocument
