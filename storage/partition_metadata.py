"""`partition.metadata`: the id of the topic that a partition's folder belongs to."""

from __future__ import annotations

from pathlib import Path

from mobula.storage.errors import StorageError
from mobula.storage.files import parse_uuid, read_small, uuid_text, write_atomically

FILE_NAME = "partition.metadata"
_VERSION = 0


def store_topic_id(directory: Path, topic_id: bytes) -> None:
    text = f"version: {_VERSION}\ntopic_id: {uuid_text(topic_id)}"
    write_atomically(directory / FILE_NAME, text.encode(), sync=False)


def load_topic_id(directory: Path) -> bytes:
    """StorageError when the file is not to be read."""
    values = {}
    for line in read_small(f"{directory}/{FILE_NAME}").decode("utf-8", "replace").splitlines():
        key, _, value = line.partition(":")
        values[key.strip()] = value.strip()
    try:
        if int(values["version"]) != _VERSION:
            raise StorageError(f"{directory / FILE_NAME} has version {values['version']}")
        return parse_uuid(values["topic_id"])
    except (KeyError, ValueError) as error:
        raise StorageError(f"{directory / FILE_NAME} is damaged: {error!r}") from error


def check_topic_id(directory: Path, topic_id: bytes) -> None:
    """StorageError when the folder is another topic's, one of the same name perhaps."""
    found = load_topic_id(directory)
    if found != topic_id:
        raise StorageError(
            f"{directory} belongs to topic id {uuid_text(found)}, not to {uuid_text(topic_id)}"
        )
