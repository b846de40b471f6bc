"""Which actors make a cluster, and what each is told: a function of the options alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mobula.actors.config import Config
from mobula.actors.config.listeners import Listener, parse_listeners
from mobula.actors.spec import (
    BROKER,
    CONTROLLER,
    CONTROLLER_NAME,
    GATEWAY,
    PURGATORY,
    REPLICA,
    ActorSpec,
    broker_name,
    gateway_name,
    purgatory_name,
    replica_name,
)
from mobula.cluster.options import UpOptions

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A Ray node that can carry brokers."""

    node_id: str
    address: str
    """What clients on other machines reach it by."""
    cores: int = 0
    """0 where Ray was not told."""
    rack: str | None = None
    resources: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerPlan:
    broker_id: int
    node: Node
    endpoint: Listener
    """What clients are told."""
    data_dir: Path
    actors: tuple[ActorSpec, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    controller: ActorSpec
    controller_node: Node
    brokers: tuple[BrokerPlan, ...]

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{b.endpoint.host}:{b.endpoint.port}" for b in self.brokers)

    def all_actors(self) -> list[ActorSpec]:
        return [self.controller, *(spec for broker in self.brokers for spec in broker.actors)]


def broker_resource(broker_id: int) -> str:
    """A node that declares this custom resource has the disk of that broker."""
    return f"mobula-broker-{broker_id}"


def plan(options: UpOptions, nodes: Sequence[Node], run_dir: Path) -> Plan:
    chosen = _spread(options.brokers, nodes)
    carried = Counter(node.node_id for node in chosen)
    brokers = tuple(
        _broker(options, index, node, _gateways(node, carried[node.node_id]), run_dir)
        for index, node in enumerate(chosen)
    )
    controller = ActorSpec(
        cluster=options.name,
        kind=CONTROLLER,
        local_name=CONTROLLER_NAME,
        config=options.effective_settings(),
        run_dir=str(run_dir),
        data_dir=str(options.data_dir / "controller"),
    )
    return Plan(controller=controller, controller_node=brokers[0].node, brokers=brokers)


def _spread(brokers: int, nodes: Sequence[Node]) -> list[Node]:
    """Each broker's node: the one that says it has its disk, else one with the fewest brokers."""
    chosen = {
        broker_id: node
        for broker_id in range(brokers)
        for node in nodes
        if broker_resource(broker_id) in node.resources
    }
    carried = Counter(node.node_id for node in chosen.values())
    for broker_id in range(brokers):
        if broker_id not in chosen:
            node = min(nodes, key=lambda node: carried[node.node_id])
            chosen[broker_id] = node
            carried[node.node_id] += 1
    return [chosen[broker_id] for broker_id in range(brokers)]


def _gateways(node: Node, brokers: int) -> int:
    """A second event loop pays where it finds a core; else brokers only take them in turns."""
    return 1 if 0 < node.cores < 2 * brokers else 2


def _broker(
    options: UpOptions, broker_id: int, node: Node, gateways: int, run_dir: Path
) -> BrokerPlan:
    settings = {"num.network.threads": str(gateways), **options.effective_settings()}
    listener = _listener(settings, broker_id, options, node)
    told = _advertised(settings, broker_id, listener, node)
    settings["listeners"] = _text(listener)
    settings["advertised.listeners"] = _text(told)
    if node.rack is not None:
        settings.setdefault("broker.rack", node.rack)
    data_dir = options.data_dir / broker_name(broker_id)
    config = Config(settings)

    def actor(kind: str, local_name: str, index: int = 0) -> ActorSpec:
        return ActorSpec(
            cluster=options.name,
            kind=kind,
            local_name=local_name,
            broker_id=broker_id,
            index=index,
            config=settings,
            run_dir=str(run_dir),
            data_dir=str(data_dir),
        )

    replicas = range(config.integer("num.replica.actors"))
    return BrokerPlan(
        broker_id=broker_id,
        node=node,
        endpoint=told,
        data_dir=data_dir,
        actors=(
            actor(BROKER, broker_name(broker_id)),
            *(actor(REPLICA, replica_name(broker_id, index), index) for index in replicas),
            actor(PURGATORY, purgatory_name(broker_id)),
            *(
                actor(GATEWAY, gateway_name(broker_id, index), index)
                for index in range(config.integer("num.network.threads"))
            ),
        ),
    )


def _listener(settings: dict[str, str], broker_id: int, options: UpOptions, node: Node) -> Listener:
    if "listeners" in settings:
        (given,) = parse_listeners(Config(settings).strings("listeners"))
        return Listener(given.name, given.host, given.port + broker_id)
    host = LOOPBACK if options.address is None else node.address
    return Listener("PLAINTEXT", host, options.port + broker_id)


def _advertised(
    settings: dict[str, str], broker_id: int, listener: Listener, node: Node
) -> Listener:
    if "advertised.listeners" in settings:
        (given,) = parse_listeners(Config(settings).strings("advertised.listeners"))
        return Listener(given.name, given.host, given.port + broker_id)
    if listener.host in ("", "0.0.0.0", "::"):
        return Listener(listener.name, node.address, listener.port)
    return listener


def _text(listener: Listener) -> str:
    host = f"[{listener.host}]" if ":" in listener.host else listener.host
    return f"{listener.name}://{host}:{listener.port}"
