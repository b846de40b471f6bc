"""kcat's format tokens, JSON lines, positions, and what becomes of records."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException

from mobula.cluster.commands.client import refusal
from mobula.cluster.commands.consume import Printing
from mobula.cluster.commands.position import (
    AtEnd,
    AtOffset,
    AtStart,
    AtTime,
    LastRecords,
    Position,
    parse_position,
)
from mobula.cluster.commands.produce import Deliveries, send_lines, split
from mobula.cluster.commands.record_format import compile_format, json_line
from mobula.cluster.options import ClusterError, UsageError


@dataclass
class FakeRecord:
    """A consumed message; with an error it is none but what the client has to say."""

    number: int = 0
    failure: KafkaError | None = None
    data: bytes | None = b"value"
    name: bytes | None = b"key"
    extra: list[tuple[str, bytes | None]] | None = None
    index: int = 3

    def topic(self) -> str:
        return "t"

    def partition(self) -> int:
        return self.index

    def offset(self) -> int:
        return self.number

    def key(self) -> bytes | None:
        return self.name

    def value(self) -> bytes | None:
        return self.data

    def headers(self) -> list[tuple[str, bytes | None]] | None:
        return self.extra

    def timestamp(self) -> tuple[int, int]:
        return 2, 1234

    def error(self) -> KafkaError | None:
        return self.failure


@pytest.mark.parametrize(
    ("layout", "written"),
    [
        (r"%t/%p/%o@%T\n", b"t/3/42@1234\n"),
        (r"%k=%s %K %S", b"key=value 3 5"),
        (r"%h", b"a=1,b=NULL"),
        (r"100%% \\ \t\r\n\x00\xff|", b"100% \\ \t\r\n\x00\xff|"),
        ("é %s", "é value".encode()),
        ("", b""),
    ],
)
def test_tokens_and_escapes_are_kcats(layout: str, written: bytes) -> None:
    record = FakeRecord(42, extra=[("a", b"1"), ("b", None)])
    assert compile_format(layout)(record) == written


def test_nothing_is_not_the_same_as_empty() -> None:
    layout = compile_format("[%k] %K [%s] %S %h")
    assert layout(FakeRecord(name=None, data=None)) == b"[] -1 [] -1 "
    assert layout(FakeRecord(name=b"", data=b"")) == b"[] 0 [] 0 "


@pytest.mark.parametrize("layout", ["%", "%q", "\\", "\\q", "\\x1"])
def test_a_token_that_does_not_exist_is_refused(layout: str) -> None:
    with pytest.raises(UsageError, match="there are %s value"):
        compile_format(layout)


def test_a_line_of_json_keeps_what_is_no_text() -> None:
    record = FakeRecord(7, name=None, data=b"\xff", extra=[("h", b"\xfe"), ("n", None)])
    assert json.loads(json_line(record)) == {
        "topic": "t",
        "partition": 3,
        "offset": 7,
        "timestamp": 1234,
        "timestamp_type": "LogAppendTime",
        "key": None,
        "value_base64": "/w==",
        "headers": [{"key": "h", "value_base64": "/g=="}, {"key": "n", "value": None}],
    }


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("start", AtStart()),
        ("beginning", AtStart()),
        ("end", AtEnd()),
        ("17", AtOffset(17)),
        ("-5", LastRecords(5)),
        ("@1700000000000", AtTime(1_700_000_000_000)),
        ("@2023-11-14T22:13:20Z", AtTime(1_700_000_000_000)),
        ("@2023-11-14T23:13:20.500+01:00", AtTime(1_700_000_000_500)),
    ],
)
def test_a_position_has_five_forms(text: str, position: Position) -> None:
    assert parse_position(text) == position


def test_a_time_without_a_zone_is_local() -> None:
    local = datetime(2023, 11, 14, tzinfo=UTC).astimezone().replace(tzinfo=None)
    position = parse_position(f"@{local.isoformat()}")
    assert position == AtTime(int(datetime(2023, 11, 14, tzinfo=UTC).timestamp() * 1000))


@pytest.mark.parametrize("text", ["", "-", "@", "@noon", "1.5", "middle", "--5"])
def test_anything_else_is_no_position(text: str) -> None:
    with pytest.raises(UsageError, match="must be start, end, N"):
        parse_position(text)


@pytest.mark.parametrize(
    ("line", "separator", "key", "value"),
    [
        (b"a:b:c", b":", b"a", b"b:c"),
        (b":b", b":", b"", b"b"),
        (b"plain", b":", None, b"plain"),
        (b"a:b", None, None, b"a:b"),
    ],
)
def test_a_line_is_split_at_the_first_separator(
    line: bytes, separator: bytes | None, key: bytes | None, value: bytes
) -> None:
    assert split(line, separator) == (key, value)


class FakeProducer:
    """Refuses the first record once because its queue is full, and "bad" for good."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, bytes, bytes | None]] = []
        self.full = True
        self.polls: list[float] = []

    def produce(
        self, topic: str, value: bytes, key: bytes | None, *, on_delivery: Any, **extra: Any
    ) -> None:
        if self.full:
            raise BufferError
        if value == b"bad":
            raise KafkaException(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE, "too large"))
        self.sent.append((topic, value, key))
        on_delivery(None, FakeRecord(index=len(self.sent)))

    def poll(self, timeout: float) -> int:
        self.polls.append(timeout)
        self.full = False
        return 0


def test_a_full_queue_waits_and_a_refused_record_is_counted() -> None:
    producer, deliveries = FakeProducer(), Deliveries("t")
    send_lines(cast("Any", producer), deliveries, [b"a=1\n", b"bad\n", b"2"], "=", {})
    assert producer.sent == [("t", b"1", b"a"), ("t", b"2", None)]
    assert producer.polls[0] > 0
    assert deliveries.summary() == "2 records to t in 2 partitions, 1 failed"
    with pytest.raises(ClusterError, match="1 record not delivered to t: too large"):
        deliveries.check()


def test_the_first_failure_is_told() -> None:
    deliveries = Deliveries("t")
    for reason in ("first", "second"):
        error = KafkaError(KafkaError.REQUEST_TIMED_OUT, reason)
        deliveries.on_delivery(error, cast("Any", FakeRecord()))
    with pytest.raises(ClusterError, match="2 records not delivered to t: first"):
        deliveries.check()


def _printing(**options: Any) -> tuple[Printing, io.BytesIO]:
    stream = io.BytesIO()
    chosen = {"partitions": 2, "count": None, "exit_at_end": True, **options}
    return Printing(stream, compile_format("%o "), **chosen), stream


def _take(printing: Printing, messages: Iterable[FakeRecord]) -> None:
    printing.take(cast("Any", list(messages)))


def _end(index: int) -> FakeRecord:
    return FakeRecord(failure=KafkaError(KafkaError._PARTITION_EOF), index=index)


def test_reading_ends_when_every_partition_is_at_its_end() -> None:
    printing, stream = _printing()
    _take(printing, [FakeRecord(1, index=0), _end(0)])
    assert not printing.done
    _take(printing, [FakeRecord(2, index=0), _end(1)])
    assert not printing.done
    _take(printing, [_end(0)])
    assert printing.done
    assert stream.getvalue() == b"1 2 "


def test_without_exit_at_end_reading_goes_on() -> None:
    printing, _ = _printing(exit_at_end=False)
    _take(printing, [_end(0), _end(1)])
    assert not printing.done


def test_not_one_record_too_many_is_written() -> None:
    printing, stream = _printing(count=2)
    _take(printing, [FakeRecord(number) for number in range(5)])
    assert printing.done
    assert stream.getvalue() == b"0 1 "


def test_what_the_client_retries_is_no_failure() -> None:
    printing, _ = _printing()
    _take(printing, [FakeRecord(failure=KafkaError(KafkaError._TRANSPORT))])
    assert not printing.done


def test_what_cannot_get_better_is_a_failure() -> None:
    printing, _ = _printing()
    gone = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
    with pytest.raises(ClusterError, match="topic t does not exist"):
        _take(printing, [FakeRecord(failure=gone)])


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (KafkaError.TOPIC_ALREADY_EXISTS, "topic t exists already"),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, "topic t does not exist"),
        (KafkaError._TIMED_OUT, "topic t: no answer in time; see `mobula status`"),
        (KafkaError.INVALID_CONFIG, "topic t: because"),
    ],
)
def test_a_refusal_is_a_sentence(code: int, sentence: str) -> None:
    assert str(refusal(KafkaError(code, "because"), "topic t")) == sentence
