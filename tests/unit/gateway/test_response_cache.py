from __future__ import annotations

from mobula.actors.gateway.response_cache import ResponseCache
from mobula.actors.metadata.image import MetadataImage


def test_a_response_is_found_only_at_the_offset_it_was_put_for() -> None:
    cache, image = ResponseCache(), MetadataImage(offset=5)
    assert cache.get(image, ("L", 1, b"q")) is None
    cache.put(("L", 1, b"q"), b"answer")
    assert cache.get(image, ("L", 1, b"q")) == b"answer"
    assert cache.get(image, ("L", 2, b"q")) is None
    assert cache.get(image, ("M", 1, b"q")) is None
    image.offset = 6
    assert cache.get(image, ("L", 1, b"q")) is None


def test_a_snapshot_at_the_same_offset_voids_everything() -> None:
    cache, image = ResponseCache(), MetadataImage(offset=5)
    cache.get(image, ("L", 1, b"q"))
    cache.put(("L", 1, b"q"), b"answer")
    assert cache.get(MetadataImage(offset=5), ("L", 1, b"q")) is None


def test_memory_stays_bounded_whatever_is_asked() -> None:
    cache, image = ResponseCache(), MetadataImage(offset=5)
    for number in range(5000):
        key = ("L", 1, str(number).encode())
        cache.get(image, key)
        cache.put(key, bytes(10_000))
    assert sum(map(len, cache._responses.values())) <= 8 * 1024 * 1024
    cache.put(("L", 1, bytes(100_000)), b"x")
    assert ("L", 1, bytes(100_000)) not in cache._responses
