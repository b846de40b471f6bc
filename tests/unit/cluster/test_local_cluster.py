"""LocalCluster before it starts."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from mobula.cluster import LocalCluster
from mobula.cluster.options import UsageError


def test_a_cluster_that_was_refused_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    LocalCluster()
    with pytest.raises(UsageError):
        LocalCluster(brokers=0)
    assert list(tmp_path.iterdir()) == []
