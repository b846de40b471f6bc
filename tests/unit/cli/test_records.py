"""`mobula produce` and `mobula consume`, against brokers that librdkafka simulates."""

from __future__ import annotations

import json
import uuid

import pytest

from tests.unit.cli.running import Outcome, mobula


@pytest.fixture
def topic() -> str:
    return f"t-{uuid.uuid4().hex[:8]}"


def _produce(brokers: str, topic: str, stdin: bytes, *options: str) -> Outcome:
    return mobula("produce", topic, "-b", brokers, *options, stdin=stdin)


def _consume(brokers: str, topic: str, *options: str) -> Outcome:
    return mobula("consume", topic, "-b", brokers, "-e", *options)


def test_lines_become_records_and_records_lines(brokers: str, topic: str) -> None:
    written = _produce(brokers, topic, b"one\ntwo\n\nfour", "-p", "0")
    assert (written.status, written.stdout) == (0, b"")
    assert written.stderr == f"4 records to {topic} in 1 partition\n"
    assert _consume(brokers, topic).stdout == b"one\ntwo\n\nfour\n"


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_keys_headers_and_codecs_arrive(brokers: str, topic: str, codec: str) -> None:
    outcome = _produce(
        *(brokers, topic, b"a::1\nplain\n"),
        *("-k", "::", "-H", "h1=x", "-H", "h2=y=z", "-z", codec, "-p", "1"),
    )
    assert outcome.status == 0
    read = _consume(brokers, topic, "-f", r"%t %p %o [%k %K] [%s %S] %h\n")
    assert (
        read.text
        == f"{topic} 1 0 [a 1] [1 1] h1=x,h2=y=z\n{topic} 1 1 [ -1] [plain 5] h1=x,h2=y=z\n"
    )


def test_json_has_a_line_for_each_record(brokers: str, topic: str) -> None:
    _produce(brokers, topic, b"k=v\xc3\xa9\n\xff\n", "-k", "=", "-p", "2")
    first, second = (
        json.loads(line) for line in _consume(brokers, topic, "--json").stdout.splitlines()
    )
    assert first["timestamp"] > 0
    del first["timestamp"]
    assert first == {
        "topic": topic,
        "partition": 2,
        "offset": 0,
        "timestamp_type": "CreateTime",
        "key": "k",
        "value": "vé",
        "headers": [],
    }
    assert second["value_base64"] == "/w=="
    assert "value" not in second


def test_reading_stops_after_so_many_records(brokers: str, topic: str) -> None:
    _produce(brokers, topic, b"".join(b"%d\n" % number for number in range(2000)), "-p", "0")
    outcome = mobula("consume", topic, "-b", brokers, "-n", "1001", "-f", "%s ")
    assert outcome.status == 0
    assert outcome.stdout.split() == [b"%d" % number for number in range(1001)]


@pytest.mark.parametrize(
    ("position", "read"),
    [("start", b"01234"), ("2", b"234"), ("-2", b"34"), ("-9", b"01234"), ("end", b"")],
)
def test_reading_begins_where_it_is_told(
    brokers: str, topic: str, position: str, read: bytes
) -> None:
    _produce(brokers, topic, b"0\n1\n2\n3\n4\n", "-p", "0")
    assert _consume(brokers, topic, "-p", "0", "-o", position, "-f", "%s").stdout == read


def test_an_offset_that_does_not_exist_is_refused(brokers: str, topic: str) -> None:
    _produce(brokers, topic, b"0\n1\n", "-p", "0")
    assert _consume(brokers, topic, "-p", "0", "-o", "2").status == 0
    outcome = _consume(brokers, topic, "-o", "3")
    assert outcome.status == 1
    assert (
        outcome.stderr == f"mobula: topic {topic} has no offset 3 there; the next record gets 2\n"
    )


def test_a_partition_that_is_shorter_than_the_offset_is_read_from_its_end(
    brokers: str, topic: str
) -> None:
    _produce(brokers, topic, b"0\n1\n2\n", "-p", "0")
    _produce(brokers, topic, b"other\n", "-p", "1")
    assert _consume(brokers, topic, "-o", "2", "-f", "%s").stdout == b"2"


def test_records_that_are_not_delivered_are_status_1(brokers: str, topic: str) -> None:
    _produce(brokers, topic, b"x\n")
    outcome = _produce(brokers, topic, b"a\nb\n", "-p", "99")
    assert outcome.status == 1
    summary, sentence = outcome.stderr.splitlines()
    assert summary == f"0 records to {topic}, 2 failed"
    assert sentence == f"mobula: 2 records not delivered to {topic}: it has no partition 99"


def test_a_topic_or_partition_that_does_not_exist_is_status_1(brokers: str, topic: str) -> None:
    outcome = _consume(brokers, "missing")
    assert (outcome.status, outcome.stderr) == (1, "mobula: topic missing does not exist\n")
    _produce(brokers, topic, b"x\n")
    outcome = _consume(brokers, topic, "-p", "9")
    assert outcome.status == 1
    assert outcome.stderr == f"mobula: topic {topic} has no partition 9, only 0 to 3\n"


def test_topics_are_listed(brokers: str, topic: str) -> None:
    _produce(brokers, topic, b"x\n")
    lines = mobula("topic", "list", "-b", brokers).text.splitlines()
    assert lines[0].split() == ["NAME", "PARTITIONS", "REPLICAS"]
    assert [topic, "4", "3"] in [line.split() for line in lines]
    listed = json.loads(mobula("topic", "list", "-b", brokers, "--json").stdout)
    assert {"name": topic, "partitions": 4, "replicas": 3} in listed


def test_a_topic_that_does_not_exist_cannot_be_described(brokers: str) -> None:
    for command in (["describe"], ["config"], ["add-partitions", "-n", "1"]):
        outcome = mobula("topic", command[0], "missing", *command[1:], "-b", brokers)
        assert (outcome.status, outcome.stderr) == (1, "mobula: topic missing does not exist\n")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["produce", "t", "-z", "rar"], "-z rar: must be one of none, gzip, snappy, lz4, zstd"),
        (["produce", "t", "-k", ""], "-k needs a separator that is not empty"),
        (["produce", "t", "-p", "-1"], "-p -1: must be at least 0"),
        (["produce", "t", "-H", "h"], "-H h: not of the form KEY=VALUE"),
        (["consume", "t", "-o", "yesterday"], "-o yesterday: must be start, end, N"),
        (["consume", "t", "-o", "9" * 20], f"-o {'9' * 20}: must be start, end, N"),
        (["consume", "t", "-o", "@" + "9" * 20], f"-o @{'9' * 20}: must be start, end, N"),
        (["consume", "t", "-n", "0"], "-n 0: must be at least 1"),
        (["consume", "t", "-f", "%x"], "-f: there is no token %x"),
        (["consume", "t", "-b", "here"], "'here' is not HOST:PORT"),
        (["consume", "t", "-b", ","], "--bootstrap is empty"),
        (["topic", "create", "t", "-p", "0"], "-p 0: must be at least 1"),
        (["topic", "create", "t", "-r", "0"], "-r 0: must be at least 1"),
        (["topic", "create", "t", "-c", "x"], "-c x: not of the form KEY=VALUE"),
        (["topic", "config", "t", "--set", "x"], "--set x: not of the form KEY=VALUE"),
        (["topic", "add-partitions", "t", "-n", "0"], "-n 0: must be at least 1"),
        (["topic", "add-partitions", "t"], "Missing option"),
        (["topic", "create"], "Missing argument"),
        (["topic", "list", "-b", "127.0.0.1:1"], "no broker answers at 127.0.0.1:1"),
    ],
)
def test_bad_usage_is_one_sentence_and_status_2(arguments: list[str], sentence: str) -> None:
    outcome = mobula(*arguments)
    assert outcome.status == 2
    (line,) = outcome.stderr.splitlines()
    assert line.startswith("mobula: ")
    assert sentence in line
