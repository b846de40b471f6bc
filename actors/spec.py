"""Who an actor is: all that it needs to start, and to start again after a crash."""

from __future__ import annotations

from pathlib import Path

import msgspec

RAY_NAMESPACE = "mobula"
"""Of all actors of all clusters."""

GATEWAY = "gateway"
REPLICA = "replica"
PURGATORY = "purgatory"
BROKER = "broker"
CONTROLLER = "controller"


class ActorSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Given to an actor when it is made; Ray gives the same one again at each restart."""

    cluster: str
    kind: str
    local_name: str
    """Within the cluster: `controller`, `broker-0`, `broker-0/gateway-1`, ..."""
    broker_id: int = -1
    index: int = 0
    config: dict[str, str] = {}
    """Kafka's keys as the user set them; defaults come from the key's definition."""
    run_dir: str
    """Of the cluster on this node: sockets, published rows, logs. Mode 0700."""
    data_dir: str
    """Of the broker (or the controller): what must survive."""

    @property
    def name(self) -> str:
        """The Ray actor's name."""
        return f"{self.cluster}/{self.local_name}"


def broker_name(broker_id: int) -> str:
    return f"broker-{broker_id}"


def broker_of(local_name: str) -> int:
    """The broker that an actor of this name belongs to; -1 for the controller."""
    kind, _, number = local_name.partition("/")[0].partition("-")
    return int(number) if kind == BROKER and number.isdecimal() else -1


def gateway_name(broker_id: int, index: int) -> str:
    return f"broker-{broker_id}/gateway-{index}"


def purgatory_name(broker_id: int) -> str:
    return f"broker-{broker_id}/purgatory"


def replica_name(broker_id: int, index: int) -> str:
    return f"broker-{broker_id}/replica-{index}"


def dedicated_replica_name(broker_id: int, topic_id: bytes, partition: int) -> str:
    """The actor of one partition of a topic with `replica.actor=dedicated`."""
    return f"broker-{broker_id}/replica-{topic_id.hex()}-{partition}"


CONTROLLER_NAME = "controller"


def socket_path(run_dir: str, local_name: str) -> Path:
    """Where the actor's local links listen."""
    return Path(run_dir) / f"{local_name.replace('/', '.')}.sock"


def rows_path(run_dir: str, local_name: str) -> Path:
    """Where a replica actor publishes its rows."""
    return Path(run_dir) / f"{local_name.replace('/', '.')}.rows"
