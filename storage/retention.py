"""Which segments may go: whole ones, oldest first, never past the high watermark."""

from __future__ import annotations

from collections.abc import Sequence

from mobula.storage.config import LogConfig
from mobula.storage.segment import Segment


def count_deletable(
    segments: Sequence[Segment],
    config: LogConfig,
    *,
    log_start_offset: int,
    log_end_offset: int,
    high_watermark: int,
    now_ms: int,
) -> int:
    """How many of the first segments: before the log start, too old, or too much."""
    ends = [segment.base_offset for segment in segments[1:]] + [log_end_offset]
    committed = 0
    for segment, end in zip(segments, ends, strict=True):
        last_and_empty = segment is segments[-1] and not segment.size
        if end > high_watermark or last_and_empty:
            break
        committed += 1

    count = 0
    # The active segment is never wholly before the log start: it has no successor.
    while count < min(committed, len(segments) - 1) and ends[count] <= log_start_offset:
        count += 1
    if "delete" not in config.cleanup_policy:
        return count
    if config.retention_ms >= 0:
        while count < committed and now_ms - _newest_ms(segments[count]) > config.retention_ms:
            count += 1
    if config.retention_bytes >= 0:
        excess = sum(segment.size for segment in segments[count:]) - config.retention_bytes
        while count < committed and excess >= segments[count].size:
            excess -= segments[count].size
            count += 1
    return count


def _newest_ms(segment: Segment) -> int:
    """Records without timestamps are as old as their file."""
    newest = segment.largest_timestamp()
    return newest if newest >= 0 else int(segment.path.stat().st_mtime * 1000)
