"""The cache of fetch sessions: who may stay."""

from __future__ import annotations

from random import Random

from mobula.actors.gateway.fetch_session import (
    EVICTABLE_AFTER_MS,
    NO_SESSION,
    FetchSessionCache,
    PartitionKey,
    SessionPartition,
    next_epoch,
)
from mobula.protocol.fetch import FetchPartition


def partitions(count: int) -> dict[PartitionKey, SessionPartition]:
    keys: list[PartitionKey] = [("orders", index) for index in range(count)]
    return {key: SessionPartition(key, FetchPartition(key[1], -1, 0, -1, -1, 1)) for key in keys}


def open_session(cache: FetchSessionCache, size: int, now_ms: int) -> int:
    return cache.open(partitions(size), False, now_ms)


def test_session_ids_are_positive_and_differ() -> None:
    cache = FetchSessionCache(100, Random(7))
    ids = {open_session(cache, 1, 0) for _ in range(100)}
    assert len(ids) == 100
    assert all(0 < session_id < 1 << 31 for session_id in ids)


def test_a_full_cache_of_young_sessions_refuses_a_new_one_however_large() -> None:
    cache = FetchSessionCache(2, Random(7))
    first, second = open_session(cache, 1, 0), open_session(cache, 1, 0)
    assert open_session(cache, 100, EVICTABLE_AFTER_MS) == NO_SESSION
    assert cache.get(first) is not None
    assert cache.get(second) is not None


def test_a_session_that_was_long_not_used_gives_way_to_any() -> None:
    cache = FetchSessionCache(2, Random(7))
    idle, used = open_session(cache, 50, 0), open_session(cache, 50, 1)
    _use(cache, used, EVICTABLE_AFTER_MS)
    assert open_session(cache, 1, EVICTABLE_AFTER_MS + 1) != NO_SESSION
    assert cache.get(idle) is None
    assert cache.get(used) is not None
    assert cache.evictions == 1


def test_an_old_session_in_use_gives_way_only_to_a_larger_one() -> None:
    cache = FetchSessionCache(2, Random(7))
    small, large = open_session(cache, 3, 0), open_session(cache, 9, 0)
    now_ms = EVICTABLE_AFTER_MS + 1
    _use(cache, small, now_ms)
    _use(cache, large, now_ms)
    assert open_session(cache, 3, now_ms) == NO_SESSION
    assert open_session(cache, 4, now_ms) != NO_SESSION
    assert cache.get(small) is None
    assert cache.get(large) is not None


def test_a_cache_without_slots_opens_none() -> None:
    assert open_session(FetchSessionCache(0, Random(7)), 5, 0) == NO_SESSION


def test_epochs_go_round_without_the_one_that_opens_a_session() -> None:
    assert next_epoch(0) == 1
    assert next_epoch(1) == 2
    assert next_epoch((1 << 31) - 1) == 1


def _use(cache: FetchSessionCache, session_id: int, now_ms: int) -> None:
    session = cache._sessions[session_id]
    session.last_used_ms = now_ms
    cache._sessions.move_to_end(session_id)
