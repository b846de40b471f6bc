"""Listener addresses."""

from __future__ import annotations

import pytest

from mobula.actors.config import ConfigError
from mobula.actors.config.definitions import validate
from mobula.actors.config.listeners import Listener, parse_listeners


@pytest.mark.parametrize(
    ("text", "listener"),
    [
        ("PLAINTEXT://127.0.0.1:9092", Listener("PLAINTEXT", "127.0.0.1", 9092)),
        ("plaintext://broker.example:1", Listener("PLAINTEXT", "broker.example", 1)),
        ("PLAINTEXT://:9092", Listener("PLAINTEXT", "", 9092)),
        ("PLAINTEXT://[::1]:9092", Listener("PLAINTEXT", "::1", 9092)),
    ],
)
def test_a_listener_is_a_name_a_host_and_a_port(text: str, listener: Listener) -> None:
    assert parse_listeners([text]) == [listener]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("127.0.0.1:9092", "is not a listener like"),
        ("PLAINTEXT://127.0.0.1", "is not a listener like"),
        ("SSL://127.0.0.1:9092", "only PLAINTEXT is supported"),
        ("PLAINTEXT://127.0.0.1:65536", "has a port above 65535"),
    ],
)
def test_what_is_no_listener_is_named(text: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        parse_listeners([text])


@pytest.mark.parametrize("text", ["", "PLAINTEXT://:1,PLAINTEXT://:2", "SSL://:1"])
def test_the_key_takes_one_listener_that_is_supported(text: str) -> None:
    with pytest.raises(ConfigError, match="must be one listener like"):
        validate("listeners", text)
