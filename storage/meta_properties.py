"""`meta.properties`: which broker of which cluster a data folder belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mobula.storage.errors import FolderError
from mobula.storage.files import parse_uuid, uuid_text, write_atomically

FILE_NAME = "meta.properties"
_VERSION = "1"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaProperties:
    cluster_id: str
    node_id: int
    directory_id: bytes

    def store(self, directory: Path) -> None:
        lines = [
            "#",
            f"cluster.id={self.cluster_id}",
            f"directory.id={uuid_text(self.directory_id)}",
            f"node.id={self.node_id}",
            f"version={_VERSION}",
        ]
        write_atomically(directory / FILE_NAME, ("\n".join(lines) + "\n").encode(), sync=True)


def load_meta_properties(directory: Path) -> MetaProperties | None:
    """None: nobody's folder yet. FolderError: not to be read."""
    path = directory / FILE_NAME
    try:
        text = path.read_text()
    except FileNotFoundError:
        return None
    values = {}
    for raw in text.splitlines():
        line = raw.strip()
        if line and line[0] not in "#!":
            key, _, value = line.partition("=")
            values[key.strip()] = value.strip().replace("\\", "")
    if values.get("version") != _VERSION:
        raise FolderError(
            f"{path} has version {values.get('version', 'none')}, expected {_VERSION}"
        )
    try:
        return MetaProperties(
            cluster_id=values["cluster.id"],
            node_id=int(values["node.id"]),
            directory_id=parse_uuid(values["directory.id"]),
        )
    except (KeyError, ValueError) as error:
        raise FolderError(f"{path} is damaged: {error}") from error


def check_owner(
    directory: Path, node_id: int, cluster_id: str | None = None
) -> MetaProperties | None:
    """What the folder says, found to be ours; None when it is nobody's yet.

    FolderError when it belongs to another broker, or (with `cluster_id`) cluster.
    """
    found = load_meta_properties(directory)
    if found is None:
        return None
    if found.node_id != node_id:
        raise FolderError(
            f"data folder {directory} belongs to broker {found.node_id}, not to broker {node_id}"
        )
    if cluster_id is not None and found.cluster_id != cluster_id:
        raise FolderError(
            f"data folder {directory} belongs to cluster {found.cluster_id}, not to {cluster_id}"
        )
    return found
