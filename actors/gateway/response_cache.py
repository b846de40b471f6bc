"""Encoded responses that depend on nothing but the request's bytes and the metadata.

Encoding is most of what such a request costs, and clients ask the same again and again.

Invariant: what `get` returns was put for this image at this offset.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from mobula.actors.metadata.image import MetadataImage

Key: TypeAlias = tuple[str, int, bytes]
"""Listener, version and the request's body."""

_MAX_KEY_BYTES: Final = 16 * 1024
_MAX_BYTES: Final = 8 * 1024 * 1024
_MAX_ENTRIES: Final = 1024


class ResponseCache:
    def __init__(self) -> None:
        self._image: MetadataImage | None = None
        self._offset = -1
        self._responses: dict[Key, bytes] = {}
        self._size_bytes = 0

    def get(self, image: MetadataImage, key: Key) -> bytes | None:
        if image.offset != self._offset or image is not self._image:
            self._clear()
            self._image, self._offset = image, image.offset
        return self._responses.get(key)

    def put(self, key: Key, response: bytes) -> None:
        """For the image of the last `get`."""
        size_bytes = len(response) + len(key[2])
        if len(key[2]) > _MAX_KEY_BYTES or size_bytes > _MAX_BYTES:
            return
        if self._size_bytes + size_bytes > _MAX_BYTES or len(self._responses) >= _MAX_ENTRIES:
            self._clear()
        self._responses[key] = response
        self._size_bytes += size_bytes

    def _clear(self) -> None:
        self._responses.clear()
        self._size_bytes = 0
