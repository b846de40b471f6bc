"""The records of the metadata log. Replaying them in order gives the cluster's metadata.

Invariant: a record says what is, not what to do; replaying one twice changes nothing.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec


class _Record(msgspec.Struct, frozen=True, array_like=True, tag=True):
    pass


class ClusterCreated(_Record, frozen=True):
    cluster_id: str


class Endpoint(msgspec.Struct, frozen=True, array_like=True):
    listener: str
    host: str
    port: int


class BrokerRegistered(_Record, frozen=True):
    broker_id: int
    broker_epoch: int
    """The offset of the record that registered this life of the broker."""
    incarnation: str
    endpoints: list[Endpoint]
    rack: str | None
    ray_node_id: str
    """The Ray node: brokers with the same one share a page cache."""
    data_dir: str
    directory_id: bytes
    num_replica_actors: int
    fenced: bool
    in_controlled_shutdown: bool


class BrokerStateChanged(_Record, frozen=True):
    broker_id: int
    broker_epoch: int
    fenced: bool
    in_controlled_shutdown: bool


class BrokerUnregistered(_Record, frozen=True):
    broker_id: int


class TopicCreated(_Record, frozen=True):
    topic_id: bytes
    name: str


class TopicRemoved(_Record, frozen=True):
    topic_id: bytes


class PartitionChanged(_Record, frozen=True):
    """A partition's whole state. `leader` -1: none. Epochs only grow."""

    topic_id: bytes
    partition: int
    replicas: list[int]
    isr: list[int]
    leader: int
    leader_epoch: int
    partition_epoch: int
    awaits_directory: bytes = b""
    """Set when the last member of the ISR came back with another data folder: what it had
    is in the folder with this id, and without that folder it may not lead."""


class ConfigChanged(_Record, frozen=True):
    """`value` None: back to the default. Resource types are Kafka's: 2 topic, 4 broker."""

    resource_type: int
    resource_name: str
    key: str
    value: str | None


class ProducerIdsAllocated(_Record, frozen=True):
    next_producer_id: int


class FeatureChanged(_Record, frozen=True):
    name: str
    level: int


Record: TypeAlias = (
    ClusterCreated
    | BrokerRegistered
    | BrokerStateChanged
    | BrokerUnregistered
    | TopicCreated
    | TopicRemoved
    | PartitionChanged
    | ConfigChanged
    | ProducerIdsAllocated
    | FeatureChanged
)

encode_record = msgspec.msgpack.Encoder().encode
_decoder: msgspec.msgpack.Decoder[Record] = msgspec.msgpack.Decoder(Record)
decode_record = _decoder.decode
