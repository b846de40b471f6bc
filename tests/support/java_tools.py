"""Apache Kafka's own tools, from Maven Central, where Java and Maven are at hand."""

from __future__ import annotations

import fcntl
import functools
import shutil
import subprocess
from pathlib import Path

import pytest

_POM = Path(__file__).parent.parent / "java" / "pom.xml"
_JARS = _POM.parent / "target" / "jars"
_DONE = _JARS / ".complete"


@functools.cache
def kafka_jars() -> Path:
    """The folder with Kafka's jars; skips the test, saying why, where it cannot be had."""
    for tool in ("java", "mvn"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed: Apache Kafka's own tools cannot run")
    _JARS.mkdir(parents=True, exist_ok=True)
    with (_JARS / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _DONE.exists():
            _download()
    return _JARS


def _download() -> None:
    command = ["mvn", "-q", "-B", "-f", str(_POM), "dependency:copy-dependencies"]
    done = subprocess.run(
        [*command, f"-DoutputDirectory={_JARS}"],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if done.returncode != 0:
        pytest.skip(f"Maven cannot fetch Apache Kafka's tools: {done.stdout[-300:]}")
    _DONE.touch()


def run_kafka_tool(
    main_class: str, *arguments: str, stdin: str | None = None, timeout_s: float = 120
) -> str:
    """What the tool printed; fails the test when it exits with an error."""
    done = subprocess.run(
        [
            "java",
            "-Xmx256m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-cp",
            f"{kafka_jars()}/*",
            main_class,
            *arguments,
        ],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    assert done.returncode == 0, (
        f"{main_class} failed:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    )
    return done.stdout
