"""Java's rules for .properties files, and the command line over them."""

from __future__ import annotations

from pathlib import Path

import pytest

from mobula.actors.config import ConfigError
from mobula.actors.config.properties import load_settings, parse_override, parse_properties


def _parsed(text: str) -> dict[str, str]:
    return {key: value for _, key, value in parse_properties(text)}


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("a=1\nb: 2\nc 3\nd\n", {"a": "1", "b": "2", "c": "3", "d": ""}),
        ("  a = 1  \n", {"a": "1  "}),
        ("# a=1\n! b=2\n   # c=3\n\nd=4", {"d": "4"}),
        ("a=1 # not a comment", {"a": "1 # not a comment"}),
        ("a=one,\\\n   two,\\\n\tthree\nb=2", {"a": "one,two,three", "b": "2"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a=\\\n# no comment here", {"a": "# no comment here"}),
        ("a=last line \\", {"a": "last line "}),
        (r"a\ b\=c\:d=x", {"a b=c:d": "x"}),
        (r"a=\t\n\r\f\u00e9\q\\", {"a": "\t\n\r\fé" + "q\\"}),
        ("a=1\rb=2\r\nc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a = = b", {"a": "= b"}),
        ("a=first\na=second", {"a": "second"}),
        ("", {}),
    ],
)
def test_a_properties_file_is_read_as_java_does(text: str, settings: dict[str, str]) -> None:
    assert _parsed(text) == settings


def test_a_continued_line_is_numbered_by_its_first() -> None:
    assert [line for line, _, _ in parse_properties("\n# x\na=1,\\\n2\nb=3")] == [3, 5]


def test_the_command_line_wins_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=3\nlog.retention.hours=1\n")
    settings = load_settings(file, ["num.partitions=6", "num.partitions=7"])
    assert settings == {"num.partitions": "7", "log.retention.hours": "1"}


def test_each_problem_names_where_it_stands(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("# ours\nnum.partitions=none\nlog.segmnt.bytes=1\n")
    with pytest.raises(ConfigError) as refused:
        load_settings(file, ["num.io.threads=0"])
    assert refused.value.problems == (
        "server.properties line 2: num.partitions must be a whole number, but is 'none'",
        "server.properties line 3: there is no broker configuration key 'log.segmnt.bytes'; "
        "the nearest match is log.segment.bytes",
        "--set: num.io.threads must be at least 1, but is '0'",
    )


def test_a_bad_value_that_the_command_line_replaces_is_no_problem(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=none\n")
    assert load_settings(file, ["num.partitions=2"]) == {"num.partitions": "2"}


@pytest.mark.parametrize("text", ["num.partitions", "=3", " =3"])
def test_an_override_without_key_and_value_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="not of the form KEY=VALUE"):
        parse_override(text)


def test_a_value_may_hold_an_equals_sign() -> None:
    assert parse_override("broker.rack=a=b").value == "a=b"


def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        load_settings(tmp_path / "missing.properties")
    assert str(refused.value).endswith("cannot be read: No such file or directory")
    binary = tmp_path / "binary.properties"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="no text in UTF-8"):
        load_settings(binary)
