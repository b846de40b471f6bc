"""What the tests of the command line share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.cli.running import FakeLauncher


@pytest.fixture
def launcher(monkeypatch: pytest.MonkeyPatch) -> FakeLauncher:
    fake = FakeLauncher()
    fake.install(monkeypatch)
    return fake


@pytest.fixture
def run_root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """State files go here instead of /tmp."""
    root = tmp_path / "run"
    monkeypatch.setattr("mobula.cluster.state.run_root", lambda: root)
    return root


@pytest.fixture(scope="module")
def brokers() -> Iterator[str]:
    """Brokers that librdkafka simulates: real sockets and a real protocol, without a cluster."""
    from confluent_kafka import Producer

    holder = Producer({"bootstrap.servers": "unused:1", "test.mock.num.brokers": 3, "log_level": 0})
    metadata = holder.list_topics(timeout=10)
    yield ",".join(f"{broker.host}:{broker.port}" for broker in metadata.brokers.values())
    # They live as long as this client does.
    holder.flush(0)
