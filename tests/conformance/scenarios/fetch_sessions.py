"""Fetch sessions: opened, gone on with, changed and closed."""

from __future__ import annotations

from typing import Any

from mobula.protocol.api import ApiKey
from tests.conformance.data import LED_BY_ONE, NOBODY, batch, fetching, wanted
from tests.conformance.scenario import scenario
from tests.conformance.side import FOREVER, Side, Topic
from tests.conformance.wire import Json, Tree

API = ApiKey.FETCH
VERSIONS = range(7, 19)
FIRST_WITH_IDS = 13
NEW, NONE = 0, -1
"""Epochs that open a session, and that do without one."""


class Session:
    """With a topic of its own: partition 0 has a batch 0-1, partition 1 nothing."""

    def __init__(self, on: Side, version: int) -> None:
        self.topic: Topic = on.topic("a", LED_BY_ONE, FOREVER)
        on.append(self.topic, 0, batch(b"a", b"b"))
        self.id = 0
        self._on = on
        self._version = version

    def open(self, *parts: Tree) -> None:
        answer = self.ask(NEW, *parts or (wanted(self.topic, (0, 0), (1, 0)),))
        assert answer["session_id"] > 0
        self.id = answer["session_id"]

    def ask(self, epoch: int, *parts: Tree, version: int | None = None, **how: Any) -> Json:
        version = self._version if version is None else version
        asked = fetching(*parts, session=(self.id, epoch), **how)
        return self._on.ask(0, API, version, asked)

    def forgotten(self, *partitions: int) -> Tree:
        topic = self.topic
        return {"topic": topic.name, "topic_id": topic.topic_id, "partitions": partitions}


@scenario(API, good=True, versions=VERSIONS)
def nothing_changes(on: Side, version: int) -> None:
    session = Session(on, version)
    session.open()
    session.ask(1, wanted(session.topic, (0, 2)))
    session.ask(2)
    session.ask(3, max_wait=30)


@scenario(API, good=True, versions=VERSIONS)
def records_come(on: Side, version: int) -> None:
    session = Session(on, version)
    session.open(wanted(session.topic, (0, 2), (1, 0)))
    on.append(session.topic, 1, batch(b"c"))
    session.ask(1)
    session.ask(2)
    session.ask(3, wanted(session.topic, (1, 1)))


@scenario(API, good=True, versions=VERSIONS)
def the_log_start_moves(on: Side, version: int) -> None:
    session = Session(on, version)
    session.open(wanted(session.topic, (0, 2), (1, 0)))
    partitions = [{"partition_index": 0, "offset": 1}]
    trim = {"topics": [{"name": session.topic.name, "partitions": partitions}], "timeout": 10_000}
    on.do(0, ApiKey.DELETE_RECORDS, 2, trim)
    session.ask(1)
    session.ask(2)


@scenario(API, good=True, versions=VERSIONS)
def partitions_come_and_go(on: Side, version: int) -> None:
    session = Session(on, version)
    session.open(wanted(session.topic, (1, 0)))
    session.ask(1, wanted(session.topic, (0, 0)))
    session.ask(2, forgotten=[session.forgotten(0)])
    session.ask(3, forgotten=[session.forgotten(0, 7)])
    session.ask(4, wanted(session.topic, (0, 0)), forgotten=[session.forgotten(1)])
    session.ask(5, wanted(session.topic, (0, 2)), forgotten=[session.forgotten(0)])
    session.ask(6)


@scenario(API, good=True, versions=VERSIONS)
def closed(on: Side, version: int) -> None:
    session = Session(on, version)
    session.open()
    session.ask(NONE)
    session.ask(1)


@scenario(API, good=True, versions=VERSIONS)
def opened_anew(on: Side, version: int) -> None:
    session = Session(on, version)
    session.open()
    former = session.id
    session.open(wanted(session.topic, (1, 0)))
    session.ask(1)
    session.id = former
    session.ask(1)


@scenario(API, good=True, versions=VERSIONS)
def without_partitions(on: Side, version: int) -> None:
    session = Session(on, version)
    session.ask(NEW)
    session.open(wanted(session.topic, (1, 0)))
    session.ask(1, forgotten=[session.forgotten(1)])
    session.ask(2)


@scenario(API, good=False, versions=VERSIONS)
def another_epoch(on: Side, version: int) -> None:
    session = Session(on, version)
    session.open()
    for epoch in (2, 100, -2):
        session.ask(epoch)
    session.ask(1)
    session.ask(1)


@scenario(API, good=False, versions=VERSIONS)
def a_session_that_does_not_exist(on: Side, version: int) -> None:
    session = Session(on, version)
    for session_id in (0, 5):
        session.id = session_id
        session.ask(1, wanted(session.topic, (0, 0)))
        session.ask(NONE, wanted(session.topic, (0, 0)))


@scenario(API, good=False, versions=VERSIONS)
def an_id_that_no_session_can_have(on: Side, version: int) -> None:
    session = Session(on, version)
    for session_id in (-1, (1 << 31) - 1):
        session.id = session_id
        session.ask(1, wanted(session.topic, (0, 0)))
        session.ask(NONE, wanted(session.topic, (0, 0)))


@scenario(API, good=False, versions=VERSIONS)
def errors_are_told_each_time(on: Side, version: int) -> None:
    session = Session(on, version)
    session.open(wanted(session.topic, (0, 9)), wanted(NOBODY, (0, 0)))
    session.ask(1)
    session.ask(2, wanted(session.topic, (0, 2)))
    session.ask(3)


@scenario(API, good=False, versions=VERSIONS)
def a_topic_that_is_deleted(on: Side, version: int) -> None:
    session = Session(on, version)
    session.open(wanted(session.topic, (0, 2)))
    deleting = {"topic_names": [session.topic.name], "timeout": 10_000}
    on.do(0, ApiKey.DELETE_TOPICS, 5, deleting)
    on.wait_until_gone(session.topic.name)
    session.ask(1)
    session.ask(2)


@scenario(API, good=False, versions=(7, 12, 13, 18))
def ids_after_names_or_the_reverse(on: Side, version: int) -> None:
    session = Session(on, version)
    session.open()
    session.ask(1, version=12 if version >= FIRST_WITH_IDS else 13)
    session.ask(1)
