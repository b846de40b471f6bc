"""Apache Kafka's jars, fetched once by Maven into a folder beside the pom."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from pathlib import Path

KAFKA_VERSION = "4.3.1"
"""As the pom says."""

_POM = Path(__file__).parent / "kafka" / "pom.xml"
_JARS = _POM.parent / "target" / "jars"
_DONE = _JARS / ".complete"
_TIMEOUT_S = 600


class NoKafkaError(Exception):
    """Apache Kafka cannot run here; the text says why."""


def kafka_jars() -> Path:
    """The folder with Kafka's jars. NoKafkaError where it cannot be had."""
    for tool in ("java", "mvn"):
        if shutil.which(tool) is None:
            raise NoKafkaError(f"{tool} is not installed")
    _JARS.mkdir(parents=True, exist_ok=True)
    with (_JARS / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _DONE.exists():
            _download()
    return _JARS


def _download() -> None:
    command = ["mvn", "-q", "-B", "-f", str(_POM), "dependency:copy-dependencies"]
    try:
        done = subprocess.run(
            [*command, f"-DoutputDirectory={_JARS}"],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise NoKafkaError(f"Maven did not fetch it within {_TIMEOUT_S} s") from None
    if done.returncode != 0:
        raise NoKafkaError(f"Maven cannot fetch it: {done.stdout[-300:].strip()}")
    _DONE.touch()
