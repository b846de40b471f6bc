"""What members of a classic consumer group say that they read.

Their metadata is theirs alone but for that: Kafka reads the topics out of it too.
"""

from __future__ import annotations

import struct

from mobula.actors.coordinator.group.classic_group import CONSUMER_PROTOCOL_TYPE, ClassicGroup

_HEAD = struct.Struct(">hi")
_SHORT = struct.Struct(">h")


def subscribed_topics(group: ClassicGroup) -> frozenset[str] | None:
    """Of all its members. None: it cannot be known, so it may be any."""
    if not group.members:
        return frozenset()
    if group.protocol_type != CONSUMER_PROTOCOL_TYPE or group.protocol is None:
        return None
    topics: set[str] = set()
    for member in group.members.values():
        found = topics_of(member.metadata_of(group.protocol))
        if found is None:
            return None
        topics |= found
    return frozenset(topics)


def topics_of(subscription: bytes) -> set[str] | None:
    """Of one member; None when these bytes are no subscription."""
    try:
        _, count = _HEAD.unpack_from(subscription)
        at = _HEAD.size
        topics: set[str] = set()
        for _ in range(count):
            (length,) = _SHORT.unpack_from(subscription, at)
            at += 2
            topics.add(subscription[at : at + length].decode())
            at += length
    except (struct.error, UnicodeDecodeError):
        return None
    return topics if at <= len(subscription) else None
