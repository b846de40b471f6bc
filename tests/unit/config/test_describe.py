"""Every key with its value and where it comes from."""

from __future__ import annotations

from mobula.actors.config import Config
from mobula.actors.config.definitions import BROKER_KEYS, TOPIC_KEYS
from mobula.actors.config.describe import (
    ConfigSource,
    Entry,
    Origin,
    describe_all_brokers,
    describe_broker,
    describe_topic,
)
from mobula.actors.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, MetadataImage
from mobula.actors.metadata.records import ConfigChanged

FACTS = {"node.id": "1", "log.dirs": "/data"}


def _image(*changes: ConfigChanged) -> MetadataImage:
    image = MetadataImage()
    image.replay_all(changes)
    return image


def _by_name(entries: list[Entry]) -> dict[str, Entry]:
    return {entry.name: entry for entry in entries}


def test_a_topic_has_every_key_and_its_default() -> None:
    entries = describe_topic(_image(), "t", Config({}))
    assert [entry.name for entry in entries] == sorted(TOPIC_KEYS)
    assert all(entry.source is ConfigSource.DEFAULT_CONFIG for entry in entries)
    assert all(entry.value is not None for entry in entries)
    assert not any(entry.read_only for entry in entries)


def test_synonyms_run_from_the_topics_own_value_to_the_default() -> None:
    image = _image(
        ConfigChanged(TOPIC_RESOURCE, "t", "retention.ms", "5"),
        ConfigChanged(BROKER_RESOURCE, "", "log.retention.ms", "4"),
        ConfigChanged(BROKER_RESOURCE, "1", "log.retention.ms", "3"),
    )
    broker = Config({"log.retention.ms": "2", "log.retention.hours": "1"})
    entry = _by_name(describe_topic(image, "t", broker, 1))["retention.ms"]
    assert entry.value == "5"
    assert entry.source is ConfigSource.DYNAMIC_TOPIC_CONFIG
    assert entry.synonyms == (
        Origin("retention.ms", "5", ConfigSource.DYNAMIC_TOPIC_CONFIG),
        Origin("log.retention.ms", "3", ConfigSource.DYNAMIC_BROKER_CONFIG),
        Origin("log.retention.ms", "4", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
        Origin("log.retention.ms", "2", ConfigSource.STATIC_BROKER_CONFIG),
        Origin("log.retention.hours", "1", ConfigSource.STATIC_BROKER_CONFIG),
        Origin("log.retention.hours", "168", ConfigSource.DEFAULT_CONFIG),
    )


def test_an_inherited_value_is_in_the_topic_keys_unit() -> None:
    entry = _by_name(describe_topic(_image(), "t", Config({"log.retention.minutes": "2"})))[
        "retention.ms"
    ]
    assert (entry.value, entry.source) == ("120000", ConfigSource.STATIC_BROKER_CONFIG)
    assert entry.synonyms[0] == Origin(
        "log.retention.minutes", "2", ConfigSource.STATIC_BROKER_CONFIG
    )


def test_the_default_of_a_coarser_key_is_told_only_behind_other_values() -> None:
    topic = _by_name(describe_topic(_image(), "t", Config({})))["segment.ms"]
    assert (topic.value, topic.synonyms) == ("604800000", ())
    given = Config({"log.roll.ms": "2"})
    coarser = Origin("log.roll.hours", "168", ConfigSource.DEFAULT_CONFIG)
    assert _by_name(describe_topic(_image(), "t", given))["segment.ms"].synonyms[-1] == coarser
    finest = _by_name(describe_broker(_image(), given, 1, FACTS))["log.roll.ms"]
    assert finest.synonyms[-1] == coarser
    unset = _by_name(describe_broker(_image(), Config({"log.roll.hours": "1"}), 1, FACTS))
    assert (unset["log.roll.ms"].value, unset["log.roll.ms"].synonyms) == (None, ())


def test_a_key_that_is_both_is_inherited_under_its_own_name() -> None:
    entry = _by_name(describe_topic(_image(), "t", Config({"min.insync.replicas": "2"})))[
        "min.insync.replicas"
    ]
    assert (entry.value, entry.source) == ("2", ConfigSource.STATIC_BROKER_CONFIG)


def test_a_broker_has_every_key_what_it_was_given_and_what_it_was_started_with() -> None:
    config = Config({"num.io.threads": "9"})
    entries = _by_name(describe_broker(_image(), config, 1, FACTS))
    assert sorted(entries) == sorted(BROKER_KEYS)
    assert entries["num.io.threads"].value == "9"
    assert entries["num.io.threads"].source is ConfigSource.STATIC_BROKER_CONFIG
    assert entries["num.io.threads"].read_only
    assert entries["node.id"].value == "1"
    assert entries["log.dirs"].source is ConfigSource.STATIC_BROKER_CONFIG
    assert entries["log.retention.ms"].value is None
    assert entries["log.retention.ms"].source is ConfigSource.DEFAULT_CONFIG
    assert not entries["log.retention.ms"].read_only


def test_all_brokers_together_have_only_what_was_changed_for_them() -> None:
    image = _image(
        ConfigChanged(BROKER_RESOURCE, "", "log.retention.ms", "4"),
        ConfigChanged(BROKER_RESOURCE, "1", "message.max.bytes", "3"),
    )
    assert describe_all_brokers(_image()) == []
    (entry,) = describe_all_brokers(image)
    assert (entry.name, entry.value) == ("log.retention.ms", "4")
    assert entry.source is ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG


def test_the_documentation_says_why_a_default_is_not_kafkas() -> None:
    entry = _by_name(describe_broker(_image(), Config({}), 0, {}))["num.io.threads"]
    assert "Kafka has 8" in entry.documentation
