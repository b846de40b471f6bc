"""A line of the list of differences: what it covers, and why."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from mobula.protocol.api import ApiKey
from tests.conformance.compare import MISSING, Differs


@dataclass(frozen=True, slots=True)
class Explained:
    """`*` in a scenario or path stands for anything, `{a|b}` for one of these."""

    api: ApiKey
    path: str
    why: str
    """One sentence."""
    scenario: str = "*"
    versions: range | None = None
    """All, when not said."""
    wording: bool = False
    """Both sides say something, in other words: one that is silent is not covered."""
    only_kafkas: bool = False
    """We have nothing in its place."""
    ours_says: bool = False
    """Ours says something, whether Kafka does or not."""

    def covers(self, api: ApiKey, scenario: str, version: int, differs: Differs) -> bool:
        return (
            api == self.api
            and (self.versions is None or version in self.versions)
            and _matches(self.scenario, scenario)
            and _matches(self.path, differs.path)
            and (not self.only_kafkas or differs.ours == MISSING)
            and (not self.wording or all(_says(v) for v in (differs.kafka, differs.ours)))
            and (not self.ours_says or _says(differs.ours))
        )


def _says(value: object) -> bool:
    return isinstance(value, str) and value not in ("", MISSING)


@cache
def _pattern(text: str) -> re.Pattern[str]:
    wild = {"*": ".*", "{": "(?:", "|": "|", "}": ")"}
    return re.compile("".join(wild.get(char, re.escape(char)) for char in text))


def _matches(pattern: str, text: str) -> bool:
    return _pattern(pattern).fullmatch(text) is not None


def any_of(*names: str) -> str:
    return f"{{{'|'.join(names)}}}"
