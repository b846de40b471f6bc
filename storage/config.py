"""The settings of one log: Kafka's topic keys as values, with Kafka's defaults."""

from __future__ import annotations

from dataclasses import dataclass

NO_LIMIT = 2**63 - 1
"""What Kafka writes for "never": the largest long."""

CREATE_TIME = "CreateTime"
LOG_APPEND_TIME = "LogAppendTime"
PRODUCER = "producer"
"""The `compression.type` that keeps what the producer chose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """Field names are Kafka's topic keys with dots as underscores."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * 24 * 3_600_000
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    retention_ms: int = 7 * 24 * 3_600_000
    """-1: no limit."""
    retention_bytes: int = -1
    """-1: no limit."""
    file_delete_delay_ms: int = 60_000
    flush_messages: int = NO_LIMIT
    flush_ms: int = NO_LIMIT
    max_message_bytes: int = (1 << 20) + 12
    compression_type: str = PRODUCER
    """producer, uncompressed, gzip, snappy, lz4 or zstd."""
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    message_timestamp_type: str = CREATE_TIME
    message_timestamp_before_max_ms: int = NO_LIMIT
    message_timestamp_after_max_ms: int = 3_600_000
    cleanup_policy: frozenset[str] = frozenset({"delete"})
    producer_id_expiration_ms: int = 24 * 3_600_000
