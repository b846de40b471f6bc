"""DescribeCluster: the brokers, and where they are."""

from __future__ import annotations

from mobula.protocol.api import ApiKey
from tests.conformance.scenario import just_outside, scenario
from tests.conformance.side import Side
from tests.conformance.wire import encode_request

API = ApiKey.DESCRIBE_CLUSTER
TYPED = range(1, 3)
"""The versions that ask for brokers or for controllers."""


@scenario(API, good=True)
def the_brokers(on: Side, version: int) -> None:
    for broker in range(3):
        on.ask(broker, API, version, {})


@scenario(API, good=True)
def with_authorized_operations(on: Side, version: int) -> None:
    on.ask(0, API, version, {"include_cluster_authorized_operations": True})


@scenario(API, good=True, versions=[2])
def with_fenced_brokers(on: Side, version: int) -> None:
    on.ask(0, API, version, {"include_fenced_brokers": True})


@scenario(API, good=False, versions=TYPED)
def the_controllers_of_a_broker(on: Side, version: int) -> None:
    on.ask(0, API, version, {"endpoint_type": 2})


@scenario(API, good=False, versions=TYPED)
def a_type_of_endpoint_that_does_not_exist(on: Side, version: int) -> None:
    for endpoint_type in (0, 3, -1):
        on.ask(0, API, version, {"endpoint_type": endpoint_type})


@scenario(API, good=False)
def a_request_that_is_cut_short(on: Side, version: int) -> None:
    on.ask(0, API, version, b"")


@scenario(API, good=False, versions=just_outside(API))
def a_version_that_does_not_exist(on: Side, version: int) -> None:
    on.ask(0, API, version, encode_request(API, 2, {}))
