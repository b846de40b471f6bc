"""The broker's data folder: locked while the broker lives, and its own for good."""

from __future__ import annotations

import dataclasses
import uuid
from pathlib import Path

from mobula.storage.dir_lock import DirectoryLock
from mobula.storage.meta_properties import MetaProperties, check_owner


class DataFolder:
    """FolderError on construction when another process holds it or another broker owns it."""

    def __init__(self, path: Path, broker_id: int) -> None:
        path.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._lock = DirectoryLock(path)
        self.meta = check_owner(path, broker_id) or MetaProperties(
            cluster_id="", node_id=broker_id, directory_id=uuid.uuid4().bytes
        )

    def adopt(self, cluster_id: str) -> None:
        """From now on the folder belongs to this cluster."""
        if self.meta.cluster_id != cluster_id:
            self.meta = dataclasses.replace(self.meta, cluster_id=cluster_id)
            self.meta.store(self.path)

    def release(self) -> None:
        self._lock.release()
