"""Settings from `.properties` files and from the command line.

The file is read by Java's rules, so a broker's file from elsewhere means the same here.
Later settings win over earlier ones, and the command line over the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mobula.actors.config.definitions import problems_by_key
from mobula.actors.config.key import ConfigError

_NEWLINE = re.compile(r"\r\n|\r|\n")
_BLANK = " \t\f"
_SEPARATOR = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_KEY = re.compile(r"(?:\\.|[^\\=: \t\f])*")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
_LETTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


@dataclass(frozen=True, slots=True)
class Setting:
    key: str
    value: str
    origin: str
    """Where it was read, for the sentence that refuses it."""


def load_settings(file: Path | None, overrides: Iterable[str] = ()) -> dict[str, str]:
    """All settings, checked; ConfigError with a sentence for each problem otherwise."""
    settings = list(read_properties(file)) if file is not None else []
    settings += [parse_override(text) for text in overrides]
    last = {setting.key: setting for setting in settings}
    values = {setting.key: setting.value for setting in last.values()}
    found = [
        f"{last[key].origin}: {sentence}" if key in last else sentence
        for key, sentence in problems_by_key(values)
    ]
    if found:
        raise ConfigError(*found)
    return values


def parse_override(text: str) -> Setting:
    """`KEY=VALUE`, as `--set` takes it."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"--set {text}: not of the form KEY=VALUE")
    return Setting(key.strip(), value.strip(), "--set")


def read_properties(file: Path) -> Iterator[Setting]:
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{file} is no text in UTF-8") from None
    for line, key, value in parse_properties(text):
        yield Setting(key, value, f"{file.name} line {line}")


def parse_properties(text: str) -> Iterator[tuple[int, str, str]]:
    """(line number, key, value) of each setting, in order."""
    for number, line in _logical_lines(text):
        found = _KEY.match(line)
        assert found is not None
        rest = line[found.end() :]
        separator = _SEPARATOR.match(rest)
        assert separator is not None
        yield number, _unescaped(found[0]), _unescaped(rest[separator.end() :])


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines without comments and blanks, continued ones joined to their first."""
    pending, first = "", 0
    for number, natural in enumerate(_NEWLINE.split(text), start=1):
        line = natural.lstrip(_BLANK)
        if not first and (not line or line[0] in "#!"):
            continue
        first = first or number
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            pending += line[:-1]
            continue
        yield first, pending + line
        pending, first = "", 0
    if pending:
        yield first, pending


def _unescaped(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        escape = match[1]
        if len(escape) > 1:
            return chr(int(escape[1:], 16))
        return _LETTERS.get(escape, escape)

    return _ESCAPE.sub(character, text)
