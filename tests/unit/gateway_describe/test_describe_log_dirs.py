"""DescribeLogDirs: the answers of a broker's replica actors, merged."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from mobula.actors.gateway.handlers import describe_log_dirs
from mobula.actors.gateway.services import Services
from mobula.actors.metadata.records import ConfigChanged
from mobula.actors.placement import replica_actor_of
from mobula.actors.replica.messages import LogDescription, LogsDescribed
from mobula.protocol.errors import ErrorCode
from tests.unit.gateway_describe.fakes import (
    Exchange,
    FakeLink,
    FakeRuntime,
    broker,
    cluster,
    services,
    topic,
)

IMAGE = cluster(
    broker(0, replica_actors=2),
    *topic("a", 2),
    *topic("b", 1),
    *topic("elsewhere", 1, replicas=(1, 2)),
)
A, B = (topic_id for topic_id in IMAGE.topics if IMAGE.topics[topic_id].name in "ab")


def _services(tmp_path: Path) -> Services:
    return services(IMAGE, data_dir=str(tmp_path))


def _links(on: Services) -> dict[str, FakeLink]:
    return cast("FakeRuntime", on.runtime).links


def _answer(on: Services, *logs: LogDescription) -> None:
    """Each actor answers with those of the logs that are its own."""
    for name, link in _links(on).items():
        own = [
            log for log in logs if replica_actor_of(IMAGE, 0, log.topic_id, log.partition) == name
        ]
        link.answer(LogsDescribed(own))


LOGS = (LogDescription(A, 1, 300, 3), LogDescription(A, 0, 200, 2), LogDescription(B, 0, 100, 1))


def _sizes(response: Any) -> dict[str, list[tuple[int, int, int]]]:
    (result,) = response.results
    return {
        t.name: [(p.partition_index, p.partition_size, p.offset_lag) for p in t.partitions]
        for t in result.topics
    }


@pytest.mark.parametrize("version", list(describe_log_dirs.API.versions))
def test_every_log_of_the_broker_is_described_once_all_its_actors_answered(
    version: int, tmp_path: Path
) -> None:
    on = _services(tmp_path)
    exchange = Exchange(describe_log_dirs, version, {"topics": None}, on)
    assert sorted(_links(on)) == ["broker-0/replica-0", "broker-0/replica-1"]
    assert exchange.sink.bodies == []
    _answer(on, *LOGS)
    assert _sizes(exchange.response) == {"a": [(0, 200, 2), (1, 300, 3)], "b": [(0, 100, 1)]}
    (result,) = exchange.response.results
    assert result.log_dir == str(tmp_path)
    if version >= 4:
        assert 0 < result.usable_bytes <= result.total_bytes


def test_only_what_was_asked_for_is_described(tmp_path: Path) -> None:
    on = _services(tmp_path)
    topics = [
        {"topic": "a", "partitions": [1, 7]},
        {"topic": "elsewhere", "partitions": [0]},
        {"topic": "missing", "partitions": [0]},
    ]
    exchange = Exchange(describe_log_dirs, 4, {"topics": topics}, on)
    assert len(_links(on)) == 1
    _answer(on, *LOGS)
    assert _sizes(exchange.response) == {"a": [(1, 300, 3)]}


def test_without_a_log_the_folder_is_described_at_once(tmp_path: Path) -> None:
    on = services(cluster(broker(0)), data_dir=str(tmp_path))
    response = Exchange(describe_log_dirs, 4, {"topics": None}, on).response
    assert _sizes(response) == {}
    assert response.results[0].error_code is ErrorCode.none
    assert _links(on) == {}


def test_an_actor_that_does_not_answer_makes_the_folder_fail(tmp_path: Path) -> None:
    on = _services(tmp_path)
    exchange = Exchange(describe_log_dirs, 4, {"topics": None}, on)
    first, second = _links(on).values()
    first.answer(LogsDescribed([LOGS[0]]))
    second.fail()
    (result,) = exchange.response.results
    assert result.error_code is ErrorCode.kafka_storage_error
    assert result.topics == ()


def test_a_folder_that_is_gone_is_a_storage_error(tmp_path: Path) -> None:
    on = services(cluster(broker(0)), data_dir=str(tmp_path / "gone"))
    (result,) = Exchange(describe_log_dirs, 4, {"topics": None}, on).response.results
    assert result.error_code is ErrorCode.kafka_storage_error
    assert (result.total_bytes, result.usable_bytes) == (-1, -1)


def test_a_topic_deleted_meanwhile_is_left_out(tmp_path: Path) -> None:
    on = services(cluster(broker(0), *topic("a", 1), *topic("b", 1)), data_dir=str(tmp_path))
    exchange = Exchange(describe_log_dirs, 4, {"topics": None}, on)
    del on.image.topics[on.image.topic_ids.pop("b")]
    (link,) = _links(on).values()
    link.answer(LogsDescribed([LogDescription(A, 0, 1, 0), LogDescription(B, 0, 1, 0)]))
    assert _sizes(exchange.response) == {"a": [(0, 1, 0)]}


def test_a_dedicated_topic_is_asked_of_its_own_actor(tmp_path: Path) -> None:
    image = cluster(
        broker(0), *topic("hot", 1), ConfigChanged(2, "hot", "replica.actor", "dedicated")
    )
    on = services(image, data_dir=str(tmp_path))
    Exchange(describe_log_dirs, 4, {"topics": None}, on)
    assert list(_links(on)) == [f"broker-0/replica-{b'hot'.ljust(16, b'-').hex()}-0"]


def test_a_lost_connection_takes_the_open_questions_back(tmp_path: Path) -> None:
    on = _services(tmp_path)
    exchange = Exchange(describe_log_dirs, 4, {"topics": None}, on)
    first, second = _links(on).values()
    first.answer(LogsDescribed([]))
    assert exchange.request.on_abandoned is not None
    exchange.request.on_abandoned()
    assert (first.cancelled, second.cancelled) == ([], [0])
