"""Record batch headers: reading, judging and rewriting them."""

from __future__ import annotations

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from mobula.protocol.errors import ErrorCode, KafkaError
from mobula.storage.batch import (
    HEADER_BYTES,
    crc_holds,
    iter_headers,
    pack_header,
    parse_header,
    place,
    reseal,
    stamp_log_append_time,
    validate_client_batch,
)
from mobula.storage.records import NewRecord, build_batch, iter_records
from tests.unit.storage.support import NOW_MS, batch, values


def _changed(**fields: int) -> memoryview:
    """A batch with other header fields and a CRC that fits them."""
    data = bytearray(batch(values(b"a", b"b"), producer=(5, 0, 0)))
    data[:HEADER_BYTES] = pack_header(parse_header(data)._replace(**fields))
    reseal(memoryview(data))
    return memoryview(data)


def _code(data: memoryview) -> ErrorCode:
    with pytest.raises(KafkaError) as refused:
        validate_client_batch(data)
    return refused.value.code


def test_a_batch_of_a_client_that_is_sound_is_accepted_with_its_header() -> None:
    data = batch(values(b"a", b"b", b"c"), producer=(9, 1, 40))
    header = validate_client_batch(data)
    assert (header.record_count, header.last_offset_delta) == (3, 2)
    assert (header.producer_id, header.producer_epoch, header.last_sequence) == (9, 1, 42)
    assert header.size_bytes == len(data)
    assert (header.base_timestamp, header.max_timestamp) == (NOW_MS, NOW_MS + 2)


def test_each_bit_of_a_batch_after_its_magic_is_covered_by_the_crc() -> None:
    data = batch()
    for position in range(17, len(data)):
        data[position] ^= 0x10
        with pytest.raises(KafkaError):
            validate_client_batch(data)
        data[position] ^= 0x10
    validate_client_batch(data)


@pytest.mark.parametrize("length", [0, 1, 16, 60])
def test_records_too_short_for_a_header_are_invalid(length: int) -> None:
    assert _code(batch()[:length]) == ErrorCode.invalid_record


def test_a_batch_cut_short_is_invalid() -> None:
    assert _code(batch()[:-1]) == ErrorCode.invalid_record


def test_more_than_one_batch_is_invalid() -> None:
    assert _code(memoryview(bytearray(batch()) + bytes(batch()))) == ErrorCode.invalid_record


@pytest.mark.parametrize(
    ("magic", "code"),
    [
        (0, ErrorCode.invalid_record),
        (1, ErrorCode.invalid_record),
        (3, ErrorCode.corrupt_message),
        (255, ErrorCode.corrupt_message),
    ],
)
def test_another_magic_than_two_is_refused(magic: int, code: ErrorCode) -> None:
    data = batch()
    data[16] = magic
    assert _code(data) == code
    assert _code(data[:40]) == code


@pytest.mark.parametrize(
    "fields",
    [
        {"base_offset": 1},
        {"attributes": 0x20},
        {"attributes": 5},
        {"record_count": 0},
        {"record_count": 3},
        {"last_offset_delta": -1},
        {"base_sequence": -1},
        {"producer_epoch": -1},
    ],
)
def test_what_no_client_may_say_is_invalid(fields: dict[str, int]) -> None:
    assert _code(_changed(**fields)) == ErrorCode.invalid_record


def test_a_client_may_not_claim_log_append_time() -> None:
    assert _code(_changed(attributes=0x08)) == ErrorCode.invalid_timestamp


@pytest.mark.parametrize("length", [-13, -1, 0, 48])
def test_a_length_of_less_than_a_header_is_refused(length: int) -> None:
    assert _code(_changed(batch_length=length)) == ErrorCode.corrupt_message


def test_placing_a_batch_leaves_its_crc_valid() -> None:
    data = batch(values(b"a", b"b"))
    header = parse_header(data)
    place(data, header.batch_length, 1234567890123, 7)
    placed = header._replace(base_offset=1234567890123, partition_leader_epoch=7)
    assert parse_header(data) == placed
    assert crc_holds(data, 0, placed)
    assert [record.offset for record in iter_records(data)] == [1234567890123, 1234567890124]


def test_log_append_time_is_stamped_on_all_records_under_a_new_crc() -> None:
    data = batch(values(b"a", b"b"))
    crc = stamp_log_append_time(data, parse_header(data).attributes, NOW_MS + 999)
    header = parse_header(data)
    assert header.is_log_append_time
    assert header.crc == crc == crc32c(data[21:])
    assert [record.timestamp for record in iter_records(data)] == [NOW_MS + 999] * 2


def test_headers_are_walked_up_to_the_first_torn_batch() -> None:
    parts = [bytes(batch(values(b"x" * size))) for size in (1, 50, 300)]
    data = b"".join(parts)
    assert [at for at, _ in iter_headers(data)] == [0, len(parts[0]), len(parts[0] + parts[1])]
    for cut in range(1, len(parts[2])):
        assert len(list(iter_headers(data[:-cut]))) == 2


def test_sequences_wrap_to_zero_after_the_largest_int() -> None:
    header = parse_header(batch(values(b"a", b"b", b"c"), producer=(1, 0, 2**31 - 2)))
    assert header.last_sequence == 0


@given(data=st.binary(max_size=200))
def test_no_bytes_make_validation_fail_in_another_way_than_by_a_code(data: bytes) -> None:
    with pytest.raises(KafkaError):
        validate_client_batch(memoryview(bytearray(data)))
    list(iter_headers(data))


@given(
    st.lists(
        st.builds(
            NewRecord,
            st.integers(0, 2**45),
            st.none() | st.binary(max_size=20),
            st.none() | st.binary(max_size=200),
            st.lists(
                st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=9)), max_size=3
            ).map(tuple),
        ),
        min_size=1,
        max_size=8,
    ),
    st.integers(0, 4),
)
def test_any_records_come_back_from_a_batch_as_they_were(new: list[NewRecord], codec: int) -> None:
    data = build_batch(new, codec=codec)
    header = validate_client_batch(memoryview(data))
    place(memoryview(data), header.batch_length, 77, 0)
    found = list(iter_records(data))
    assert [record[1:] for record in found] == [tuple(record) for record in new]
    assert [record.offset for record in found] == list(range(77, 77 + len(new)))
