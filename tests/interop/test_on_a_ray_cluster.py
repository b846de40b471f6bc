"""`mobula up --address`: the same actors on a Ray cluster of two nodes that runs already."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from mobula.cluster.launch import down, status
from mobula.cluster.local import free_ports
from mobula.cluster.state import find_cluster
from tests.interop.clients import Confluent
from tests.support.records import by_partition, sample

MOBULA = [sys.executable, "-c", "from mobula.cluster.cli import main; main()"]
TWO_NODES = """
    import sys
    from ray.cluster_utils import Cluster
    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
    )
    cluster.add_node(num_cpus=1, resources={"mobula-broker-1": 1})
    print(cluster.address, flush=True)
    sys.stdin.read()
    cluster.shutdown()
"""


@pytest.fixture
def ray_address() -> Iterator[str]:
    """A head and one more node, in processes of their own, until the test ends."""
    with tempfile.TemporaryDirectory(prefix="mr-", dir="/tmp") as folder:
        (Path(folder) / "ray").mkdir()
        with subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(TWO_NODES)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "RAY_TMPDIR": folder},
        ) as process:
            assert process.stdout is not None
            lines = iter(process.stdout.readline, "")
            yield next(line.strip() for line in lines if line.count(":") == 1 and " " not in line)
            process.communicate("", timeout=60)


def test_brokers_spread_over_the_nodes_of_a_ray_cluster(ray_address: str, tmp_path: Path) -> None:
    name = f"spread-{os.getpid()}"
    subprocess.run(
        [*MOBULA, "up", "--detach", "-n", "2", "--address", ray_address, "--name", name,
         "--port", str(free_ports(2)), "--data-dir", str(tmp_path)],
        check=True,
        capture_output=True,
        timeout=120,
    )  # fmt: skip
    try:
        document = status(name)
        nodes = {
            broker["id"]: {actor["node"] for actor in broker["actors"]}
            for broker in document["brokers"]
        }
        assert len(nodes[0]) == len(nodes[1]) == 1
        assert nodes[0] != nodes[1]
        bootstrap = find_cluster(name).bootstrap
        client = Confluent()
        client.create_topic(bootstrap, "spread", 3, replicas=2)
        records = sample("spread")
        client.produce(bootstrap, "spread", "lz4", records)
        found = client.read_all(bootstrap, "spread", len(records))
        assert by_partition(found) == by_partition(records)
    finally:
        down(name)
