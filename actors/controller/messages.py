"""What the controller can be asked: by brokers, by replica actors, by gateways."""

from __future__ import annotations

import msgspec

from mobula.actors.link.method import Message, Method
from mobula.actors.metadata.records import Endpoint


class RegisterBroker(Message, frozen=True, array_like=True):
    """Idempotent for one `incarnation`. A new one of a known broker with the same
    directory takes over at once: its broker actor was restarted."""

    broker_id: int
    cluster_id: str
    """Empty on a broker's very first start."""
    incarnation: str
    endpoints: list[Endpoint]
    rack: str | None
    ray_node_id: str
    data_dir: str
    directory_id: bytes
    num_replica_actors: int
    replicas_restarted: bool
    """The broker's replica actors are new processes too: partitions that it leads get a
    new leader epoch in the same commit, before they can lead again."""


class BrokerAccepted(Message, frozen=True, array_like=True):
    error_code: int
    broker_epoch: int = -1
    cluster_id: str = ""
    detail: str | None = None


class Heartbeat(Message, frozen=True, array_like=True):
    broker_id: int
    broker_epoch: int
    metadata_offset: int
    want_fence: bool
    """True until logs are recovered and metadata is caught up: do not unfence yet. A broker
    that is unfenced stays so: only its broker actor was restarted, and its replicas go on."""
    want_shutdown: bool


class HeartbeatAnswer(Message, frozen=True, array_like=True):
    error_code: int
    """STALE_BROKER_EPOCH: register again."""
    fenced: bool = True
    may_shut_down: bool = False


class PullMetadata(Message, frozen=True, array_like=True):
    """Records after `offset`. Parked at the controller until there are some."""

    broker_id: int
    offset: int
    cluster_id: str
    max_wait_ms: int


class PulledMetadata(Message, frozen=True, array_like=True):
    snapshot: bool
    """True: `records` are a whole image as of `offset`; forget what was there."""
    offset: int
    records: list[bytes]


class Envelope(Message, frozen=True, array_like=True):
    """A client's request as it came (header and body, without the length), forwarded
    in the caller's name. The request bytes are the call's bulk."""

    principal: str
    client_address: str
    listener: str
    timeout_ms: int


class Enveloped(Message, frozen=True, array_like=True):
    """The response body is the reply's bulk. `error_code` NOT_CONTROLLER: find the
    active one and send again."""

    error_code: int


class PartitionIsr(Message, frozen=True, array_like=True):
    topic_id: bytes
    partition: int
    leader_epoch: int
    partition_epoch: int
    new_isr: list[int]
    new_isr_epochs: list[int] = msgspec.field(default_factory=list)
    """The broker epoch of each member as the leader knows it from its pulls, -1 where it
    does not matter (itself). A member that has registered anew since is refused: it may
    have come back without what made the leader want it. Empty: not checked."""


class AlterPartition(Message, frozen=True, array_like=True):
    broker_id: int
    broker_epoch: int
    parts: list[PartitionIsr]


class PartitionAltered(Message, frozen=True, array_like=True):
    error_code: int
    isr: list[int] = msgspec.field(default_factory=list)
    leader: int = -1
    leader_epoch: int = -1
    partition_epoch: int = -1


class AlteredPartitions(Message, frozen=True, array_like=True):
    error_code: int
    parts: list[PartitionAltered]


class ReplicaActorState(Message, frozen=True, array_like=True):
    """A broker says that one of its replica actors died (`online` False) or is back with
    its logs recovered. Offline replicas leave the ISR and lose leadership at once; the
    sole member of an ISR stays in it, and leads again, with a new epoch, once online."""

    broker_id: int
    broker_epoch: int
    online: bool
    partitions: list[tuple[bytes, int]]


class ReplicaActorAccepted(Message, frozen=True, array_like=True, gc=False):
    error_code: int
    metadata_offset: int = -1
    """Of the last record committed because of it: a replica actor that came back gets its
    metadata only from here on."""


class AllocateProducerIds(Message, frozen=True, array_like=True):
    broker_id: int


class ProducerIdBlock(Message, frozen=True, array_like=True):
    error_code: int
    first: int = -1
    count: int = 0


REGISTER_BROKER = Method(40, "register_broker", RegisterBroker, BrokerAccepted)
HEARTBEAT = Method(41, "heartbeat", Heartbeat, HeartbeatAnswer)
PULL_METADATA = Method(42, "pull_metadata", PullMetadata, PulledMetadata)
ENVELOPE = Method(43, "envelope", Envelope, Enveloped)
ALTER_PARTITION = Method(44, "alter_partition", AlterPartition, AlteredPartitions)
REPLICA_ACTOR_STATE = Method(45, "replica_actor_state", ReplicaActorState, ReplicaActorAccepted)
ALLOCATE_PRODUCER_IDS = Method(46, "allocate_producer_ids", AllocateProducerIds, ProducerIdBlock)
