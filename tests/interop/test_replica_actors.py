"""Several replica actors a broker, and topics with actors of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from mobula.cluster import LocalCluster
from tests.interop.clients import Confluent
from tests.support.records import by_partition, sample
from tests.support.waiting import wait_for

PARTITIONS = 4


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    config = {"num.replica.actors": "2", "auto.create.topics.enable": "false"}
    with LocalCluster(brokers=2, config=config) as running:
        yield running


def create(cluster: LocalCluster, topic: str, **config: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    settings = {key.replace("_", "."): value for key, value in config.items()}
    new = NewTopic(topic, num_partitions=PARTITIONS, replication_factor=2, config=settings)
    admin.create_topics([new])[topic].result(30)


def delete(cluster: LocalCluster, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.delete_topics([topic])[topic].result(30)


def check_round_trip(cluster: LocalCluster, topic: str, tag: str) -> None:
    records = sample(tag, partitions=PARTITIONS)
    client = Confluent()
    client.produce(cluster.bootstrap, topic, "lz4", records)
    found = client.read_all(cluster.bootstrap, topic, len(records))
    assert by_partition(found) == by_partition(records)


def replica_actors(cluster: LocalCluster, broker_id: int) -> dict[str, int]:
    """Partitions by replica actor."""
    actors = cluster.status()["brokers"][broker_id]["actors"]
    return {a["name"]: a["counters"]["partitions"] for a in actors if a["kind"] == "replica"}


def test_partitions_are_shared_out_over_a_brokers_replica_actors(cluster: LocalCluster) -> None:
    create(cluster, "shared")
    # Before a consumer comes: its client asks for a coordinator, which makes a topic too.
    wait_for(
        lambda: set(replica_actors(cluster, 0).values()) == {PARTITIONS // 2},
        "each actor to have its half",
    )
    check_round_trip(cluster, "shared", "first")


def test_a_topic_deleted_and_created_again_starts_empty(cluster: LocalCluster) -> None:
    for life in range(5):
        create(cluster, "again")
        check_round_trip(cluster, "again", f"life-{life}")
        delete(cluster, "again")


def test_a_dedicated_topic_has_an_actor_a_partition_that_goes_with_it(
    cluster: LocalCluster,
) -> None:
    before = replica_actors(cluster, 1)
    create(cluster, "hot", replica_actor="dedicated")
    wait_for(
        lambda: len(replica_actors(cluster, 1)) == len(before) + PARTITIONS,
        "an actor for each partition",
    )
    check_round_trip(cluster, "hot", "hot")
    own = replica_actors(cluster, 1).items() - before.items()
    assert all(count == 1 for name, count in own if name not in before)
    delete(cluster, "hot")
    wait_for(lambda: replica_actors(cluster, 1).keys() == before.keys(), "the actors to go")
