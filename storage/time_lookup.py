"""From a time to a record: the time index finds the batch, the batch the record."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mobula.storage.batch import BatchHeader
from mobula.storage.records import RecordKey, iter_record_keys
from mobula.storage.scan import scan_headers
from mobula.storage.segment import Segment


class TimestampOffset(NamedTuple):
    timestamp: int
    offset: int
    leader_epoch: int


def first_since(
    segments: Sequence[Segment], timestamp: int, start_offset: int, upto_offset: int
) -> TimestampOffset | None:
    """The first record in [start_offset, upto_offset) that is not older than `timestamp`."""
    for segment in segments:
        if segment.base_offset >= upto_offset:
            return None
        if segment.largest_timestamp() < timestamp:
            continue
        start = max(segment.scan_start_for_time(timestamp), segment.scan_start(start_offset))
        for position, header in _headers(segment, start, upto_offset):
            if header.max_timestamp < timestamp or header.last_offset < start_offset:
                continue
            for record in _records(segment, position, header):
                if record.offset >= upto_offset:
                    return None
                if record.timestamp >= timestamp and record.offset >= start_offset:
                    return TimestampOffset(
                        record.timestamp, record.offset, header.partition_leader_epoch
                    )
    return None


def largest(
    segments: Sequence[Segment], start_offset: int, upto_offset: int
) -> TimestampOffset | None:
    """The first of the records in [start_offset, upto_offset) with the largest timestamp."""
    whole = [segment for segment in segments if segment.size]
    if not whole:
        return None
    top = max(whole, key=lambda segment: segment.largest_timestamp())
    found = _largest_in(top, top.max_timestamp_offset, start_offset, upto_offset)
    if found is not None and found.timestamp == top.max_timestamp:
        return found
    # The largest lies outside of the bounds: look at every batch within them.
    best: TimestampOffset | None = None
    for segment in whole:
        if segment.base_offset < upto_offset:
            found = _largest_in(segment, start_offset, start_offset, upto_offset)
            if found is not None and (best is None or found.timestamp > best.timestamp):
                best = found
    return best


def _largest_in(
    segment: Segment, since: int, start_offset: int, upto_offset: int
) -> TimestampOffset | None:
    best: TimestampOffset | None = None
    for position, header in _headers(segment, segment.scan_start(since), upto_offset):
        if header.last_offset < since or (
            best is not None and header.max_timestamp <= best.timestamp
        ):
            continue
        for record in _records(segment, position, header):
            if not start_offset <= record.offset < upto_offset:
                continue
            if best is None or record.timestamp > best.timestamp:
                best = TimestampOffset(
                    record.timestamp, record.offset, header.partition_leader_epoch
                )
        if best is not None and best.timestamp == segment.max_timestamp:
            break
    return best


def _headers(segment: Segment, start: int, upto_offset: int) -> Iterator[tuple[int, BatchHeader]]:
    for position, header in scan_headers(segment.fd(), start, segment.size):
        if header.base_offset >= upto_offset:
            return
        yield position, header


def _records(segment: Segment, position: int, header: BatchHeader) -> Iterator[RecordKey]:
    return iter_record_keys(os.pread(segment.fd(), header.size_bytes, position))
