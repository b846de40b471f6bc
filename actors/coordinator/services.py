"""What the handlers of coordinators may use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mobula.actors.config import Config
from mobula.actors.coordinator.group.group_coordinator import GroupCoordinator
from mobula.actors.metadata.image import MetadataImage


@dataclass(slots=True, kw_only=True)
class CoordinatorServices:
    config: Config
    groups: GroupCoordinator
    now_ms: Callable[[], int]
    """Wall time."""
    current_image: Callable[[], MetadataImage]

    @property
    def image(self) -> MetadataImage:
        return self.current_image()

    def allows_session(self, timeout_ms: int) -> bool:
        shortest = self.config.integer("group.min.session.timeout.ms")
        longest = self.config.integer("group.max.session.timeout.ms")
        return shortest <= timeout_ms <= longest

    def metadata_too_long(self, metadata: str) -> bool:
        return len(metadata) > self.config.integer("offset.metadata.max.bytes")
