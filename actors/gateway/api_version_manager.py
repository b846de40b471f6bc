"""ApiVersionManager: which APIs and versions this broker answers, from its table of handlers.

Invariant: what is advertised is what a handler declared, nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from mobula.protocol.api import Api, ApiKey

_API_VERSIONS: Final = int(ApiKey.API_VERSIONS)


class ApiVersionManager:
    def __init__(self, apis: Iterable[Api]) -> None:
        self.apis: tuple[Api, ...] = tuple(sorted(apis, key=lambda api: api.key))
        self.enabled: frozenset[int] = frozenset(
            int(api.key) << 16 | version for api in self.apis for version in api.served
        )
        """Key and version in one number: `key << 16 | version`."""
        if len({api.key for api in self.apis}) != len(self.apis):
            raise ValueError("an API is declared twice")

    def is_enabled(self, key: int, version: int) -> bool:
        """Otherwise the connection is closed. ApiVersions is answered in any version: a
        client that asks in one too high learns which to use."""
        return (key << 16 | version) in self.enabled or key == _API_VERSIONS

    def advertised(self) -> list[tuple[int, int, int]]:
        """(key, first version, last version) of each API."""
        return [(int(api.key), api.versions[0], api.versions[-1]) for api in self.apis]
