"""The Ray that carries a cluster: one of its own on this machine, or one that runs already."""

from __future__ import annotations

import logging
import os
import shutil
from pathlib import Path
from typing import Any

from mobula.actors.link.pieces import LIMIT_VARIABLE, RAISED_LIMIT_BYTES
from mobula.actors.spec import RAY_NAMESPACE
from mobula.cluster.options import LaunchError
from mobula.cluster.topology import Node

RACK_LABEL = "topology.kubernetes.io/zone"

_DEFAULT_ENVIRONMENT = {
    # Ray starts as many workers at once as there are cores, and warns of more. Four keep two
    # cores busy while others wait for the disk: 7.1 s for sixteen actors, 8.0 s with 32.
    "RAY_worker_maximum_startup_concurrency": "4",
    # What a call between actors carries takes the object store from 100 KB on, unless told
    # otherwise: 1.2 times as much through Ray calls with a limit of 1 MB, no more with 4 MB.
    LIMIT_VARIABLE: str(RAISED_LIMIT_BYTES),
    # Brokers are servers, not batch work: Ray would run them at nice 15, first to be killed
    # when memory is short.
    "RAY_worker_niceness": "0",
    "RAY_worker_oom_score_adjustment": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}

_LOCAL_ENVIRONMENT = {
    # Ray runs what whoever reaches its ports sends it, and on Linux would open them to the
    # network. This switch, made for the other systems, keeps them on the loopback address;
    # `_node_ip_address` does not: Ray replaces a loopback address given there.
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
}


class RaySession:
    """Connected on construction; `close` ends a local Ray and only leaves another one."""

    def __init__(self, address: str | None, temp_dir: Path) -> None:
        environment = dict(_DEFAULT_ENVIRONMENT)
        if address is None:
            environment |= _LOCAL_ENVIRONMENT
        for key, value in environment.items():
            os.environ.setdefault(key, value)
        import ray

        self.local = address is None
        self._temp_dir = temp_dir
        self._ray: Any = ray
        common: dict[str, Any] = {
            "namespace": RAY_NAMESPACE,
            "log_to_driver": False,
            "logging_level": logging.ERROR,
        }
        try:
            if address is None:
                ray.init(
                    address="local",
                    include_dashboard=False,
                    _temp_dir=str(temp_dir),
                    **common,
                )
            else:
                ray.init(address=address, **common)
        except (ConnectionError, TimeoutError, ValueError, RuntimeError, OSError) as error:
            where = "on this machine" if address is None else f"at {address}"
            first_line = (str(error).splitlines() or [type(error).__name__])[0]
            raise LaunchError(f"Ray cannot be reached {where}: {first_line}") from None

    @property
    def address(self) -> str:
        address: str = self._ray.get_runtime_context().gcs_address
        return address

    def nodes(self) -> list[Node]:
        """Alive nodes, in a stable order."""
        return [
            Node(
                node_id=node["NodeID"],
                address=node["NodeManagerAddress"],
                cores=int(node["Resources"].get("CPU", 0)),
                rack=node.get("Labels", {}).get(RACK_LABEL),
                resources=frozenset(node["Resources"]),
            )
            for node in sorted(self._ray.nodes(), key=lambda node: str(node["NodeID"]))
            if node["Alive"]
        ]

    def close(self) -> None:
        self._ray.shutdown()
        if self.local:
            shutil.rmtree(self._temp_dir, ignore_errors=True)
