"""Frames captured from kio's own writers, kept as a file.

`python -m tests.wire.golden` writes them anew; the difference is then what changed on
the wire, and should be nothing for a version that already existed.
"""

from __future__ import annotations

from pathlib import Path

from mobula.protocol.api import FIRST_FLEXIBLE, ApiKey
from tests.wire.samples import request_frame, response_frame
from tests.wire.served import SERVED

PATH = Path(__file__).with_name("golden.txt")


def captured_versions() -> list[tuple[ApiKey, int]]:
    """The first and the last version of each API, and the first flexible one."""
    return [
        (key, version)
        for key, versions in SERVED.items()
        for version in sorted({versions[0], max(FIRST_FLEXIBLE[key], versions[0]), versions[-1]})
    ]


def load() -> dict[tuple[str, ApiKey, int], bytes]:
    frames = {}
    for line in PATH.read_text().splitlines():
        kind, name, version, data = line.split()
        frames[kind, ApiKey[name.upper()], int(version)] = bytes.fromhex(data)
    return frames


def capture() -> None:
    lines = []
    for key, version in captured_versions():
        name = key.name.lower()
        lines.append(f"request {name} {version} {request_frame(key, version).hex()}")
        lines.append(f"response {name} {version} {response_frame(key, version).hex()}")
    PATH.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    capture()
