"""`mobula config explain`."""

from __future__ import annotations

import json

from tests.unit.cli.running import mobula


def test_a_broker_key_is_explained_with_the_reason_for_its_default() -> None:
    outcome = mobula("config", "explain", "num.io.threads")
    assert outcome.status == 0
    lines = outcome.text.splitlines()
    assert lines[0] == "num.io.threads (broker key, int)"
    assert "  default: 256" in lines
    assert any(line.startswith("  why: Kafka has 8") for line in lines)
    assert "  must be: at least 1" in lines
    assert lines[-1] == "  set it with: mobula up --set num.io.threads=VALUE"


def test_a_topic_key_names_the_broker_keys_that_give_its_default() -> None:
    text = mobula("config", "explain", "segment.ms").text
    assert "default for all topics: log.roll.ms, then log.roll.hours" in text
    assert "mobula topic config NAME --set segment.ms=VALUE" in text


def test_a_key_of_brokers_and_topics_is_explained_as_both() -> None:
    text = mobula("config", "explain", "compression.type").text
    assert "compression.type (broker key, string)" in text
    assert "compression.type (topic key, string)" in text


def test_ours_and_unset_and_given_are_said() -> None:
    assert "(broker key, string, ours)" in mobula("config", "explain", "link.transport").text
    assert "default: unset" in mobula("config", "explain", "broker.rack").text
    assert "cannot be set: use `mobula up --data-dir`" in (
        mobula("config", "explain", "log.dirs").text
    )


def test_json_has_the_same() -> None:
    (document,) = json.loads(mobula("config", "explain", "num.io.threads", "--json").stdout)
    assert document["default"] == "256"
    assert document["scope"] == "broker"
    assert document["must_be"] == ["at least 1"]
    assert document["why"].startswith("Kafka has 8")


def test_an_unknown_key_has_the_nearest_of_all_keys() -> None:
    outcome = mobula("config", "explain", "retention.mss")
    assert (outcome.status, outcome.stderr) == (
        2,
        "mobula: there is no configuration key 'retention.mss'; "
        "the nearest match is retention.ms\n",
    )


def test_a_key_of_kafka_that_is_not_supported_says_why() -> None:
    outcome = mobula("config", "explain", "zookeeper.connect")
    assert outcome.status == 2
    assert outcome.stderr == (
        "mobula: zookeeper.connect is a key of Kafka that Mobula does not have: "
        "there is no ZooKeeper\n"
    )


def test_unsetting_a_key_that_is_not_one_is_refused_with_the_nearest_match() -> None:
    outcome = mobula("topic", "config", "orders", "--unset", "retention.mss")
    assert outcome.status == 2
    assert "nearest match is retention.ms" in outcome.stderr
