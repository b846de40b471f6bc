"""Records inside batches, and the codecs they are packed with."""

from __future__ import annotations

import os
import tracemalloc
from contextlib import suppress

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mobula.protocol.errors import ErrorCode, KafkaError
from mobula.storage.batch import HEADER_BYTES, parse_header, reseal, validate_client_batch
from mobula.storage.compression import Codec, compress, decompress
from mobula.storage.records import NewRecord, iter_record_keys, iter_records, recompress
from tests.unit.storage.support import NOW_MS, batch, values

COMPRESSED = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("size", [0, 1, 1000, 32 << 10, 64 << 10, (64 << 10) + 1, 1 << 20])
def test_what_is_compressed_comes_back(codec: Codec, size: int) -> None:
    data = (os.urandom(97) * (size // 97 + 1))[:size]
    assert decompress(codec, compress(codec, data)) == data


@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_bomb_ends_at_the_cap_and_not_in_memory(codec: Codec) -> None:
    bomb = compress(codec, bytes(32 << 20))
    cap = 1 << 20
    tracemalloc.start()
    try:
        with pytest.raises(KafkaError) as refused:
            decompress(codec, bomb, cap)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert refused.value.code == ErrorCode.corrupt_message
    assert peak < 4 * cap


@pytest.mark.parametrize("codec", COMPRESSED)
def test_damaged_data_is_a_corrupt_message(codec: Codec) -> None:
    data = compress(codec, os.urandom(3000))
    for damaged in (data[:-20], b"", b"not compressed at all", data[:30]):
        with pytest.raises(KafkaError) as refused:
            decompress(codec, damaged)
        assert refused.value.code == ErrorCode.corrupt_message


@given(st.sampled_from(COMPRESSED), st.binary(max_size=100))
def test_arbitrary_bytes_never_break_a_codec(codec: Codec, data: bytes) -> None:
    with suppress(KafkaError):
        decompress(codec, data, 1 << 20)


def test_snappy_without_a_frame_is_read_as_librdkafka_writes_it() -> None:
    assert decompress(Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(b"abc" * 99))) == b"abc" * 99


def test_snappy_is_written_in_the_frame_of_java() -> None:
    data = compress(Codec.SNAPPY, b"abc" * 99)
    assert data[:16] == b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"


def test_lz4_is_written_in_independent_blocks_as_java_demands() -> None:
    data = compress(Codec.LZ4, os.urandom(100_000))
    assert data[:7] == bytes.fromhex("04224d18604082")
    assert decompress(Codec.LZ4, bytes(cramjam.lz4.compress(b"dependent" * 99))) == (
        b"dependent" * 99
    )


@pytest.mark.parametrize("codec", COMPRESSED)
def test_levels_change_the_size_and_not_the_data(codec: Codec) -> None:
    data = os.urandom(500) * 20 + b"text " * 2000
    for level in (1, 5, 9):
        assert decompress(codec, compress(codec, data, level)) == data


@pytest.mark.parametrize("before", list(Codec))
@pytest.mark.parametrize("after", list(Codec))
def test_recompressing_keeps_records_and_producer(before: Codec, after: Codec) -> None:
    new = values(*(os.urandom(20) * 30 for _ in range(20)))
    data = batch(new, codec=before, producer=(3, 1, 10))
    again = recompress(data, after)
    header = validate_client_batch(memoryview(again))
    assert header.codec == after
    assert header[6:] == parse_header(data)[6:]
    assert list(iter_records(again)) == list(iter_records(data))


@pytest.mark.parametrize("codec", list(Codec))
def test_keys_of_records_are_read_without_the_rest(codec: Codec) -> None:
    new = [NewRecord(NOW_MS, None, b"a"), NewRecord(NOW_MS + 5, b"", None)]
    found = list(iter_record_keys(batch(new, codec=codec)))
    assert [(key.offset, key.timestamp, key.has_key) for key in found] == [
        (0, NOW_MS, False),
        (1, NOW_MS + 5, True),
    ]


def test_damaged_records_are_refused_or_read_and_nothing_else() -> None:
    sound = batch(values(b"abc", b"def"))
    for position in range(HEADER_BYTES, len(sound)):
        data = bytearray(sound)
        data[position] = 0xFF
        reseal(memoryview(data))
        with suppress(KafkaError):
            assert len(list(iter_records(data))) == 2
