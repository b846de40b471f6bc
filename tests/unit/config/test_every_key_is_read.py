"""An operator can trust the table: a key that is accepted is read by someone."""

from __future__ import annotations

from pathlib import Path

import pytest

import mobula.actors
import mobula.cluster
from mobula.actors.config.definitions import BROKER_KEYS, TOPIC_KEYS

# Their help says that they change nothing, or only one value is accepted.
_FACTS = {
    "delete.retention.ms",
    "max.compaction.lag.ms",
    "min.cleanable.dirty.ratio",
    "min.compaction.lag.ms",
    "preallocate",
    "unclean.leader.election.enable",
}
_TABLES = ("_keys.py", "unsupported.py")


def _sources() -> str:
    """All code but the tables themselves and the command line, which only shows them."""
    folders = [Path(package.__path__[0]).resolve() for package in (mobula.actors, mobula.cluster)]
    files = [file for folder in folders for file in folder.rglob("*.py")]
    return "\n".join(
        file.read_text()
        for file in files
        if not file.name.endswith(_TABLES) and file.parent.name != "commands"
    )


@pytest.fixture(scope="module")
def sources() -> str:
    return _sources()


def test_every_broker_key_is_read(sources: str) -> None:
    given = {synonym.key for key in TOPIC_KEYS.values() for synonym in key.synonyms}
    unread = [
        key.name
        for key in BROKER_KEYS.values()
        if f'"{key.name}"' not in sources and key.name not in given and not key.given_by
    ]
    assert unread == []


def test_every_topic_key_is_read_or_says_that_it_is_not(sources: str) -> None:
    unread = {name for name in TOPIC_KEYS if f'"{name}"' not in sources}
    assert unread <= _FACTS
    for name in _FACTS:
        key = TOPIC_KEYS[name]
        assert "changes nothing" in key.doc or key.checks[0].wants.startswith("false (")
