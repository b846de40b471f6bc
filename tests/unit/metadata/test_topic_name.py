"""Which names a topic may have."""

from __future__ import annotations

import pytest

from mobula.actors.metadata.topic_name import collision_key, validate_topic_name
from mobula.protocol.errors import ErrorCode, KafkaError


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "...", "x" * 249])
def test_a_legal_name_passes(name: str) -> None:
    validate_topic_name(name)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("x" * 250, "longer than the max allowed length 249"),
        ("a b", "other than ASCII alphanumerics"),
        ("a/b", "other than ASCII alphanumerics"),
        ("a\n", "other than ASCII alphanumerics"),
        ("thé", "other than ASCII alphanumerics"),
    ],
)
def test_an_illegal_name_is_refused_with_the_reason(name: str, reason: str) -> None:
    with pytest.raises(KafkaError) as caught:
        validate_topic_name(name)
    assert caught.value.code is ErrorCode.invalid_topic_exception
    assert reason in str(caught.value)


def test_names_that_differ_in_dots_and_underscores_collide() -> None:
    assert collision_key("a.b_c") == collision_key("a_b.c") != collision_key("a-b-c")
