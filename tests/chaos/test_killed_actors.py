"""SIGKILL of any one actor under load: producers go on, and nothing acknowledged is lost."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from mobula.cluster import LocalCluster
from tests.interop.clients import Confluent
from tests.support.actors import kill, pids, wait_back, wait_whole
from tests.support.history import EndlessProducer, check_history, read_numbers
from tests.support.waiting import wait_for

PARTITIONS = 6
VICTIMS = (
    "broker-0/gateway-0",
    "broker-0/replica-0",
    "broker-1/purgatory",
    "broker-2",
    "controller",
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(brokers=3, config={"min.insync.replicas": "2"}) as running:
        yield running


@pytest.mark.parametrize("victim", VICTIMS)
def test_a_killed_actor_costs_no_acknowledged_record(cluster: LocalCluster, victim: str) -> None:
    topic = f"killed-{victim.replace('/', '-')}"
    Confluent().create_topic(cluster.bootstrap, topic, PARTITIONS)
    wait_whole(cluster)
    with EndlessProducer(cluster.bootstrap, topic, PARTITIONS) as producer:
        wait_for(lambda: producer.total() > 2000, "a running load")
        dead = kill(cluster, victim)
        wait_back(cluster, victim, dead)
        after = producer.total()
        wait_for(lambda: producer.total() > after + 2000, "a load that goes on")
    assert not producer.failed, producer.failed[:3]
    found = read_numbers(cluster.bootstrap, topic, PARTITIONS)
    check_history(producer.acknowledged, found)


def test_data_flows_while_the_controller_is_away(cluster: LocalCluster) -> None:
    topic = "no-controller"
    Confluent().create_topic(cluster.bootstrap, topic, PARTITIONS)
    before = wait_whole(cluster)["partitions"]["total"]
    with EndlessProducer(cluster.bootstrap, topic, PARTITIONS) as producer:
        wait_for(lambda: producer.total() > 1000, "a running load")
        dead = kill(cluster, "controller")
        killed_at = producer.total()
        wait_for(lambda: producer.total() > killed_at + 1000, "records while it is away")
        wait_back(cluster, "controller", dead)
    assert wait_whole(cluster)["partitions"]["total"] == before
    check_history(producer.acknowledged, read_numbers(cluster.bootstrap, topic, PARTITIONS))


def test_who_connects_while_the_broker_actor_is_away_is_served_when_it_is_back(
    cluster: LocalCluster,
) -> None:
    wait_whole(cluster)
    host, _, port = cluster.bootstrap.split(",")[1].rpartition(":")
    question = struct.pack(">ihhih", 10, 18, 0, 7, -1)
    with ExitStack() as open_sockets:
        waiting: list[socket.socket] = []

        def connect() -> None:
            client = socket.create_connection((host, int(port)), timeout=60)
            waiting.append(open_sockets.enter_context(client))
            client.sendall(question)

        dead = kill(cluster, "broker-1")
        connect()

        def back() -> bool:
            connect()
            return pids(cluster).get("broker-1") not in (None, dead)

        wait_for(back, "a new life of the broker actor")
        for client in waiting:
            assert struct.unpack(">iih", client.recv(10, socket.MSG_WAITALL))[1:] == (7, 0)
