"""Small things about files that several modules need."""

from __future__ import annotations

import base64
import contextlib
import os
from pathlib import Path


def write_atomically(path: Path, data: bytes, *, sync: bool) -> None:
    """After success, and after a crash, the file holds all of `data` or what it held.

    `sync` False leaves out fsync: a power loss may bring the old contents back.
    """
    fresh = path.with_name(path.name + ".tmp")
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        write_all(fd, data)
        if sync:
            os.fsync(fd)
    finally:
        os.close(fd)
    fresh.replace(path)
    if sync:
        sync_directory(path.parent)


def overwrite(path: str, data: bytes) -> None:
    """Quicker than `write_atomically` (no new inode) for files whose damage is noticed and
    mended: a crash may leave a mixture of old and new."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    try:
        write_all(fd, data)
        os.ftruncate(fd, len(data))
    finally:
        os.close(fd)


def read_small(path: str) -> bytes:
    """All of a file of at most a few kilobytes, or more by more calls."""
    fd = os.open(path, os.O_RDONLY)
    try:
        data = os.read(fd, 65536)
        while len(data) % 65536 == 0 and (more := os.read(fd, 65536)):
            data += more
        return data
    finally:
        os.close(fd)


def write_all(fd: int, data: bytes | bytearray | memoryview) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def sync_directory(directory: Path) -> None:
    """Make new names in the folder survive a power loss."""
    fd = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def sync_file(path: str | Path) -> None:
    """fsync by name; a file that is gone needs none."""
    with contextlib.suppress(FileNotFoundError):
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def uuid_text(uuid: bytes) -> str:
    """As Kafka writes UUIDs: URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(uuid).rstrip(b"=").decode()


def parse_uuid(text: str) -> bytes:
    """ValueError when it is none."""
    uuid = base64.urlsafe_b64decode(text + "==")
    if len(uuid) != 16:
        raise ValueError(f"{text!r} is not a UUID")
    return uuid
