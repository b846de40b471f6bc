"""What a broker tells its own actors, and what any actor can be asked."""

from __future__ import annotations

from mobula.actors.link.method import Message, Method, Nothing


class MetadataUpdate(Message, frozen=True, array_like=True):
    """The next records of the metadata log. Replica actors get them before gateways.

    Replied to once they are applied, so a gateway never knows a leader that its replica
    actor does not know.
    """

    broker_epoch: int
    snapshot: bool
    """True: a whole image; forget what was there."""
    offset: int
    """Of the last record; the image's offset after replaying."""
    records: list[bytes]


class Serve(Message, frozen=True, array_like=True):
    """To a gateway: the broker is unfenced, requests may be processed (or no more)."""

    serving: bool


class Drain(Message, frozen=True, array_like=True):
    """Stop cleanly: finish what is queued, answer what is parked, close what is open.

    A gateway stops reading, answers what it has and closes its connections; the purgatory
    completes all it holds; a replica actor flushes and closes its logs with the
    clean-shutdown mark. Replied to when done.
    """

    deadline_ms: int


class AskStatus(Message, frozen=True, array_like=True):
    pass


class LinkStatus(Message, frozen=True, array_like=True, gc=False):
    target: str
    transport: str


class ActorStatus(Message, frozen=True, array_like=True):
    name: str
    kind: str
    pid: int
    ray_node_id: str
    restarts: int
    state: str
    links: list[LinkStatus]
    counters: dict[str, int]


class ConnectionsClosed(Message, frozen=True, array_like=True):
    """From a gateway: client connections that ended, by address. Sent without a reply."""

    gateway: str
    counts: dict[str, int]


METADATA_UPDATE = Method(60, "metadata_update", MetadataUpdate, Nothing)
SERVE = Method(61, "serve", Serve, Nothing)
DRAIN = Method(62, "drain", Drain, Nothing)
STATUS = Method(63, "status", AskStatus, ActorStatus)
CONNECTIONS_CLOSED = Method(64, "connections_closed", ConnectionsClosed, Nothing)
