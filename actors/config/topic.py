"""A topic's configuration: what was set for it, over what the broker gives all topics.

Precedence, as in Kafka: the topic's own value, the broker's dynamic value, the dynamic
value for all brokers, the broker's properties, the default. Where several broker keys
give one topic key (`log.retention.ms`, `.minutes`, `.hours`), the finer one wins.
"""

from __future__ import annotations

from collections.abc import Mapping

from mobula.actors.config import Config
from mobula.actors.config.definitions import TOPIC_KEYS, Scope
from mobula.actors.config.definitions import validate as _validate
from mobula.actors.config.key import ConfigError, Key, Value
from mobula.actors.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, MetadataImage
from mobula.storage.config import LogConfig

__all__ = [
    "broker_config_now",
    "log_config",
    "topic_config",
    "topic_config_of",
    "validate",
    "validate_all",
]


def validate(key: str, value: str) -> Value:
    """Check one setting of a topic; ConfigError with one sentence when it is refused."""
    return _validate(key, value, Scope.TOPIC)


def validate_all(values: Mapping[str, str]) -> None:
    """Check all that is set for a topic, each for itself and together."""
    problems: list[str] = []
    for key, value in values.items():
        try:
            validate(key, value)
        except ConfigError as error:
            problems += error.problems
    if problems:
        raise ConfigError(*problems)
    config = Config(values)
    if config.integer("min.compaction.lag.ms") > config.integer("max.compaction.lag.ms"):
        raise ConfigError("min.compaction.lag.ms must not be greater than max.compaction.lag.ms")


def broker_config_now(image: MetadataImage, broker_config: Config, broker_id: int | None) -> Config:
    """What the broker was started with, under what was changed since."""
    layers = [image.configs.get((BROKER_RESOURCE, ""), {})]
    if broker_id is not None:
        layers.append(image.configs.get((BROKER_RESOURCE, str(broker_id)), {}))
    return broker_config.overlaid(*layers) if any(layers) else broker_config


def topic_config(
    image: MetadataImage,
    topic_name: str,
    broker_config: Config,
    broker_id: int | None = None,
) -> Config:
    """Every topic key with its value for this topic, known to the image or not.

    `broker_config` is what the broker was started with; `broker_id` lets what was changed
    for this broker alone count too.
    """
    own = image.configs.get((TOPIC_RESOURCE, topic_name), {})
    return topic_config_of(own, broker_config_now(image, broker_config, broker_id))


def topic_config_of(own: Mapping[str, str], broker_config: Config) -> Config:
    """The same from the topic's own settings (a topic that is about to be created)."""
    values = {}
    for name, key in TOPIC_KEYS.items():
        value = own.get(name)
        values[name] = inherited(key, broker_config) if value is None else value
    return Config(values)


def inherited(key: Key, broker_config: Config) -> str:
    """What a topic has that does not set the key itself."""
    for synonym in key.synonyms:
        text = broker_config.values.get(synonym.key)
        if text is not None:
            return converted(text, synonym.factor)
    assert key.default is not None
    return key.default


def converted(text: str, factor: int) -> str:
    """A broker key's value in the topic key's unit; negative means "no limit" in any."""
    if factor == 1:
        return text
    value = int(text)
    return "-1" if value < 0 else str(value * factor)


def log_config(
    image: MetadataImage,
    topic_name: str,
    broker_config: Config,
    broker_id: int | None = None,
) -> LogConfig:
    """The same as the log wants it."""
    broker = broker_config_now(image, broker_config, broker_id)
    own = image.configs.get((TOPIC_RESOURCE, topic_name), {})
    return log_config_of(topic_config_of(own, broker), broker)


def log_config_of(topic: Config, broker: Config) -> LogConfig:
    return LogConfig(
        segment_bytes=topic.integer("segment.bytes"),
        segment_ms=topic.integer("segment.ms"),
        segment_jitter_ms=topic.integer("segment.jitter.ms"),
        segment_index_bytes=topic.integer("segment.index.bytes"),
        index_interval_bytes=topic.integer("index.interval.bytes"),
        retention_ms=topic.integer("retention.ms"),
        retention_bytes=topic.integer("retention.bytes"),
        file_delete_delay_ms=topic.integer("file.delete.delay.ms"),
        flush_messages=topic.integer("flush.messages"),
        flush_ms=topic.integer("flush.ms"),
        max_message_bytes=topic.integer("max.message.bytes"),
        compression_type=topic.string("compression.type"),
        compression_gzip_level=topic.integer("compression.gzip.level"),
        compression_lz4_level=topic.integer("compression.lz4.level"),
        compression_zstd_level=topic.integer("compression.zstd.level"),
        message_timestamp_type=topic.string("message.timestamp.type"),
        message_timestamp_before_max_ms=topic.integer("message.timestamp.before.max.ms"),
        message_timestamp_after_max_ms=topic.integer("message.timestamp.after.max.ms"),
        cleanup_policy=frozenset(topic.strings("cleanup.policy")),
        producer_id_expiration_ms=broker.integer("producer.id.expiration.ms"),
    )
