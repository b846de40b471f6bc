"""What compares and records, without a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mobula.protocol.api import ApiKey
from mobula.storage.records import NewRecord, build_batch
from tests.conformance import recording
from tests.conformance.compare import MISSING, Differs, differences
from tests.conformance.explained import Explained
from tests.conformance.fields import Roles, normalised
from tests.conformance.wire import decode_response, encode_request, with_null

ADDRESSES = [("127.0.0.1", 9092), ("127.0.0.1", 9093)]
ID = "00000000-0000-0000-0000-000000000001"


def as_recorded(answer: Any, roles: Roles | None = None) -> Any:
    return normalised(answer, ApiKey.METADATA, "own-", roles or Roles(ADDRESSES))


def test_answers_that_are_equal_differ_nowhere() -> None:
    answer = {"topics": [{"name": "a", "ids": [1, 2]}], "error_code": "none"}
    assert list(differences(answer, answer)) == []


@pytest.mark.parametrize(
    ("kafka", "ours", "expected"),
    [
        ({"a": 1}, {"a": 2}, Differs("a", 1, 2)),
        ({"a": 0}, {"a": False}, Differs("a", 0, False)),
        ({"a": 1}, {}, Differs("a", 1, MISSING)),
        ({"a": None}, {"a": ""}, Differs("a", None, "")),
        ({"a": [1, 2]}, {"a": [1]}, Differs("a[1]", 2, MISSING)),
        ("closed", {"a": 1}, Differs("", "closed", {"a": 1})),
        (
            {"t": [{"name": "x", "e": 1}, {"name": "y", "e": 1}]},
            {"t": [{"name": "y", "e": 2}]},
            Differs("t[x]", {"name": "x", "e": 1}, MISSING),
        ),
        (
            {"t": [{"name": "x"}, {"name": "y"}]},
            {"t": [{"name": "y"}, {"name": "x"}]},
            Differs("t[order]", ["x", "y"], ["y", "x"]),
        ),
        (
            {"t": [{"name": "x"}]},
            {"t": [{"name": "x"}, {"name": "x"}]},
            Differs("t[x#1]", MISSING, {"name": "x"}),
        ),
    ],
)
def test_a_difference_is_found_and_named(kafka: Any, ours: Any, expected: Differs) -> None:
    assert next(differences(kafka, ours)) == expected


def test_an_explanation_covers_its_path_in_its_scenario_and_versions_alone() -> None:
    line = Explained(ApiKey.FETCH, "t[{a|b}].x*", "why", scenario="one_*", versions=range(2, 4))
    differs = Differs("t[a].xy", 1, 2)
    assert line.covers(ApiKey.FETCH, "one_thing", 3, differs)
    assert not line.covers(ApiKey.PRODUCE, "one_thing", 3, differs)
    assert not line.covers(ApiKey.FETCH, "two_things", 3, differs)
    assert not line.covers(ApiKey.FETCH, "one_thing", 4, differs)
    assert not line.covers(ApiKey.FETCH, "one_thing", 3, Differs("t[c].xy", 1, 2))


def test_other_words_are_no_excuse_for_silence() -> None:
    line = Explained(ApiKey.FETCH, "message", "why", wording=True)
    assert line.covers(ApiKey.FETCH, "any", 0, Differs("message", "theirs", "ours"))
    for silence in (None, "", MISSING):
        assert not line.covers(ApiKey.FETCH, "any", 0, Differs("message", "theirs", silence))


def test_where_only_ours_says_something_our_silence_is_no_excuse() -> None:
    line = Explained(ApiKey.FETCH, "message", "why", ours_says=True)
    for theirs in (None, "theirs"):
        assert line.covers(ApiKey.FETCH, "any", 0, Differs("message", theirs, "ours"))
    assert not line.covers(ApiKey.FETCH, "any", 0, Differs("message", "theirs", None))


def test_what_must_differ_is_replaced_by_what_it_stands_for() -> None:
    answer = {
        "cluster_id": "x" * 22,
        "controller_id": 1,
        "brokers": [{"node_id": 1, "host": "127.0.0.1", "port": 9093}],
        "topics": [{"name": "own-a", "topic_id": ID, "isr_nodes": [1, 0]}],
    }
    assert as_recorded(answer) == {
        "cluster_id": "<cluster id>",
        "controller_id": "<a broker that lives>",
        "brokers": [{"node_id": 1, "host": "<host of broker 1>", "port": "<port of broker 1>"}],
        "topics": [{"name": "~a", "topic_id": "<id of ~a>", "isr_nodes": [0, 1]}],
    }


def test_the_times_that_a_timestamp_should_lie_between_are_left_out() -> None:
    for low in ("-9223370241818177284", "1795040198523"):
        message = f"The timestamp should be within [{low}, 1795040198523]"
        assert as_recorded(message) == "The timestamp should be within [<two times>]"


def test_what_cannot_be_right_stays_as_it_is() -> None:
    answer = {
        "cluster_id": "",
        "controller_id": 7,
        "topics": [{"name": None, "topic_id": ID}],
        "brokers": [{"node_id": 1, "host": "127.0.0.1", "port": 1}],
    }
    found = as_recorded(answer)
    assert found["brokers"][0]["port"] == "<port of 127.0.0.1:1>"
    assert {**found, "brokers": answer["brokers"]} == answer


def test_a_second_id_of_a_name_is_told_from_the_first() -> None:
    roles = Roles(ADDRESSES)
    as_recorded({"topics": [{"name": "own-a", "topic_id": ID}]}, roles)
    found = as_recorded({"topics": [{"name": "own-a", "topic_id": ID[:-1] + "2"}]}, roles)
    assert found["topics"][0]["topic_id"] == "<id 2 of ~a>"


def test_records_are_shown_as_batches() -> None:
    batch = bytes(build_batch([NewRecord(5, b"k", None, (("h", b"v"),))], base_offset=3))
    shown, rest = as_recorded({"records": (batch + b"\1\2").hex()})["records"]
    assert rest == "0102"
    assert shown["base_offset"] == 3
    assert shown["records"] == [
        {"offset": 3, "timestamp": 5, "key": "k", "value": None, "headers": [["h", "v"]]}
    ]


def test_a_recording_reads_back_as_it_was_saved(tmp_path: Path) -> None:
    long = [{"name": f"topic-{index}", "error_code": "none"} for index in range(20)]
    answers: recording.Answers = {
        "one": {0: [{"topics": long}], 1: [{"topics": long}], 3: [{"topics": long, "x": 1}]},
        "two": {0: ["closed", {"topics": long}]},
    }
    requests: recording.Requests = {"one": {0: "ab", 1: "cd"}}
    recording.save("some_api", answers, requests, tmp_path)
    assert recording.groups(tmp_path) == ["some_api"]
    assert recording.load("some_api", tmp_path) == answers
    assert recording.load_requests("some_api", tmp_path) == requests
    text = (tmp_path / "some_api.json").read_text()
    assert '"versions": "0-1"' in text
    assert text.count('"topic-7"') == 1


def test_null_takes_the_place_of_a_string_in_both_formats() -> None:
    tree = {"topics": [{"name": "nothing"}]}
    legacy = with_null(encode_request(ApiKey.METADATA, 1, tree), "nothing", flexible=False)
    assert legacy == b"\0\0\0\1\xff\xff"
    compact = with_null(encode_request(ApiKey.METADATA, 9, tree), "nothing", flexible=True)
    assert compact[:3] == b"\2\0\0"


def test_bytes_after_an_answer_are_an_error() -> None:
    body = b"\0\0" + b"\0\0\0\0"
    assert decode_response(ApiKey.API_VERSIONS, 0, body) == {"error_code": "none", "api_keys": []}
    with pytest.raises(AssertionError, match="1 bytes too many"):
        decode_response(ApiKey.API_VERSIONS, 0, body + b"x")
