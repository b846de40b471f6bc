"""Whether this broker leads a partition, for a client that believes in some epoch.

The replica actor learns of leadership first and publishes it in its row; the image comes
after it. A row that is older than the image is what a dead replica actor left behind.

Invariant: whoever is let through here reads a row of the newest epoch this broker knows.
"""

from __future__ import annotations

from mobula.actors.metadata.image import MetadataImage
from mobula.actors.metadata.records import PartitionChanged
from mobula.actors.rows import Role, Row
from mobula.protocol.endpoints import NodeEndpoint
from mobula.protocol.errors import ErrorCode

_NONE = int(ErrorCode.none)
_NOT_LEADER = int(ErrorCode.not_leader_or_follower)
_STORAGE = int(ErrorCode.kafka_storage_error)
_FENCED = int(ErrorCode.fenced_leader_epoch)
_UNKNOWN_EPOCH = int(ErrorCode.unknown_leader_epoch)
_LEADER = int(Role.LEADER)
_OFFLINE = int(Role.OFFLINE)


def leadership_code(
    partition: PartitionChanged, row: Row | None, client_epoch: int, *, any_replica: bool = False
) -> int:
    """NONE when the partition may be read here. `client_epoch` -1: the client has none."""
    if row is None:
        return _NOT_LEADER
    if row.role == _OFFLINE:
        return _STORAGE
    epoch = row.leader_epoch
    newest = partition.leader_epoch
    if client_epoch != -1:
        known = epoch if epoch > newest else newest
        if client_epoch != known:
            return _FENCED if client_epoch < known else _UNKNOWN_EPOCH
    if any_replica:
        return _NONE
    return _NONE if row.role == _LEADER and epoch >= newest else _NOT_LEADER


def current_leader(
    image: MetadataImage, partition: PartitionChanged, row: Row | None, listener: str
) -> tuple[tuple[int, int], NodeEndpoint | None] | None:
    """((leader id, leader epoch), where it listens): KIP-951's hint, None when unknown."""
    if row is not None and row.leader_epoch > partition.leader_epoch:
        # The row knows of an election whose record the image does not have yet.
        return None
    leader = (partition.leader, partition.leader_epoch)
    broker = image.brokers.get(partition.leader)
    if broker is not None and not broker.fenced:
        for endpoint in broker.endpoints:
            if endpoint.listener == listener:
                node = NodeEndpoint(broker.broker_id, endpoint.host, endpoint.port, broker.rack)
                return leader, node
    return leader, None
