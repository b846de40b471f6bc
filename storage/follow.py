"""What a follower checks in the batches it got before its log end moves."""

from __future__ import annotations

from crc32c import crc32c

from mobula.storage.batch import (
    CRC_COVERS_FROM,
    HEADER_BYTES,
    LOG_OVERHEAD,
    MAGIC,
    BatchHeader,
    parse_header,
)
from mobula.storage.errors import RejectedBatchesError
from mobula.storage.scan import read_into

_COPY_BYTES = 256 << 10
"""Small enough to stay in the cache between reading, checking and writing it."""
_copy_buffer = memoryview(bytearray(_COPY_BYTES))


def verify_batches(
    data: memoryview, next_offset: int, latest_epoch: int, max_leader_epoch: int | None
) -> tuple[list[tuple[int, BatchHeader]], int]:
    """(position, header) of each whole batch, and where they end: the rest is torn.

    Each is sound and follows on from the one before it, the first from `next_offset`, in
    epochs that do not fall and are not above the leader's; or RejectedBatchesError.
    """
    found = []
    at, end = 0, len(data)
    while end - at >= HEADER_BYTES:
        header = parse_header(data, at)
        offset, length, epoch, magic, crc, _, last_offset_delta, *_ = header
        size = LOG_OVERHEAD + length
        if magic != MAGIC or size < HEADER_BYTES:
            raise RejectedBatchesError(f"no batch at offset {next_offset}")
        if size > end - at:
            break
        if offset != next_offset:
            raise RejectedBatchesError(
                f"batch at offset {offset} does not follow on from {next_offset}"
            )
        if last_offset_delta < 0:
            raise RejectedBatchesError(f"batch at offset {next_offset} ends before it begins")
        if epoch < latest_epoch or (max_leader_epoch is not None and epoch > max_leader_epoch):
            raise RejectedBatchesError(
                f"batch at offset {next_offset} has leader epoch {epoch}, not between "
                f"{latest_epoch} and {max_leader_epoch}"
            )
        if crc32c(data[at + CRC_COVERS_FROM : at + size]) != crc:
            raise RejectedBatchesError(f"batch at offset {next_offset} has a wrong CRC")
        found.append((at, header))
        latest_epoch = epoch
        next_offset += last_offset_delta + 1
        at += size
    return found, at


def read_piece(source_fd: int, position: int, length: int, at_least: int = 0) -> memoryview:
    """The begin of a range of the leader's file, `at_least` so many bytes if it has them.
    Valid until the next call. RejectedBatchesError: the file ends before the range."""
    if at_least > _COPY_BYTES:
        piece = memoryview(bytearray(at_least))
    else:
        piece = _copy_buffer[: min(length, _COPY_BYTES)]
    if read_into(source_fd, piece, position) < len(piece):
        raise RejectedBatchesError("the leader's segment ends before the range does")
    return piece


def first_batch_bytes(piece: memoryview, length: int) -> int:
    """How long the batch is that `piece` of a range of `length` bytes is too short for.
    RejectedBatchesError: longer than the range."""
    wanted = 0
    if len(piece) >= HEADER_BYTES:
        wanted = LOG_OVERHEAD + parse_header(piece).batch_length
    if not len(piece) < wanted <= length:
        raise RejectedBatchesError("the range ends inside a batch")
    return wanted
