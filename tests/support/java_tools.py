"""Apache Kafka's own tools, from Maven Central, where Java and Maven are at hand."""

from __future__ import annotations

import functools
import subprocess
from pathlib import Path

import pytest

from mobula.loadtest import kafka_jars as jars


@functools.cache
def kafka_jars() -> Path:
    """The folder with Kafka's jars; skips the test, saying why, where it cannot be had."""
    try:
        return jars.kafka_jars()
    except jars.NoKafkaError as error:
        pytest.skip(f"Apache Kafka's own tools cannot run: {error}")


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
