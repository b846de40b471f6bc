"""What a topic's settings demand of a client's batch before it may be appended.

Records are looked at only when a setting needs them: a compacted topic, a limit on how old
they may be, another codec than the producer's. All else is judged by the header.
"""

from __future__ import annotations

from typing import Final

from mobula.protocol.errors import ErrorCode, KafkaError
from mobula.storage.batch import CODEC_MASK, BatchHeader, parse_header
from mobula.storage.compression import CODEC_NAMES, Codec
from mobula.storage.config import CREATE_TIME, NO_LIMIT, PRODUCER, LogConfig
from mobula.storage.errors import RefusedRecordsError
from mobula.storage.records import iter_record_keys, recompress

_MOST_NAMED: Final = 100
"""Refused records of a batch. A few compressed bytes can hold millions of them."""


class Admission:
    """The settings, made ready for one comparison a batch."""

    __slots__ = (
        "_codec",
        "_compacted",
        "_level",
        "_max_age_ms",
        "_max_message_bytes",
        "_segment_bytes",
        "future_ms",
        "inspects",
    )

    def __init__(self, config: LogConfig) -> None:
        create_time = config.message_timestamp_type == CREATE_TIME
        self._codec = (
            None if config.compression_type == PRODUCER else CODEC_NAMES[config.compression_type]
        )
        self._level = {
            Codec.GZIP: config.compression_gzip_level,
            Codec.LZ4: config.compression_lz4_level,
            Codec.ZSTD: config.compression_zstd_level,
        }.get(self._codec or Codec.NONE)
        self._compacted = "compact" in config.cleanup_policy
        self._max_age_ms = config.message_timestamp_before_max_ms if create_time else NO_LIMIT
        self._max_message_bytes = config.max_message_bytes
        self._segment_bytes = config.segment_bytes
        self.future_ms = config.message_timestamp_after_max_ms if create_time else NO_LIMIT
        """How far ahead of now a batch's largest timestamp may be."""
        self.inspects = self._codec is not None or self._compacted or self._max_age_ms != NO_LIMIT
        """Whether `inspect` must see each batch."""

    def check_size(self, size_bytes: int) -> None:
        if size_bytes > self._max_message_bytes:
            raise KafkaError(
                ErrorCode.message_too_large,
                f"record batch of {size_bytes} bytes, max.message.bytes is "
                f"{self._max_message_bytes}",
            )
        if size_bytes > self._segment_bytes:
            raise KafkaError(
                ErrorCode.record_list_too_large,
                f"record batch of {size_bytes} bytes, segment.bytes is {self._segment_bytes}",
            )

    def check_time(self, max_timestamp: int, now_ms: int) -> None:
        if max_timestamp - now_ms > self.future_ms:
            raise KafkaError(
                ErrorCode.invalid_timestamp,
                f"record timestamp {max_timestamp} is more than {self.future_ms} ms ahead",
            )

    def inspect(
        self, batch: memoryview, header: BatchHeader, now_ms: int
    ) -> tuple[memoryview, BatchHeader]:
        """The batch to append in place of this one: itself, or in the topic's codec."""
        if self._compacted or self._max_age_ms != NO_LIMIT:
            self._check_records(batch, now_ms)
        if self._codec is None or header.attributes & CODEC_MASK == self._codec:
            return batch, header
        again = memoryview(recompress(batch, self._codec, self._level))
        return again, parse_header(again)

    def _check_records(self, batch: memoryview, now_ms: int) -> None:
        oldest = now_ms - self._max_age_ms
        code = ErrorCode.invalid_record
        refused: list[tuple[int, str]] = []
        for index, record in enumerate(iter_record_keys(batch)):
            if self._compacted and not record.has_key:
                refused.append((index, "a compacted topic takes no record without key"))
            elif 0 <= record.timestamp < oldest:
                code = ErrorCode.invalid_timestamp
                why = f"is more than {self._max_age_ms} ms ago"
                refused.append((index, f"record timestamp {record.timestamp} {why}"))
            if len(refused) == _MOST_NAMED:
                break
        if refused:
            raise RefusedRecordsError(code, tuple(refused))
