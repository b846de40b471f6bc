"""Which brokers get the replicas of new partitions.

Racks count first (the replicas of a partition lie in as many racks as there are), then
that brokers get even shares of leaders and of replicas, then that live brokers go before
fenced ones. The leader is always live.

The brokers stand in a ring that changes rack at each step; each partition's leader is the
next one in it, its followers come after it at a distance that changes with each round, so
that the leaders of a lost broker spread over all the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain, zip_longest
from random import Random
from typing import NamedTuple

from mobula.protocol.errors import ErrorCode, KafkaError


class UsableBroker(NamedTuple):
    broker_id: int
    rack: str | None
    fenced: bool


def place(
    brokers: Iterable[UsableBroker], partitions: int, replication_factor: int, random: Random
) -> list[list[int]]:
    """The replicas of each new partition, its first leader first.

    KafkaError INVALID_REPLICATION_FACTOR, with Kafka's sentence, when that cannot be.
    """
    usable = sorted(brokers)
    _check(usable, replication_factor)
    live = _ring([broker for broker in usable if not broker.fenced])
    fenced = _ring([broker for broker in usable if broker.fenced])
    start = random.randrange(len(live))
    shift = random.randrange(len(live))
    return [
        _replicas(
            live,
            fenced,
            (start + index) % len(live),
            shift + index // len(live),
            replication_factor,
        )
        for index in range(partitions)
    ]


def _check(usable: Sequence[UsableBroker], replication_factor: int) -> None:
    if replication_factor > len(usable):
        raise KafkaError(
            ErrorCode.invalid_replication_factor,
            f"The target replication factor of {replication_factor} cannot be reached because "
            f"only {len(usable)} broker(s) are registered or some brokers have all their log "
            "directories cordoned.",
        )
    if all(broker.fenced for broker in usable):
        raise KafkaError(ErrorCode.invalid_replication_factor, "All brokers are currently fenced.")


def _ring(brokers: Sequence[UsableBroker]) -> list[UsableBroker]:
    """The brokers in an order in which neighbours are in different racks where possible."""
    racks: dict[str | None, list[UsableBroker]] = {}
    for broker in brokers:
        racks.setdefault(broker.rack, []).append(broker)
    rounds = zip_longest(*racks.values())
    return [broker for broker in chain.from_iterable(rounds) if broker is not None]


def _replicas(
    live: Sequence[UsableBroker],
    fenced: Sequence[UsableBroker],
    leader: int,
    shift: int,
    replication_factor: int,
) -> list[int]:
    replicas = [live[leader].broker_id]
    if replication_factor == 1:
        return replicas
    others = [*live[leader + 1 :], *live[:leader]]
    candidates = [*_rotated(others, shift), *_rotated(fenced, shift)]
    racks = Counter([live[leader].rack])
    for _ in range(replication_factor - 1):
        # The first of the least used rack; live ones stand before fenced ones.
        chosen = min(candidates, key=lambda broker: racks[broker.rack])
        candidates.remove(chosen)
        racks[chosen.rack] += 1
        replicas.append(chosen.broker_id)
    return replicas


def _rotated(brokers: Sequence[UsableBroker], by: int) -> list[UsableBroker]:
    at = by % len(brokers) if brokers else 0
    return [*brokers[at:], *brokers[:at]]
