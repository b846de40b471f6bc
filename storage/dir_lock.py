"""The `.lock` file: one process at a time owns a data folder."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from mobula.storage.errors import FolderError

FILE_NAME = ".lock"


class DirectoryLock:
    """Held until `release` or the end of the process; the file itself stays."""

    def __init__(self, directory: Path) -> None:
        """FolderError when another process holds it."""
        self._fd = os.open(directory / FILE_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._fd)
            self._fd = -1
            raise FolderError(f"data folder {directory} is in use by another process") from None

    def release(self) -> None:
        """Idempotent."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
