"""The keys of a topic, with the broker keys that give their defaults."""

from __future__ import annotations

from collections.abc import Sequence

from mobula.actors.config.key import (
    MAX_LONG,
    Check,
    ConfigType,
    Key,
    Scope,
    Synonym,
    all_of,
    at_least,
    between,
    either,
    one_of,
    only,
)

_HOUR_MS = 3_600_000
_MINUTE_MS = 60_000


def _key(
    name: str,
    kind: ConfigType,
    default: str,
    doc: str,
    *checks: Check,
    synonyms: Sequence[Synonym] = (),
    ours: bool = False,
) -> Key:
    return Key(
        name=name,
        type=kind,
        default=default,
        doc=doc,
        scope=Scope.TOPIC,
        checks=checks,
        synonyms=tuple(synonyms),
        dynamic=True,
        ours=ours,
    )


_NO_CLEANER = " No log cleaner runs yet: the value is kept and shown, and changes nothing."

TOPIC = (
    _key(
        "cleanup.policy",
        ConfigType.LIST,
        "delete",
        "What happens to old data: `delete` drops whole segments past the retention limits, "
        "`compact` keeps the last value of each key; both may be given, or none, which keeps "
        "everything. A compacted topic "
        "refuses records without a key. No log cleaner runs yet, so a compacted topic keeps "
        "every record.",
        all_of("delete", "compact"),
        synonyms=[Synonym("log.cleanup.policy")],
    ),
    _key(
        "compression.type",
        ConfigType.STRING,
        "producer",
        "The codec that batches are stored with. `producer` stores them as they came; another "
        "value makes the leader compress them again when they came differently.",
        one_of("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"),
        synonyms=[Synonym("compression.type")],
    ),
    _key(
        "compression.gzip.level",
        ConfigType.INT,
        "-1",
        "The level when compression.type is gzip; -1 is the library's own choice.",
        either(-1, between(1, 9)),
        synonyms=[Synonym("compression.gzip.level")],
    ),
    _key(
        "compression.lz4.level",
        ConfigType.INT,
        "9",
        "The level when compression.type is lz4.",
        between(1, 17),
        synonyms=[Synonym("compression.lz4.level")],
    ),
    _key(
        "compression.zstd.level",
        ConfigType.INT,
        "3",
        "The level when compression.type is zstd.",
        between(-131072, 22),
        synonyms=[Synonym("compression.zstd.level")],
    ),
    _key(
        "delete.retention.ms",
        ConfigType.LONG,
        "86400000",
        "How long a compacted topic keeps the mark of a deleted key." + _NO_CLEANER,
        at_least(0),
    ),
    _key(
        "file.delete.delay.ms",
        ConfigType.LONG,
        "60000",
        "How long a segment that was dropped stays on disk before its files are removed.",
        at_least(0),
        synonyms=[Synonym("log.segment.delete.delay.ms")],
    ),
    _key(
        "flush.messages",
        ConfigType.LONG,
        str(MAX_LONG),
        "Force the log to disk after this many records. Left alone, durability comes from "
        "replication and the operating system writes when it likes.",
        at_least(1),
        synonyms=[Synonym("log.flush.interval.messages")],
    ),
    _key(
        "flush.ms",
        ConfigType.LONG,
        str(MAX_LONG),
        "Force the log to disk when a record has waited this long.",
        at_least(0),
        synonyms=[
            Synonym("log.flush.interval.ms"),
            Synonym("log.flush.scheduler.interval.ms"),
        ],
    ),
    _key(
        "index.interval.bytes",
        ConfigType.INT,
        "4096",
        "An entry is added to the offset index after this many bytes: smaller finds an offset "
        "with less reading, larger makes smaller index files.",
        at_least(0),
        synonyms=[Synonym("log.index.interval.bytes")],
    ),
    _key(
        "max.compaction.lag.ms",
        ConfigType.LONG,
        str(MAX_LONG),
        "How long a record may stay before it must be compacted." + _NO_CLEANER,
        at_least(1),
    ),
    _key(
        "max.message.bytes",
        ConfigType.INT,
        "1048588",
        "The largest record batch that is accepted, as it is on the wire (so after "
        "compression); a larger one is answered MESSAGE_TOO_LARGE.",
        at_least(0),
        synonyms=[Synonym("message.max.bytes")],
    ),
    _key(
        "message.timestamp.after.max.ms",
        ConfigType.LONG,
        "3600000",
        "How far a record's timestamp may lie in the future; later ones are answered "
        "INVALID_TIMESTAMP. Not used with LogAppendTime.",
        at_least(0),
        synonyms=[Synonym("log.message.timestamp.after.max.ms")],
    ),
    _key(
        "message.timestamp.before.max.ms",
        ConfigType.LONG,
        str(MAX_LONG),
        "How far a record's timestamp may lie in the past; older ones are answered "
        "INVALID_TIMESTAMP. Not used with LogAppendTime.",
        at_least(0),
        synonyms=[Synonym("log.message.timestamp.before.max.ms")],
    ),
    _key(
        "message.timestamp.type",
        ConfigType.STRING,
        "CreateTime",
        "Whose clock a record's timestamp is: the producer's (CreateTime), or the leader's at "
        "the append (LogAppendTime).",
        one_of("CreateTime", "LogAppendTime"),
        synonyms=[Synonym("log.message.timestamp.type")],
    ),
    _key(
        "min.cleanable.dirty.ratio",
        ConfigType.DOUBLE,
        "0.5",
        "How much of a compacted log may be dirty before it is cleaned." + _NO_CLEANER,
        between(0, 1),
    ),
    _key(
        "min.compaction.lag.ms",
        ConfigType.LONG,
        "0",
        "How long a record stays before it may be compacted." + _NO_CLEANER,
        at_least(0),
    ),
    _key(
        "min.insync.replicas",
        ConfigType.INT,
        "1",
        "How many replicas must be in sync for a write with acks=all; with fewer it is refused "
        "before any byte is written. With replication factor 3, 2 means that an acknowledged "
        "record survives the loss of any one broker.",
        at_least(1),
        synonyms=[Synonym("min.insync.replicas")],
    ),
    _key(
        "preallocate",
        ConfigType.BOOLEAN,
        "false",
        "Whether a new segment gets its whole size on disk at once. Segments grow as they are "
        "written here.",
        only(False, "segments are never preallocated"),
    ),
    _key(
        "replica.actor",
        ConfigType.STRING,
        "shared",
        "`shared`: the partitions of this topic live in their brokers' replica actors with "
        "those of other topics. `dedicated`: each replica of each partition gets an actor, so "
        "a process, of its own. That isolates a hot partition, at about 50 MB each. Decided "
        "when the topic is created.",
        one_of("shared", "dedicated"),
        ours=True,
    ),
    _key(
        "retention.bytes",
        ConfigType.LONG,
        "-1",
        "How large a partition may grow before its oldest segments are dropped; -1 is no limit.",
        at_least(-1),
        synonyms=[Synonym("log.retention.bytes")],
    ),
    _key(
        "retention.ms",
        ConfigType.LONG,
        "604800000",
        "How long records are kept before their segments are dropped; -1 is for ever.",
        at_least(-1),
        synonyms=[
            Synonym("log.retention.ms"),
            Synonym("log.retention.minutes", _MINUTE_MS),
            Synonym("log.retention.hours", _HOUR_MS),
        ],
    ),
    _key(
        "segment.bytes",
        ConfigType.INT,
        "1073741824",
        "The size at which a new segment file is begun. Retention drops whole segments, so "
        "smaller ones make it finer and make more files.",
        at_least(14),
        synonyms=[Synonym("log.segment.bytes")],
    ),
    _key(
        "segment.index.bytes",
        ConfigType.INT,
        "10485760",
        "How large a segment's offset index may grow; a full one begins a new segment.",
        at_least(4),
        synonyms=[Synonym("log.index.size.max.bytes")],
    ),
    _key(
        "segment.jitter.ms",
        ConfigType.LONG,
        "0",
        "Taken off segment.ms at random, so that segments do not all roll at once.",
        at_least(0),
        synonyms=[
            Synonym("log.roll.jitter.ms"),
            Synonym("log.roll.jitter.hours", _HOUR_MS),
        ],
    ),
    _key(
        "segment.ms",
        ConfigType.LONG,
        "604800000",
        "The age at which a new segment is begun even when the file is not full.",
        at_least(1),
        synonyms=[Synonym("log.roll.ms"), Synonym("log.roll.hours", _HOUR_MS)],
    ),
    _key(
        "unclean.leader.election.enable",
        ConfigType.BOOLEAN,
        "false",
        "Whether a replica that is not in sync may become leader when no other is left, at the "
        "price of acknowledged records.",
        only(False, "unclean elections are not supported yet"),
        synonyms=[Synonym("unclean.leader.election.enable")],
    ),
)
