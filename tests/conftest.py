"""Clusters that tests share. Each has its own Ray, ports and data, and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mobula.cluster import LocalCluster


@pytest.fixture(scope="session")
def cluster() -> Iterator[LocalCluster]:
    """Three brokers as `mobula up` starts them."""
    with LocalCluster(brokers=3) as running:
        yield running


@pytest.fixture(scope="session")
def cluster_on_ray_links() -> Iterator[LocalCluster]:
    """The same with every hop a Ray actor call, pulls that carry bytes, and two gateways for
    each broker however few the cores."""
    config = {
        "link.transport": "ray",
        "replica.pull.ranges": "never",
        "num.network.threads": "2",
    }
    with LocalCluster(brokers=3, config=config) as running:
        yield running


@pytest.fixture(params=["local", "ray"])
def any_cluster(request: pytest.FixtureRequest) -> LocalCluster:
    """On both transports of the link."""
    name = "cluster" if request.param == "local" else "cluster_on_ray_links"
    running: LocalCluster = request.getfixturevalue(name)
    return running
