"""What the command line asks the launcher for, and the errors both sides speak in.

Invariant: every error a user can see is a `ClusterError`: one sentence, and the exit
status that goes with it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mobula.actors.config.definitions import problems

DEFAULT_NAME = "mobula"
DEFAULT_PORT = 9092
DEFAULT_BROKERS = 3

# A socket's path may have 104 bytes on macOS, and the longest name of an actor's takes 60.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,19}")


class ClusterError(Exception):
    """The operation failed on the cluster's side."""

    exit_status = 1


class UsageError(ClusterError):
    """What was asked for makes no sense."""

    exit_status = 2


class LaunchError(ClusterError):
    """The environment does not allow it: a taken port, a folder in use, no Ray, ..."""

    exit_status = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class UpOptions:
    """A cluster to start."""

    brokers: int = DEFAULT_BROKERS
    port: int = DEFAULT_PORT
    """Broker i listens on `port + i`."""
    data_dir: Path
    """Absolute. Each broker, and the controller, has a folder of its own in it."""
    name: str = DEFAULT_NAME
    address: str | None = None
    """Of a Ray cluster that runs already; None starts a local one."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Kafka's keys as the user set them; checked, and the same for every broker."""
    detach: bool = False

    def __post_init__(self) -> None:
        check_name(self.name)
        if self.brokers < 1:
            raise UsageError(f"a cluster has at least 1 broker, not {self.brokers}")
        if not 1 <= self.port <= 65536 - self.brokers:
            raise UsageError(
                f"ports {self.port} to {self.port + self.brokers - 1} are not all between "
                "1 and 65535"
            )
        wrong = problems(self.settings)
        if wrong:
            raise UsageError("\n".join(wrong))
        factor = self.effective_settings()["default.replication.factor"]
        if int(factor) > self.brokers:
            raise UsageError(
                f"default.replication.factor={factor} needs {factor} brokers, "
                f"and there are {self.brokers}"
            )

    def effective_settings(self) -> dict[str, str]:
        """The settings with the defaults that depend on the number of brokers."""
        factor = str(min(3, self.brokers))
        return {
            "default.replication.factor": factor,
            "offsets.topic.replication.factor": factor,
            **self.settings,
        }


def check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} cannot name a cluster: 1 to 20 letters, digits, '.', '_' or '-', "
            "and a letter or digit first"
        )


def default_data_dir(name: str) -> Path:
    """Where a cluster keeps its data unless told otherwise: it survives the cluster."""
    base = os.environ.get("XDG_DATA_HOME")
    root = Path(base) if base else Path.home() / ".local" / "share"
    return (root / "mobula" / name).absolute()
