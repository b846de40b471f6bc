"""Logs and batches for tests of storage. Time is a variable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mobula.storage.batch import parse_header
from mobula.storage.config import LogConfig
from mobula.storage.descriptors import Descriptors
from mobula.storage.log import Log, StagedAppend
from mobula.storage.records import NewRecord, Record, build_batch, iter_records

TOPIC_ID = bytes(range(16))
NOW_MS = 1_750_000_000_000


def config(**changes: object) -> LogConfig:
    return replace(LogConfig(), **changes)  # type: ignore[arg-type]


def open_log(
    directory: Path,
    settings: LogConfig | None = None,
    *,
    clean: bool = False,
    recovery_point: int = 0,
    log_start_offset: int = 0,
    now_ms: int = NOW_MS,
    descriptors: Descriptors | None = None,
) -> Log:
    return Log.open(
        directory,
        topic_id=TOPIC_ID,
        config=settings or LogConfig(),
        now_ms=now_ms,
        clean=clean,
        recovery_point=recovery_point,
        log_start_offset=log_start_offset,
        descriptors=descriptors or Descriptors(64),
    )


def reopen_cleanly(log: Log) -> Log:
    log.close()
    return open_log(
        log.directory,
        log.config,
        clean=True,
        recovery_point=log.recovery_point,
        log_start_offset=log.log_start_offset,
    )


def values(*contents: bytes, at_ms: int = NOW_MS, step_ms: int = 1) -> list[NewRecord]:
    return [
        NewRecord(at_ms + index * step_ms, b"key", content, ())
        for index, content in enumerate(contents)
    ]


def batch(
    records: Sequence[NewRecord] | None = None,
    *,
    codec: int = 0,
    producer: tuple[int, int, int] | None = None,
) -> memoryview:
    """`producer`: id, epoch, base sequence."""
    producer_id, producer_epoch, base_sequence = producer or (-1, -1, -1)
    return memoryview(
        build_batch(
            values(b"value") if records is None else records,
            codec=codec,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
        )
    )


def append(
    log: Log, data: memoryview | None = None, *, epoch: int = 0, now_ms: int = NOW_MS
) -> StagedAppend:
    """Stage and write one batch."""
    data = batch() if data is None else data
    staged = log.stage(data, parse_header(data), leader_epoch=epoch, now_ms=now_ms)
    log.flush_staged()
    return staged


def fill(log: Log, count: int, *, size: int = 100, epoch: int = 0, at_ms: int = NOW_MS) -> None:
    """`count` batches of two records each, a millisecond apart."""
    for index in range(count):
        append(log, batch(values(b"a" * size, b"b" * size, at_ms=at_ms + index)), epoch=epoch)


def contents(log: Log) -> bytes:
    """All bytes of all segments, in order."""
    return b"".join(log.segment_path(base).read_bytes() for base in log.segment_bases)


def records(log: Log) -> list[Record]:
    data = contents(log)
    found: list[Record] = []
    at = 0
    while at < len(data):
        size = parse_header(data, at).size_bytes
        found += iter_records(data[at : at + size])
        at += size
    return found


def indexes(log: Log) -> list[bytes]:
    """The index files of all segments; no file is as good as an empty one."""
    paths = [
        log.segment_path(base).with_suffix(suffix)
        for base in log.segment_bases
        for suffix in (".index", ".timeindex")
    ]
    return [path.read_bytes() if path.exists() else b"" for path in paths]
