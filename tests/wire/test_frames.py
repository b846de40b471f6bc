"""Frames cut out of a stream, however the stream is cut into reads."""

from __future__ import annotations

import random
import struct
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mobula.protocol.errors import DecodeError
from mobula.protocol.frames import FrameError, FrameReader

SCRATCH_BYTES = 1024
MAX_FRAME_BYTES = 1 << 20


def make_scratch() -> memoryview:
    return memoryview(bytearray(SCRATCH_BYTES))


def wire(*frames: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(frame)) + frame for frame in frames)


def feed(reader: FrameReader, data: bytes) -> list[memoryview]:
    """One read of the socket after the other, each as large as the reader allows."""
    frames = []
    at = 0
    while at < len(data):
        buffer = reader.get_buffer(-1)
        assert len(buffer) > 0
        taken = min(len(buffer), len(data) - at)
        buffer[:taken] = data[at : at + taken]
        frames += reader.buffer_updated(taken)
        at += taken
    return frames


FRAME = st.binary(max_size=40) | st.integers(0, 400_000).map(
    lambda n: random.Random(n).randbytes(n)
)


@settings(deadline=None)
@given(st.lists(FRAME, max_size=6), st.data())
def test_any_split_of_a_stream_gives_the_same_frames(
    frames: list[bytes], data: st.DataObject
) -> None:
    stream = wire(*frames)
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=12).map(sorted))
    reader = FrameReader(MAX_FRAME_BYTES, make_scratch())
    received = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        received += feed(reader, stream[start:end])
    assert received == frames
    assert reader.expecting == 0


@settings(deadline=None)
@given(st.lists(st.binary(max_size=20), min_size=1, max_size=6))
def test_a_stream_that_comes_byte_by_byte_gives_the_same_frames(frames: list[bytes]) -> None:
    reader = FrameReader(MAX_FRAME_BYTES, make_scratch())
    received = []
    for byte in wire(*frames):
        received += feed(reader, bytes([byte]))
    assert received == frames


@settings(deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(1, 700)), max_size=30))
def test_connections_that_share_a_scratch_buffer_do_not_see_each_other(
    reads: list[tuple[bool, int]],
) -> None:
    scratch = make_scratch()
    sent = [wire(*(bytes([who + 1]) * size for size in (0, 3, 90, 2000, 5))) * 9 for who in (0, 1)]
    readers = [FrameReader(MAX_FRAME_BYTES, scratch) for _ in sent]
    received: list[list[memoryview]] = [[], []]
    positions = [0, 0]
    for second, size in [*reads, (False, 1 << 20), (True, 1 << 20)]:
        chunk = sent[second][positions[second] : positions[second] + size]
        positions[second] += len(chunk)
        received[second] += feed(readers[second], chunk)
    for who in (0, 1):
        assert wire(*map(bytes, received[who])) == sent[who]


def test_a_frame_is_writable_and_its_receivers_own() -> None:
    scratch = make_scratch()
    reader = FrameReader(MAX_FRAME_BYTES, scratch)
    small, other, large = feed(reader, wire(b"small", b"other", b"l" * 5000))
    small[:] = b"SMALL"
    large[0] = ord("L")
    scratch[:] = bytes(SCRATCH_BYTES)
    assert (small, other, bytes(large[:2])) == (b"SMALL", b"other", b"Ll")
    assert len({id(frame.obj) for frame in (small, other, large)}) == 3
    assert all(frame.nbytes == len(frame.obj) for frame in (small, other, large))


def test_the_length_of_the_frame_under_way_is_known() -> None:
    reader = FrameReader(MAX_FRAME_BYTES, make_scratch())
    stream = wire(b"x" * 300_000)
    assert reader.expecting == 0
    feed(reader, stream[:3])
    assert reader.expecting == 0
    feed(reader, stream[3:100])
    assert reader.expecting == 300_000
    feed(reader, stream[100:])
    assert reader.expecting == 0


def test_a_frame_of_the_largest_size_is_let_through() -> None:
    reader = FrameReader(100, make_scratch())
    assert feed(reader, wire(bytes(100))) == [bytes(100)]


@pytest.mark.parametrize(
    ("length", "complaint"),
    [
        (101, "a frame of 101 bytes, more than the 100 allowed"),
        (2**31 - 1, "more than the 100 allowed"),
        (-1, "negative length -1"),
        (-(2**31), "negative length"),
    ],
)
def test_a_length_that_cannot_be_is_an_error_that_gives_the_frames_before_it(
    length: int, complaint: str
) -> None:
    reader = FrameReader(100, make_scratch())
    stream = wire(b"one", b"two") + struct.pack(">i", length)
    with pytest.raises(DecodeError, match=complaint) as error:
        feed(reader, stream)
    assert isinstance(error.value, FrameError)
    assert error.value.frames == [b"one", b"two"]


def test_a_length_that_is_only_announced_takes_little_memory() -> None:
    scratch = make_scratch()
    readers = [FrameReader(1 << 30, scratch) for _ in range(20)]
    tracemalloc.start()
    try:
        for reader in readers:
            feed(reader, struct.pack(">i", 1 << 30) + bytes(10_000))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20 * 100_000


def test_an_idle_connection_owns_no_buffer() -> None:
    scratch = make_scratch()
    tracemalloc.start()
    try:
        readers = [FrameReader(1 << 30, scratch) for _ in range(1000)]
        for reader in readers:
            feed(reader, wire(b"x" * 500, b"y" * 5000))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 1000 * 300


@pytest.mark.parametrize(
    "scratch", [memoryview(bytes(2048)), memoryview(bytearray(2048))[1:], memoryview(bytearray(8))]
)
def test_a_scratch_buffer_that_cannot_work_is_refused(scratch: memoryview) -> None:
    with pytest.raises(ValueError, match="scratch buffer"):
        FrameReader(100, scratch)
