"""What a key accepts, and the sentence that refuses the rest."""

from __future__ import annotations

import pytest

from mobula.actors.config.key import (
    MAX_INT,
    Check,
    ConfigError,
    ConfigType,
    Key,
    all_of,
    at_least,
    between,
    either,
    one_of,
    only,
)


def _key(kind: ConfigType, *checks: Check) -> Key:
    return Key(name="some.key", type=kind, default=None, doc="", checks=checks)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (ConfigType.BOOLEAN, "true", True),
        (ConfigType.BOOLEAN, " False ", False),
        (ConfigType.STRING, " plain ", "plain"),
        (ConfigType.INT, "-1", -1),
        (ConfigType.INT, str(MAX_INT), MAX_INT),
        (ConfigType.LONG, str(2**63 - 1), 2**63 - 1),
        (ConfigType.DOUBLE, "0.5", 0.5),
        (ConfigType.LIST, " a, b ,,c", ["a", "b", "c"]),
        (ConfigType.LIST, "", []),
    ],
)
def test_a_value_is_read_in_its_type(kind: ConfigType, text: str, value: object) -> None:
    assert _key(kind).parse(text) == value


@pytest.mark.parametrize(
    ("kind", "text", "sentence"),
    [
        (ConfigType.BOOLEAN, "yes", "some.key must be true or false, but is 'yes'"),
        (ConfigType.INT, "1.5", "some.key must be a whole number, but is '1.5'"),
        (ConfigType.INT, "1_000", "some.key must be a whole number, but is '1_000'"),
        (ConfigType.INT, "", "some.key must be a whole number, but is ''"),
        (
            ConfigType.INT,
            str(MAX_INT + 1),
            "some.key must be a whole number of 32 bits, but is '2147483648'",
        ),
        (
            ConfigType.SHORT,
            "40000",
            "some.key must be a whole number of 16 bits, but is '40000'",
        ),
        (ConfigType.DOUBLE, "half", "some.key must be a number, but is 'half'"),
    ],
)
def test_a_value_of_another_type_is_refused_in_one_sentence(
    kind: ConfigType, text: str, sentence: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        _key(kind).parse(text)
    assert refused.value.problems == (sentence,)


@pytest.mark.parametrize(
    ("check", "kind", "good", "bad", "wants"),
    [
        (at_least(1), ConfigType.INT, "1", "0", "at least 1"),
        (between(0, 1), ConfigType.DOUBLE, "1.0", "1.1", "between 0 and 1"),
        (either(-1, at_least(1)), ConfigType.INT, "-1", "0", "-1 or at least 1"),
        (one_of("a", "b"), ConfigType.STRING, "a", "c", "one of a, b"),
        (all_of("a", "b"), ConfigType.LIST, "b,a", "a,c", "a list of a and b"),
        (all_of("a", "b"), ConfigType.LIST, "", "c", "a list of a and b"),
        (only(False, "not yet"), ConfigType.BOOLEAN, "false", "true", "false (not yet)"),
    ],
)
def test_a_check_says_what_it_wants(
    check: Check, kind: ConfigType, good: str, bad: str, wants: str
) -> None:
    key = _key(kind, check)
    key.parse(good)
    with pytest.raises(ConfigError) as refused:
        key.parse(bad)
    assert str(refused.value) == f"some.key must be {wants}, but is {bad!r}"


@pytest.mark.parametrize(
    ("kind", "text", "shown"),
    [
        (ConfigType.LIST, "delete, compact", "delete,compact"),
        (ConfigType.INT, "+0100", "100"),
        (ConfigType.LONG, " 5000 ", "5000"),
        (ConfigType.DOUBLE, "1", "1.0"),
        (ConfigType.BOOLEAN, "FALSE", "false"),
        (ConfigType.STRING, " a b ", "a b"),
    ],
)
def test_a_value_is_shown_in_one_spelling(kind: ConfigType, text: str, shown: str) -> None:
    assert Key(name="k", type=kind, default=None, doc="").shown(text) == shown
