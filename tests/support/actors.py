"""Finding and killing the actors of a running cluster."""

from __future__ import annotations

import os
import signal

from mobula.cluster import LocalCluster
from mobula.cluster.document import StatusDocument
from tests.support.waiting import wait_for


def pids(cluster: LocalCluster) -> dict[str, int]:
    """Process ids by actor name, the controller's too."""
    document = cluster.status()
    found = {actor["name"]: actor["pid"] for b in document["brokers"] for actor in b["actors"]}
    if document["controller"] is not None:
        found[document["controller"]["name"]] = document["controller"]["pid"]
    return found


def kill(cluster: LocalCluster, name: str) -> int:
    """SIGKILL one actor; returns the pid that died."""
    pid = pids(cluster)[name]
    os.kill(pid, signal.SIGKILL)
    return pid


def wait_back(cluster: LocalCluster, name: str, dead_pid: int) -> None:
    """Until the actor lives in a new process and the cluster is whole again."""
    wait_for(
        lambda: pids(cluster).get(name) not in (None, dead_pid),
        f"{name} back after its death",
    )
    wait_whole(cluster)


def wait_whole(cluster: LocalCluster) -> StatusDocument:
    documents: list[StatusDocument] = []

    def whole() -> StatusDocument | None:
        document = cluster.status()
        documents[:] = [document]
        partitions = document["partitions"]
        running = all(broker["state"] == "running" for broker in document["brokers"])
        healthy = partitions["under_replicated"] == 0 and partitions["offline"] == 0
        return document if running and healthy and document["controller"] else None

    try:
        return wait_for(whole, "every broker running and every partition in sync")
    except AssertionError as error:
        raise AssertionError(f"{error}; last seen: {documents}") from None
