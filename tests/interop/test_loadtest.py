"""The load tests run against a real cluster and say what they saw."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

from mobula.cluster import LocalCluster
from mobula.loadtest.clients import end_offsets, run_clients
from mobula.loadtest.headless import LOCUSTFILE
from mobula.loadtest.jobs import Consume, OneAtATime, Paced, Produce, Receive
from tests.interop.clients import Confluent


def test_locust_reports_produce_and_consume_apart_with_their_throughput(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    prefix = tmp_path / "load"
    done = subprocess.run(
        [sys.executable, "-m", "locust", "-f", str(LOCUSTFILE), "--headless",
         "--host", cluster.bootstrap, "--users", "2", "--spawn-rate", "2", "--run-time", "3s",
         "--csv", str(prefix), "--topic", "locust", "--only-summary"],
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=90,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    with Path(f"{prefix}_stats.csv").open() as file:
        rows = {row["Name"]: row for row in csv.DictReader(file)}
    with Path(f"{prefix}_throughput.csv").open() as file:
        rates = {row["name"]: float(row["MB/s"]) for row in csv.DictReader(file)}
    assert set(rates) == {"produce 100 x 1000 B", "consume up to 500"}
    for name, rate in rates.items():
        assert rate > 0
        assert int(rows[name]["Request Count"]) > 0
        assert int(rows[name]["Failure Count"]) == 0


def test_the_clients_of_the_comparison_see_what_they_sent(cluster: LocalCluster) -> None:
    bootstrap, topic = cluster.bootstrap, "versus"
    Confluent().create_topic(bootstrap, topic, 2)

    def run(*jobs: Produce | OneAtATime | Paced | Consume | Receive) -> list[int]:
        return [done.records for done in run_clients(jobs, lambda: None, lambda: None)]

    # Else a retry, which a cluster may always cause, could write a batch twice.
    (produced,) = run(Produce(bootstrap, topic, 100, 2, 0.5, {"enable.idempotence": "true"}))
    (alone,) = run(OneAtATime(bootstrap, topic, 100, 0.2))
    received, paced = run(
        Receive(bootstrap, topic, 2, 50, 30), Paced(bootstrap, topic, 100, 100, 0.5)
    )
    assert received == paced == 50
    # Each producer also says hello to each partition.
    total = produced + alone + paced + 2 * 4
    ends = end_offsets(bootstrap, topic, 2)
    assert sum(ends.values()) == total
    assert sum(run(Consume(bootstrap, topic, ends))) == total
