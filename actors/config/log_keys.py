"""Broker keys: the logs. Most give topics their defaults."""

from __future__ import annotations

from mobula.actors.config.key import (
    MAX_LONG,
    ConfigType,
    all_of,
    at_least,
    between,
    broker_key,
    either,
    one_of,
)

_INT = ConfigType.INT
_LONG = ConfigType.LONG

LOG = (
    broker_key(
        "log.segment.bytes",
        _INT,
        "1073741824",
        "The size at which a new segment file is begun.",
        at_least(14),
    ),
    broker_key(
        "log.roll.ms",
        _LONG,
        None,
        "The age at which a new segment is begun. When it is not set, log.roll.hours counts.",
        at_least(1),
    ),
    broker_key(
        "log.roll.hours",
        _INT,
        "168",
        "The age at which a new segment is begun, when log.roll.ms is not set.",
        at_least(1),
    ),
    broker_key(
        "log.roll.jitter.ms",
        _LONG,
        None,
        "Taken off the roll age at random. When it is not set, log.roll.jitter.hours counts.",
        at_least(0),
    ),
    broker_key(
        "log.roll.jitter.hours",
        _INT,
        "0",
        "Taken off the roll age at random, when log.roll.jitter.ms is not set.",
        at_least(0),
    ),
    broker_key(
        "log.retention.ms",
        _LONG,
        None,
        "How long records are kept; -1 is for ever. When it is not set, log.retention.minutes "
        "counts, and then log.retention.hours.",
        at_least(-1),
    ),
    broker_key(
        "log.retention.minutes",
        _INT,
        None,
        "How long records are kept, when log.retention.ms is not set; -1 is for ever.",
        at_least(-1),
    ),
    broker_key(
        "log.retention.hours",
        _INT,
        "168",
        "How long records are kept, when neither log.retention.ms nor log.retention.minutes is "
        "set; -1 is for ever.",
        at_least(-1),
    ),
    broker_key(
        "log.retention.bytes",
        _LONG,
        "-1",
        "How large a partition may grow before its oldest segments are dropped; -1 is no limit.",
        at_least(-1),
    ),
    broker_key(
        "log.retention.check.interval.ms",
        _LONG,
        "300000",
        "How often partitions are checked for segments that retention drops.",
        at_least(1),
    ),
    broker_key(
        "log.cleanup.policy",
        ConfigType.LIST,
        "delete",
        "What happens to old data of topics that do not say: delete, compact or both.",
        all_of("delete", "compact"),
    ),
    broker_key(
        "log.segment.delete.delay.ms",
        _LONG,
        "60000",
        "How long a segment that was dropped stays on disk before its files are removed.",
        at_least(0),
    ),
    broker_key(
        "log.index.interval.bytes",
        _INT,
        "4096",
        "An entry is added to the offset index after this many bytes.",
        at_least(0),
    ),
    broker_key(
        "log.index.size.max.bytes",
        _INT,
        "10485760",
        "How large a segment's offset index may grow; a full one begins a new segment.",
        at_least(4),
    ),
    broker_key(
        "log.flush.interval.messages",
        _LONG,
        str(MAX_LONG),
        "Force a log to disk after this many records.",
        at_least(1),
    ),
    broker_key(
        "log.flush.interval.ms",
        _LONG,
        None,
        "Force a log to disk when a record has waited this long. When it is not set, "
        "log.flush.scheduler.interval.ms counts.",
        at_least(0),
    ),
    broker_key(
        "log.flush.scheduler.interval.ms",
        _LONG,
        str(MAX_LONG),
        "Force a log to disk when a record has waited this long, when log.flush.interval.ms is "
        "not set.",
        at_least(1),
    ),
    broker_key(
        "log.message.timestamp.type",
        ConfigType.STRING,
        "CreateTime",
        "Whose clock a record's timestamp is: CreateTime or LogAppendTime.",
        one_of("CreateTime", "LogAppendTime"),
    ),
    broker_key(
        "log.message.timestamp.before.max.ms",
        _LONG,
        str(MAX_LONG),
        "How far a record's timestamp may lie in the past.",
        at_least(0),
    ),
    broker_key(
        "log.message.timestamp.after.max.ms",
        _LONG,
        "3600000",
        "How far a record's timestamp may lie in the future.",
        at_least(0),
    ),
    broker_key(
        "message.max.bytes",
        _INT,
        "1048588",
        "The largest record batch that is accepted.",
        at_least(0),
    ),
    broker_key(
        "compression.type",
        ConfigType.STRING,
        "producer",
        "The codec that batches are stored with; `producer` stores them as they came.",
        one_of("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"),
    ),
    broker_key(
        "compression.gzip.level",
        _INT,
        "-1",
        "The level when compression.type is gzip; -1 is the library's own choice.",
        either(-1, between(1, 9)),
    ),
    broker_key(
        "compression.lz4.level",
        _INT,
        "9",
        "The level when compression.type is lz4.",
        between(1, 17),
    ),
    broker_key(
        "compression.zstd.level",
        _INT,
        "3",
        "The level when compression.type is zstd.",
        between(-131072, 22),
    ),
    broker_key(
        "producer.id.expiration.ms",
        _INT,
        "86400000",
        "How long a partition remembers an idempotent producer that stopped writing.",
        at_least(1),
    ),
)
