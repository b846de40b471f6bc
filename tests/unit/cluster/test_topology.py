"""Which actors make a cluster, where they go and what they are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from mobula.actors.spec import GATEWAY
from mobula.cluster.options import UpOptions, UsageError
from mobula.cluster.topology import Node, Plan, plan

HERE = Node(node_id="n1", address="10.1.1.1")
THERE = Node(node_id="n2", address="10.1.1.2", rack="zone-b")


def planned(nodes: list[Node], address: str | None = None, **settings: str) -> Plan:
    options = UpOptions(
        brokers=3,
        port=9092,
        data_dir=Path("/data"),
        address=address,
        settings={key.replace("_", "."): value for key, value in settings.items()},
    )
    return plan(options, nodes, Path("/run"))


def test_a_local_cluster_listens_on_loopback_port_by_port() -> None:
    assert planned([HERE]).bootstrap == "127.0.0.1:9092,127.0.0.1:9093,127.0.0.1:9094"


def test_a_broker_is_five_actors_by_default() -> None:
    names = [spec.local_name for spec in planned([HERE]).brokers[1].actors]
    assert names == [
        "broker-1",
        "broker-1/replica-0",
        "broker-1/purgatory",
        "broker-1/gateway-0",
        "broker-1/gateway-1",
    ]


@pytest.mark.parametrize(("cores", "gateways"), [(0, 2), (2, 1), (5, 1), (6, 2), (64, 2)])
def test_a_broker_has_two_gateways_where_there_are_cores_for_them(
    cores: int, gateways: int
) -> None:
    node = Node(node_id="n1", address="10.1.1.1", cores=cores)
    kinds = [spec.kind for spec in planned([node]).brokers[0].actors]
    assert kinds.count(GATEWAY) == gateways
    kinds = [spec.kind for spec in planned([node], num_network_threads="3").brokers[0].actors]
    assert kinds.count(GATEWAY) == 3


def test_the_gateways_of_a_broker_are_counted_by_its_own_node() -> None:
    large = Node(node_id="n1", address="10.1.1.1", cores=4)
    small = Node(node_id="n2", address="10.1.1.2", cores=1)
    made = planned([large, small], address="auto")
    told = [broker.actors[0].config["num.network.threads"] for broker in made.brokers]
    assert told == ["2", "1", "2"]


def test_on_a_ray_cluster_brokers_spread_and_advertise_their_nodes_address() -> None:
    made = planned([HERE, THERE], address="auto")
    assert [broker.node.node_id for broker in made.brokers] == ["n1", "n2", "n1"]
    assert made.bootstrap == "10.1.1.1:9092,10.1.1.2:9093,10.1.1.1:9094"
    assert made.brokers[1].actors[0].config["broker.rack"] == "zone-b"


def test_a_broker_goes_to_the_node_that_declares_its_disk() -> None:
    disk = Node(node_id="n3", address="10.1.1.3", resources=frozenset({"mobula-broker-0"}))
    assert planned([HERE, disk], address="auto").brokers[0].node is disk


def test_brokers_without_a_disk_of_their_own_go_to_the_nodes_with_the_fewest() -> None:
    disk = Node(node_id="n3", address="10.1.1.3", resources=frozenset({"mobula-broker-1"}))
    made = planned([disk, HERE, THERE], address="auto")
    assert [broker.node.node_id for broker in made.brokers] == ["n1", "n3", "n2"]


def test_configured_addresses_count_up_with_the_broker() -> None:
    made = planned(
        [HERE],
        listeners="PLAINTEXT://0.0.0.0:7000",
        advertised_listeners="PLAINTEXT://kafka.example:8000",
    )
    assert made.brokers[2].actors[0].config["listeners"] == "PLAINTEXT://0.0.0.0:7002"
    assert made.bootstrap == "kafka.example:8000,kafka.example:8001,kafka.example:8002"


def test_a_replication_factor_above_the_number_of_brokers_is_refused() -> None:
    with pytest.raises(UsageError, match="needs 4 brokers, and there are 3"):
        planned([HERE], default_replication_factor="4")
