"""The one place where a replica actor that does not answer becomes a Kafka error."""

from __future__ import annotations

from mobula.actors.link.interface import LinkError
from mobula.protocol.errors import ErrorCode


def replica_error(error: LinkError) -> ErrorCode:
    """What a client is told about the partitions of an actor whose call failed.

    Its leadership is about to move or to come back: clients that hear this refresh their
    metadata and try again.
    """
    return ErrorCode.not_leader_or_follower
