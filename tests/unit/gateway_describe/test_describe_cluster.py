"""DescribeCluster: brokers as the request's listener reaches them."""

from __future__ import annotations

import pytest

from mobula.actors.gateway.handlers import describe_cluster
from mobula.protocol.errors import ErrorCode
from tests.unit.gateway_describe.fakes import Exchange, broker, cluster, services

IMAGE = cluster(
    broker(2, rack="r2"), broker(0), broker(1, fenced=True), broker(3, listener="INTERNAL")
)


@pytest.mark.parametrize("version", list(describe_cluster.API.versions))
def test_live_brokers_of_the_listener_are_listed_in_order(version: int) -> None:
    response = Exchange(describe_cluster, version, {}, services(IMAGE)).response
    assert response.error_code is ErrorCode.none
    assert response.cluster_id == "cluster-id"
    assert response.controller_id == 0
    assert [(b.broker_id, b.host, b.port, b.rack) for b in response.brokers] == [
        (0, "127.0.0.1", 9092, None),
        (2, "127.0.0.1", 9094, "r2"),
    ]


def test_a_fenced_broker_names_another_as_the_way_to_the_controller() -> None:
    on = services(IMAGE, broker_id=1)
    assert Exchange(describe_cluster, 2, {}, on).response.controller_id == 0


def test_without_a_live_broker_there_is_no_way_to_the_controller() -> None:
    on = services(cluster(broker(0, fenced=True)))
    response = Exchange(describe_cluster, 2, {}, on).response
    assert (response.controller_id, response.brokers) == (-1, ())


def test_fenced_brokers_are_listed_when_asked_for() -> None:
    tree = {"include_fenced_brokers": True}
    response = Exchange(describe_cluster, 2, tree, services(IMAGE)).response
    assert [(b.broker_id, b.is_fenced) for b in response.brokers] == [
        (0, False),
        (1, True),
        (2, False),
    ]


@pytest.mark.parametrize(("asked", "operations"), [(False, -(2**31)), (True, 0b1_1111_1010_0000)])
def test_operations_are_told_when_asked_for(asked: bool, operations: int) -> None:
    tree = {"include_cluster_authorized_operations": asked}
    response = Exchange(describe_cluster, 0, tree, services(IMAGE)).response
    assert response.cluster_authorized_operations == operations


@pytest.mark.parametrize(
    ("endpoint_type", "code"),
    [(2, ErrorCode.mismatched_endpoint_type), (9, ErrorCode.unsupported_endpoint_type)],
)
def test_controllers_cannot_be_asked_for(endpoint_type: int, code: ErrorCode) -> None:
    tree = {"endpoint_type": endpoint_type}
    response = Exchange(describe_cluster, 1, tree, services(IMAGE)).response
    assert response.error_code is code
    assert response.error_message
    assert response.brokers == ()
