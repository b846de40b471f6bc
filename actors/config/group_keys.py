"""Broker keys: groups and their offsets."""

from __future__ import annotations

from mobula.actors.config.key import ConfigType, at_least, between, broker_key

_INT = ConfigType.INT
_MINUTE_MS = 60_000
_MEGABYTE = 1024 * 1024

GROUPS = (
    broker_key(
        "group.initial.rebalance.delay.ms",
        _INT,
        "3000",
        "How long the first rebalance of a group waits for more members.",
        at_least(0),
    ),
    broker_key(
        "group.min.session.timeout.ms",
        _INT,
        "6000",
        "The shortest session that a member of a classic group may ask for.",
        at_least(0),
    ),
    broker_key(
        "group.max.session.timeout.ms",
        _INT,
        str(30 * _MINUTE_MS),
        "The longest session that a member of a classic group may ask for.",
        at_least(0),
    ),
    broker_key(
        "group.max.size",
        _INT,
        "2147483647",
        "How many members a classic group may have.",
        at_least(1),
    ),
    broker_key(
        "offset.metadata.max.bytes",
        _INT,
        "4096",
        "The longest text that a commit may carry beside its offset.",
        at_least(0),
    ),
    broker_key(
        "offsets.commit.timeout.ms",
        _INT,
        "5000",
        "How long a coordinator waits until what it wrote is on enough replicas.",
        at_least(1),
    ),
    broker_key(
        "offsets.topic.num.partitions",
        _INT,
        "50",
        "How many partitions `__consumer_offsets` is created with.",
        at_least(1),
    ),
    broker_key(
        "offsets.topic.replication.factor",
        ConfigType.SHORT,
        "3",
        "How many replicas `__consumer_offsets` is created with. `mobula up` sets it to the number "
        "of brokers, at most 3, unless told otherwise.",
        between(1, 32767),
    ),
    broker_key(
        "offsets.topic.segment.bytes",
        _INT,
        str(100 * _MEGABYTE),
        "The segment size that `__consumer_offsets` is created with.",
        at_least(1),
    ),
)
