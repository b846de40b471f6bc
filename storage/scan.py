"""Walking the batches of a segment file without holding more than a block of it."""

from __future__ import annotations

import os
from collections.abc import Iterator

from mobula.storage.batch import (
    HEADER_BYTES,
    LOG_OVERHEAD,
    MAGIC,
    BatchHeader,
    parse_header,
)

_PREADV = hasattr(os, "preadv")
SCAN_BLOCK_BYTES = 64 << 10
LOOKUP_BLOCK_BYTES = 8 << 10
"""Most often holds all from one index entry to the next."""
CHUNK_BYTES = 1 << 20


def read_into(fd: int, view: memoryview, position: int) -> int:
    """Fill `view` from the file; fewer bytes only at the file's end."""
    done = 0
    while done < len(view):
        if _PREADV:
            count = os.preadv(fd, [view[done:]], position + done)
        else:
            data = os.pread(fd, len(view) - done, position + done)
            count = len(data)
            view[done : done + count] = data
        if not count:
            break
        done += count
    return done


def scan_headers(
    fd: int, position: int, end: int, block_bytes: int = SCAN_BLOCK_BYTES
) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of each whole batch in [position, end). Only headers are looked
    at. Stops before anything that is torn or cannot be a batch."""
    block = b""
    block_at = position
    while end - position >= HEADER_BYTES:
        at = position - block_at
        if at + HEADER_BYTES > len(block):
            block = os.pread(fd, min(block_bytes, end - position), position)
            block_at, at = position, 0
            if len(block) < HEADER_BYTES:
                return
        header = parse_header(block, at)
        size = LOG_OVERHEAD + header.batch_length
        if header.magic != MAGIC or size < HEADER_BYTES or size > end - position:
            return
        yield position, header
        position += size


def scan_batches(fd: int, position: int, end: int) -> Iterator[tuple[int, BatchHeader, memoryview]]:
    """The same with each batch's bytes, valid until the next step."""
    buffer = memoryview(bytearray(min(CHUNK_BYTES, max(end - position, 0))))
    filled = at = 0
    while end - position >= HEADER_BYTES:
        header = parse_header(buffer, at) if filled - at >= HEADER_BYTES else None
        if header is not None:
            size = LOG_OVERHEAD + header.batch_length
            if header.magic != MAGIC or size < HEADER_BYTES or size > end - position:
                return
            if size <= filled - at:
                yield position, header, buffer[at : at + size]
                at += size
                position += size
                continue
            if size > len(buffer):
                buffer = memoryview(bytearray(size))
        wanted = min(len(buffer), end - position)
        filled = read_into(fd, buffer[:wanted], position)
        at = 0
        if filled < wanted:
            end = position + filled
