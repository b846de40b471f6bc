"""DescribeTopicPartitions: page by page, nothing twice and nothing left out."""

from __future__ import annotations

from typing import Any

import pytest

from mobula.actors.gateway.handlers import describe_topic_partitions
from mobula.actors.metadata.records import PartitionChanged
from mobula.protocol.errors import ErrorCode, KafkaError
from tests.unit.gateway_describe.fakes import Exchange, broker, cluster, services, topic

IMAGE = cluster(
    broker(0),
    broker(1),
    broker(2, fenced=True),
    *topic("b", 3),
    *topic("a", 2),
    *topic("c", 1),
    *topic("__consumer_offsets", 1),
)


def _ask(
    *names: str,
    limit: int = 2000,
    cursor: tuple[str, int] | None = None,
    settings: dict[str, str] | None = None,
) -> Any:
    tree: dict[str, Any] = {
        "topics": [{"name": name} for name in names],
        "response_partition_limit": limit,
    }
    if cursor is not None:
        tree["cursor"] = {"topic_name": cursor[0], "partition_index": cursor[1]}
    on = services(IMAGE, settings=settings)
    return Exchange(describe_topic_partitions, 0, tree, on).response


def _listed(response: Any) -> list[tuple[str, int]]:
    return [(t.name, p.partition_index) for t in response.topics for p in t.partitions]


ALL = [("__consumer_offsets", 0), ("a", 0), ("a", 1), ("b", 0), ("b", 1), ("b", 2), ("c", 0)]


def test_without_names_every_topic_is_described_in_order() -> None:
    response = _ask()
    assert _listed(response) == ALL
    assert response.next_cursor is None
    assert [t.is_internal for t in response.topics] == [True, False, False, False]


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 6, 7])
def test_pages_give_every_partition_once(limit: int) -> None:
    pages, cursor = [], None
    while True:
        response = _ask(limit=limit, cursor=cursor)
        page = _listed(response)
        assert 1 <= len(page) <= limit
        pages += page
        if response.next_cursor is None:
            break
        cursor = (response.next_cursor.topic_name, response.next_cursor.partition_index)
    assert pages == ALL


def test_the_brokers_own_limit_holds_too() -> None:
    response = _ask(settings={"max.request.partition.size.limit": "2"})
    assert len(_listed(response)) == 2


def test_a_limit_below_one_still_makes_progress() -> None:
    assert len(_listed(_ask(limit=0))) == 1


def test_a_partition_says_who_leads_and_who_is_away() -> None:
    (described,) = _ask("c").topics
    (partition,) = described.partitions
    assert described.topic_id.bytes == b"c---------------"
    assert partition.error_code is ErrorCode.none
    assert (partition.leader_id, partition.leader_epoch) == (0, 5)
    assert (partition.replica_nodes, partition.isr_nodes) == ((0, 1, 2), (0, 1, 2))
    assert partition.offline_replicas == (2,)


@pytest.mark.parametrize("leader", [-1, 2, 9])
def test_a_leader_that_cannot_be_reached_is_none(leader: int) -> None:
    image = cluster(broker(0), broker(2, fenced=True), *topic("t", 1))
    (topic_id,) = image.topics
    image.replay(PartitionChanged(topic_id, 0, [0, 2], [2], leader, 6, 2))
    tree = {"topics": [{"name": "t"}]}
    response = Exchange(describe_topic_partitions, 0, tree, services(image)).response
    partition = response.topics[0].partitions[0]
    assert partition.leader_id == -1
    assert partition.error_code is ErrorCode.leader_not_available


def test_topics_that_do_not_exist_say_so_beside_those_that_do() -> None:
    response = _ask("c", "nope", "not good", "c")
    assert [(t.name, t.error_code) for t in response.topics] == [
        ("c", ErrorCode.none),
        ("nope", ErrorCode.unknown_topic_or_partition),
        ("not good", ErrorCode.invalid_topic_exception),
    ]


def test_a_cursor_at_a_topic_that_was_deleted_goes_on_with_the_next() -> None:
    assert _listed(_ask(cursor=("aa", 1))) == [("b", 0), ("b", 1), ("b", 2), ("c", 0)]


@pytest.mark.parametrize(
    ("names", "cursor"), [((), ("a", -1)), (("a", "b"), ("c", 0)), (("b",), ("a", 0))]
)
def test_a_cursor_that_makes_no_sense_is_refused(
    names: tuple[str, ...], cursor: tuple[str, int]
) -> None:
    with pytest.raises(KafkaError) as refused:
        _ask(*names, cursor=cursor)
    assert refused.value.code is ErrorCode.invalid_request
