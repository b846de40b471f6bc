"""A topic's configuration over the broker's."""

from __future__ import annotations

import pytest

from mobula.actors.config import Config, ConfigError
from mobula.actors.config.describe import describe_topic
from mobula.actors.config.topic import log_config, topic_config, validate, validate_all
from mobula.actors.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, MetadataImage
from mobula.actors.metadata.records import ConfigChanged
from mobula.storage.config import LogConfig


def image_with(*changes: ConfigChanged) -> MetadataImage:
    image = MetadataImage()
    image.replay_all(changes)
    return image


def test_a_topic_without_settings_has_the_logs_own_defaults() -> None:
    assert log_config(MetadataImage(), "t", Config({})) == LogConfig()


def test_the_brokers_setting_is_the_topics_default() -> None:
    config = topic_config(MetadataImage(), "t", Config({"log.segment.bytes": "1000"}))
    assert config.integer("segment.bytes") == 1000


def test_the_topics_own_setting_wins() -> None:
    image = image_with(ConfigChanged(TOPIC_RESOURCE, "t", "segment.bytes", "2000"))
    broker = Config({"log.segment.bytes": "1000"})
    assert topic_config(image, "t", broker).integer("segment.bytes") == 2000
    assert topic_config(image, "u", broker).integer("segment.bytes") == 1000


@pytest.mark.parametrize(
    ("settings", "retention_ms"),
    [
        ({}, 168 * 3_600_000),
        ({"log.retention.hours": "1"}, 3_600_000),
        ({"log.retention.hours": "1", "log.retention.minutes": "2"}, 120_000),
        (
            {"log.retention.hours": "1", "log.retention.minutes": "2", "log.retention.ms": "3"},
            3,
        ),
        ({"log.retention.hours": "-1"}, -1),
        ({"log.retention.minutes": "-1"}, -1),
    ],
)
def test_the_finer_unit_wins_and_negative_is_for_ever(
    settings: dict[str, str], retention_ms: int
) -> None:
    assert log_config(MetadataImage(), "t", Config(settings)).retention_ms == retention_ms


def test_what_was_changed_for_one_broker_wins_over_all_brokers_and_over_the_file() -> None:
    image = image_with(
        ConfigChanged(BROKER_RESOURCE, "", "message.max.bytes", "20"),
        ConfigChanged(BROKER_RESOURCE, "1", "message.max.bytes", "30"),
    )
    static = Config({"message.max.bytes": "10"})
    assert log_config(image, "t", static, broker_id=0).max_message_bytes == 20
    assert log_config(image, "t", static, broker_id=1).max_message_bytes == 30
    assert log_config(image, "t", static).max_message_bytes == 20


def test_every_setting_reaches_the_log() -> None:
    image = image_with(
        *(
            ConfigChanged(TOPIC_RESOURCE, "t", key, value)
            for key, value in {
                "cleanup.policy": "compact,delete",
                "compression.type": "zstd",
                "compression.gzip.level": "1",
                "compression.lz4.level": "2",
                "compression.zstd.level": "4",
                "file.delete.delay.ms": "5",
                "flush.messages": "6",
                "flush.ms": "7",
                "index.interval.bytes": "8",
                "max.message.bytes": "9",
                "message.timestamp.after.max.ms": "10",
                "message.timestamp.before.max.ms": "11",
                "message.timestamp.type": "LogAppendTime",
                "retention.bytes": "12",
                "retention.ms": "13",
                "segment.bytes": "14",
                "segment.index.bytes": "15",
                "segment.jitter.ms": "16",
                "segment.ms": "17",
            }.items()
        )
    )
    assert log_config(image, "t", Config({"producer.id.expiration.ms": "18"})) == LogConfig(
        cleanup_policy=frozenset({"compact", "delete"}),
        compression_type="zstd",
        compression_gzip_level=1,
        compression_lz4_level=2,
        compression_zstd_level=4,
        file_delete_delay_ms=5,
        flush_messages=6,
        flush_ms=7,
        index_interval_bytes=8,
        max_message_bytes=9,
        message_timestamp_after_max_ms=10,
        message_timestamp_before_max_ms=11,
        message_timestamp_type="LogAppendTime",
        retention_bytes=12,
        retention_ms=13,
        segment_bytes=14,
        segment_index_bytes=15,
        segment_jitter_ms=16,
        segment_ms=17,
        producer_id_expiration_ms=18,
    )


def test_a_topics_setting_is_checked() -> None:
    assert validate("retention.ms", "-1") == -1
    with pytest.raises(ConfigError):
        validate("retention.ms", "-2")
    with pytest.raises(ConfigError, match="nearest match is retention"):
        validate("retention.mss", "1")


def test_all_settings_of_a_topic_are_checked_together() -> None:
    validate_all({"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "5"})
    with pytest.raises(ConfigError, match=r"min\.compaction\.lag\.ms must not be greater"):
        validate_all({"min.compaction.lag.ms": "6", "max.compaction.lag.ms": "5"})
    with pytest.raises(ConfigError) as refused:
        validate_all({"retention.ms": "x", "segment.bytes": "y"})
    assert len(refused.value.problems) == 2


def test_what_is_described_is_what_counts() -> None:
    image = image_with(
        ConfigChanged(TOPIC_RESOURCE, "t", "segment.bytes", "2000"),
        ConfigChanged(BROKER_RESOURCE, "", "log.retention.minutes", "3"),
    )
    broker = Config({"log.retention.hours": "1", "log.roll.hours": "2"})
    described = {entry.name: entry.value for entry in describe_topic(image, "t", broker, 0)}
    assert described == topic_config(image, "t", broker, 0).values
