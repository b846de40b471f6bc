"""Produce: what a request asks for, of whom, and with which acks. What batches may be stands
in `produce_batches`."""

from __future__ import annotations

from mobula.protocol.api import ApiKey
from tests.conformance.data import (
    LED_BY_ONE,
    NOBODY,
    ask_all,
    batch,
    into,
    producing,
    refusing,
    written,
)
from tests.conformance.scenario import just_outside, scenario
from tests.conformance.side import FOREVER, THREE_PARTITIONS, Side, Topic
from tests.conformance.wire import encode_request, is_flexible, with_null

API = ApiKey.PRODUCE
WITH_IDS = 13


@scenario(API, good=True)
def with_any_acks(on: Side, version: int) -> None:
    topic = on.topic("a", configs=FOREVER)
    on.ask(0, API, version, into(topic, batch(b"a", b"b"), acks=-1))
    on.ask(0, API, version, into(topic, batch(b"c"), acks=1))
    on.ask_unanswered(0, API, version, into(topic, batch(b"d"), acks=0))
    on.ask(0, API, version, into(topic, batch(b"e"), acks=-1))
    ask_all(on, topic)


@scenario(API, good=True)
def several_partitions_and_topics(on: Side, version: int) -> None:
    first = on.topic("a", LED_BY_ONE, FOREVER)
    second = on.topic("b", configs=FOREVER)
    both = written(first, (1, batch(b"a")), (0, batch(b"b"))), written(second, (0, batch(b"c")))
    for _ in range(2):
        on.ask(0, API, version, producing(*both))
    ask_all(on, first, 0, 1)
    ask_all(on, second)


@scenario(API, good=True)
def into_a_partition_with_one_replica(on: Side, version: int) -> None:
    """Whatever min.insync.replicas says, and without time to wait."""
    topic = on.topic("a", [[0]])
    for timeout in (10_000, 0, -1):
        on.ask(0, API, version, into(topic, batch(b"a"), timeout=timeout))


@scenario(API, good=True)
def into_a_log_that_was_trimmed(on: Side, version: int) -> None:
    topic = on.topic("a", configs=FOREVER)
    on.produce(topic, 0, b"a", b"b", b"c")
    partitions = [{"partition_index": 0, "offset": 2}]
    trim = {"topics": [{"name": topic.name, "partitions": partitions}], "timeout": 10_000}
    on.do(0, ApiKey.DELETE_RECORDS, 2, trim)
    on.ask(0, API, version, into(topic, batch(b"d")))


@scenario(API, good=True)
def nothing(on: Side, version: int) -> None:
    for acks in (-1, 1):
        on.ask(0, API, version, producing(acks=acks))
        on.ask(0, API, version, producing(written(refusing(on)), acks=acks))
    on.ask_unanswered(0, API, version, producing(acks=0))


@scenario(API, good=False)
def acks_that_do_not_exist(on: Side, version: int) -> None:
    for acks in (2, -2, 32_767):
        on.ask(0, API, version, into(refusing(on), batch(b"a"), acks=acks))
    on.ask(0, API, version, into(NOBODY, batch(b"a"), acks=2))


@scenario(API, good=False)
def a_broker_that_does_not_lead(on: Side, version: int) -> None:
    elsewhere = on.shared_topic("one-replica", [[2]])
    for acks in (-1, 1):
        for broker in (1, 2):
            on.ask(broker, API, version, into(refusing(on), batch(b"a"), acks=acks))
        on.ask(0, API, version, into(elsewhere, batch(b"a"), acks=acks))


@scenario(API, good=False)
def what_is_not_there(on: Side, version: int) -> None:
    on.ask(0, API, version, into(NOBODY, batch(b"a")))
    for partition in (2, -1):
        on.ask(0, API, version, into(refusing(on), batch(b"a"), partition))
    if version < WITH_IDS:
        for name in ("", "a b"):
            on.ask(0, API, version, into(Topic(name, NOBODY.topic_id), batch(b"a")))
    else:
        without_id = {**written(refusing(on), (0, batch(b"a"))), "topic_id": None}
        on.ask(0, API, version, producing(without_id))


@scenario(API, good=False)
def a_topic_that_was_deleted(on: Side, version: int) -> None:
    topic = on.topic("gone")
    on.do(0, ApiKey.DELETE_TOPICS, 5, {"topic_names": [topic.name], "timeout": 10_000})
    on.wait_until_gone(topic.name)
    on.ask(0, API, version, into(topic, batch(b"a")))


@scenario(API, good=False)
def an_error_that_nobody_waits_for(on: Side, version: int) -> None:
    for topic, broker in ((refusing(on), 1), (NOBODY, 0)):
        on.ask_unanswered(broker, API, version, into(topic, batch(b"a"), acks=0))
    on.ask_unanswered(0, API, version, into(refusing(on), b"", acks=0))


@scenario(API, good=False)
def one_bad_among_good_ones(on: Side, version: int) -> None:
    topic = on.topic("a", THREE_PARTITIONS, FOREVER)
    parts = [(index, batch(b"a")) for index in range(4)]
    on.ask(0, API, version, producing(written(topic, *parts)))
    damaged = (1, batch(b"a")[:-1])
    good = on.topic("b", LED_BY_ONE, FOREVER)
    on.ask(0, API, version, producing(written(good, (0, batch(b"a")), damaged)))
    unknown = written(NOBODY, (0, batch(b"a")))
    on.ask(0, API, version, producing(unknown, written(good, (0, batch(b"b")))))
    ask_all(on, topic)
    ask_all(on, good, 0, 1)


@scenario(API, good=False)
def a_partition_named_twice(on: Side, version: int) -> None:
    topic = on.topic("a", configs=FOREVER)
    twice = (0, batch(b"a")), (0, batch(b"b"))
    on.ask(0, API, version, producing(written(topic, *twice)))
    on.ask(0, API, version, producing(*(written(topic, part) for part in twice)))
    ask_all(on, topic)


@scenario(API, good=False)
def a_transactional_producer(on: Side, version: int) -> None:
    """Of the records alone: what becomes of a transaction depends on its coordinator."""
    topic = on.topic("a", configs=FOREVER)
    on.ask(0, API, version, into(topic, batch(b"a"), transactional_id=on.name("t")))


@scenario(API, good=False)
def null_in_place_of(on: Side, version: int) -> None:
    if version < WITH_IDS:
        nothing = Topic("nothing", NOBODY.topic_id)
        body = encode_request(API, version, into(nothing, batch(b"a")))
        on.ask(0, API, version, with_null(body, "nothing", flexible=is_flexible(API, version)))
    on.ask(0, API, version, producing({**written(refusing(on)), "partition_data": None}))
    on.ask(0, API, version, {**producing(), "topic_data": None})


@scenario(API, good=False)
def a_request_of_another_length(on: Side, version: int) -> None:
    body = encode_request(API, version, into(NOBODY, batch(b"a")))
    on.ask(0, API, version, body[:-1])
    on.ask(0, API, version, b"")
    on.ask(0, API, version, body + b"more")


@scenario(API, good=False, versions=just_outside(API))
def a_version_that_does_not_exist(on: Side, version: int) -> None:
    on.ask(0, API, version, encode_request(API, min(max(version, 3), 13), producing()))
