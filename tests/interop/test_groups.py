"""Consumer groups, by clients that others wrote, alone and mixed in one group."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, ConsumerGroupState, TopicPartition
from confluent_kafka.admin import AdminClient

from mobula.cluster import LocalCluster
from tests.interop.clients import Confluent
from tests.interop.members import MEMBERS, Member, Seen
from tests.support.records import sample
from tests.support.waiting import wait_for

PARTITIONS = 6
RECORDS = 600


def filled(cluster: LocalCluster, topic: str, partitions: int = PARTITIONS) -> None:
    client = Confluent()
    client.create_topic(cluster.bootstrap, topic, partitions)
    more(cluster, topic, partitions)


def more(cluster: LocalCluster, topic: str, partitions: int = PARTITIONS) -> None:
    Confluent().produce(cluster.bootstrap, topic, "none", sample("group", RECORDS, partitions))


@pytest.mark.parametrize("kind", MEMBERS, ids=lambda kind: kind.__name__)
def test_a_member_alone_reads_everything_and_goes_on_where_it_was(
    any_cluster: LocalCluster, kind: type[Member]
) -> None:
    topic = f"alone-{kind.__name__}"
    filled(any_cluster, topic)
    first, second = Seen(), Seen()
    member = kind(any_cluster.bootstrap, topic, topic, first)
    member.start()
    wait_for(lambda: first.count() == RECORDS, f"{kind.__name__} to read {RECORDS} records")
    wait_for(
        lambda: sum(committed(any_cluster, topic, topic).values()) == RECORDS,
        "everything to be committed",
    )
    member.leave()
    more(any_cluster, topic)
    again = kind(any_cluster.bootstrap, topic, topic, second)
    again.start()
    wait_for(lambda: second.count() == RECORDS, "the records after the committed offsets")
    again.leave()
    assert second.more_than_once() == 0


def test_clients_of_all_kinds_share_a_group_while_members_come_and_go(
    any_cluster: LocalCluster,
) -> None:
    topic = "mixed"
    filled(any_cluster, topic, 12)
    seen = Seen()
    members = [kind(any_cluster.bootstrap, topic, topic, seen) for kind in MEMBERS]
    for member in members:
        member.start()
    wait_for(lambda: shares(members) == [4, 4, 4], "three members with four partitions each")
    wait_for(lambda: seen.count() == RECORDS, f"{RECORDS} records to be read")
    members[1].leave()
    wait_for(lambda: shares([members[0], members[2]]) == [6, 6], "two members with six each")
    more(any_cluster, topic, 12)
    wait_for(lambda: seen.count() == 2 * RECORDS, f"{2 * RECORDS} records to be read")
    late = MEMBERS[1](any_cluster.bootstrap, topic, topic, seen)
    late.start()
    wait_for(lambda: shares([members[0], members[2], late]) == [4, 4, 4], "three members again")
    for member in (members[0], members[2], late):
        member.leave()


def test_a_group_is_listed_described_and_deleted(cluster: LocalCluster) -> None:
    topic = "administered"
    filled(cluster, topic)
    seen = Seen()
    member = MEMBERS[0](cluster.bootstrap, topic, topic, seen)
    member.start()
    wait_for(lambda: seen.count() == RECORDS, "the records to be read")
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    described = admin.describe_consumer_groups([topic])[topic].result(30)
    assert described.state is ConsumerGroupState.STABLE
    (only,) = described.members
    assert len(only.assignment.topic_partitions) == PARTITIONS
    listed = admin.list_consumer_groups().result(30)
    assert topic in {group.group_id for group in listed.valid}
    assert listed.errors == []
    with pytest.raises(Exception, match="NON_EMPTY_GROUP"):
        admin.delete_consumer_groups([topic])[topic].result(30)
    member.leave()
    admin.delete_consumer_groups([topic])[topic].result(30)
    listed = admin.list_consumer_groups().result(30)
    assert topic not in {group.group_id for group in listed.valid}
    assert committed(cluster, topic, topic) == {}


def shares(members: list[Member]) -> list[int]:
    """How many partitions each has; nothing while two have the same one."""
    found = [member.assigned for member in members]
    if len(set().union(*found)) != sum(map(len, found)):
        return []
    return [len(assigned) for assigned in found]


def committed(cluster: LocalCluster, group: str, topic: str) -> dict[int, int]:
    """Offsets by partition, where there are any."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": group})
    try:
        known = consumer.list_topics(topic, timeout=30).topics[topic].partitions
        places = consumer.committed([TopicPartition(topic, index) for index in known], timeout=30)
    finally:
        consumer.close()
    return {place.partition: place.offset for place in places if place.offset >= 0}
