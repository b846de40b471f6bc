"""A pytest fixture for whoever installs the package: `mobula_cluster`.

pytest loads this in every run, so it imports nothing until a test asks for a cluster.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from mobula.cluster import LocalCluster


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("mobula", "Mobula clusters")
    group.addoption(
        "--mobula-brokers",
        type=int,
        default=None,
        metavar="N",
        help="How many brokers the mobula_cluster fixture starts (default: 3).",
    )
    parser.addini(
        "mobula_brokers", "How many brokers the mobula_cluster fixture starts.", default="3"
    )


@pytest.fixture(scope="session")
def mobula_cluster(request: pytest.FixtureRequest) -> Iterator[LocalCluster]:
    """A running cluster, one for the whole session: `mobula_cluster.bootstrap`."""
    from mobula.cluster import LocalCluster

    chosen: int | None = request.config.getoption("--mobula-brokers")
    brokers = int(request.config.getini("mobula_brokers")) if chosen is None else chosen
    with LocalCluster(brokers=brokers) as cluster:
        yield cluster
