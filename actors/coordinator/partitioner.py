"""Which partition of an internal topic a group, or a transactional id, belongs to."""

from __future__ import annotations

GROUP_TOPIC = "__consumer_offsets"
TRANSACTION_TOPIC = "__transaction_state"

_SMALLEST = -(1 << 31)


def partition_for(key: str, partitions: int) -> int:
    """As Kafka has it: by the hash's absolute value, which the smallest of all has not."""
    hashed = java_hash(key)
    return 0 if hashed == _SMALLEST else abs(hashed) % partitions


def java_hash(text: str) -> int:
    """`String.hashCode()`, over UTF-16 code units."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for at in range(0, len(units), 2):
        value = (31 * value + (units[at] << 8 | units[at + 1])) & 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value
