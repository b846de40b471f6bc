"""Typed access to settings over defaults."""

from __future__ import annotations

import pytest

from mobula.actors.config import Config, ConfigError


def test_what_was_set_wins_over_the_default() -> None:
    config = Config({"num.io.threads": "7"})
    assert config.integer("num.io.threads") == 7
    assert config.integer("queued.max.requests") == 500
    assert config.is_set("num.io.threads")
    assert not config.is_set("queued.max.requests")


def test_each_type_has_its_way_in() -> None:
    config = Config({"log.cleanup.policy": "compact,delete", "min.cleanable.dirty.ratio": "0.25"})
    assert config.boolean("auto.create.topics.enable") is True
    assert config.string("link.transport") == "auto"
    assert config.strings("log.cleanup.policy") == ["compact", "delete"]
    assert config.number("min.cleanable.dirty.ratio") == 0.25
    assert config.number("num.partitions") == 1.0


def test_asking_in_the_wrong_type_is_a_bug() -> None:
    config = Config({})
    with pytest.raises(TypeError):
        config.integer("auto.create.topics.enable")
    with pytest.raises(TypeError):
        config.boolean("num.partitions")
    with pytest.raises(TypeError):
        config.number("auto.create.topics.enable")
    with pytest.raises(TypeError):
        config.string("num.partitions")
    with pytest.raises(TypeError):
        config.strings("link.transport")


def test_asking_for_a_key_that_does_not_exist_is_a_bug() -> None:
    with pytest.raises(KeyError):
        Config({}).integer("no.such.key")


def test_a_key_without_a_value_says_so() -> None:
    config = Config({})
    assert not config.has("broker.rack")
    with pytest.raises(LookupError):
        config.string("broker.rack")
    assert Config({"broker.rack": "r1"}).string("broker.rack") == "r1"


def test_a_bad_value_is_a_config_error() -> None:
    with pytest.raises(ConfigError):
        Config({"num.partitions": "many"}).integer("num.partitions")


def test_overlaying_makes_a_new_config_and_the_last_layer_wins() -> None:
    first = Config({"num.partitions": "1"})
    second = first.overlaid({"num.partitions": "2"}, {"num.partitions": "3"})
    assert second.integer("num.partitions") == 3
    assert first.integer("num.partitions") == 1


def test_a_config_does_not_change_with_what_it_was_made_from() -> None:
    values = {"num.partitions": "1"}
    config = Config(values)
    values["num.partitions"] = "2"
    assert config.integer("num.partitions") == 1
    assert config == Config({"num.partitions": "1"})
    assert hash(config) == hash(Config({"num.partitions": "1"}))


def test_a_list_handed_out_is_the_callers_own() -> None:
    config = Config({})
    config.strings("log.cleanup.policy").append("compact")
    assert config.strings("log.cleanup.policy") == ["delete"]
