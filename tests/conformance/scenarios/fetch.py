"""Fetch without sessions: where it reads, how much, and of whom."""

from __future__ import annotations

from mobula.protocol.api import ApiKey
from tests.conformance.data import LED_BY_ONE, NOBODY, batch, fetching, wanted
from tests.conformance.scenario import just_outside, scenario
from tests.conformance.side import FOREVER, Side, Topic
from tests.conformance.wire import encode_request, is_flexible, with_null

API = ApiKey.FETCH
WITH_EPOCHS = range(9, 19)
WITH_FETCHED_EPOCHS = range(12, 19)
FIRST_WITH_ZSTD, FIRST_WITH_IDS, FIRST_WITH_REPLICA_STATE = 10, 13, 15
READ_COMMITTED = 1
ZSTD = 4
END = 6
WAIT = 30
"""ms; where there is nothing to wait for."""


def filled(on: Side) -> Topic:
    """In partition 0 the batches 0-1, 2-4 and 5; in partition 1 nothing."""

    def fill(topic: Topic) -> None:
        for values in ((b"a", b"b"), (b"c", b"d", b"e"), (b"f",)):
            on.append(topic, 0, batch(*values))

    return on.shared_topic("read", LED_BY_ONE, FOREVER, fill)


def trimmed(on: Side) -> Topic:
    """A batch 0-2, of which 2 is left, and a batch 3."""

    def fill(topic: Topic) -> None:
        on.append(topic, 0, batch(b"a", b"b", b"c"))
        on.append(topic, 0, batch(b"d"))
        partitions = [{"partition_index": 0, "offset": 2}]
        trim = {"topics": [{"name": topic.name, "partitions": partitions}], "timeout": 10_000}
        on.do(0, ApiKey.DELETE_RECORDS, 2, trim)

    return on.shared_topic("read-trimmed", configs=FOREVER, fill=fill)


@scenario(API, good=True)
def from_every_offset(on: Side, version: int) -> None:
    for offset in range(END + 1):
        on.ask(0, API, version, fetching(wanted(filled(on), (0, offset))))
    for offset in (2, 3, 4):
        on.ask(0, API, version, fetching(wanted(trimmed(on), (0, offset))))


@scenario(API, good=True)
def an_empty_log(on: Side, version: int) -> None:
    for waiting in ({}, {"max_wait": WAIT}, {"max_wait": -1}, {"min_bytes": 0, "max_wait": WAIT}):
        on.ask(0, API, version, fetching(wanted(filled(on), (1, 0)), **waiting))


@scenario(API, good=True)
def more_than_there_is(on: Side, version: int) -> None:
    """What there is comes after the wait."""
    waiting = {"min_bytes": 1 << 20, "max_wait": WAIT}
    on.ask(0, API, version, fetching(wanted(filled(on), (0, 2)), **waiting))
    on.ask(0, API, version, fetching(wanted(filled(on), (0, END)), **waiting))


@scenario(API, good=True)
def with_a_limit(on: Side, version: int) -> None:
    """The first batch comes whole; those of the second partition only if they fit."""
    ask_limited(on, version, 0, 1, 69, 77, 78, 100, 200)


@scenario(API, good=False)
def a_limit_below_zero(on: Side, version: int) -> None:
    ask_limited(on, version, -1)


def ask_limited(on: Side, version: int, *limits: int) -> None:
    topic, other = filled(on), trimmed(on)
    for limit in limits:
        on.ask(0, API, version, fetching(wanted(topic, (0, 0), max_bytes=limit)))
        on.ask(0, API, version, fetching(wanted(topic, (0, 0)), max_bytes=limit))
        both = wanted(topic, (0, 2), max_bytes=limit), wanted(other, (0, 2), max_bytes=limit)
        on.ask(0, API, version, fetching(*both))
        both = wanted(topic, (0, 2)), wanted(other, (0, 2))
        on.ask(0, API, version, fetching(*both, max_bytes=limit))


@scenario(API, good=True)
def several_partitions_and_topics(on: Side, version: int) -> None:
    both = wanted(filled(on), (1, 0), (0, 2)), wanted(trimmed(on), (0, 3))
    on.ask(0, API, version, fetching(*both))


@scenario(API, good=True)
def isolation_levels(on: Side, version: int) -> None:
    for offset in (0, END):
        part = wanted(filled(on), (0, offset))
        on.ask(0, API, version, fetching(part, isolation_level=READ_COMMITTED))


@scenario(API, good=True)
def nothing(on: Side, version: int) -> None:
    on.ask(0, API, version, fetching())
    on.ask(0, API, version, fetching(max_wait=WAIT))
    on.ask(0, API, version, fetching(wanted(filled(on))))


@scenario(API, good=True, versions=WITH_EPOCHS)
def the_epoch_of_the_leader(on: Side, version: int) -> None:
    for offset in (0, END):
        part = wanted(filled(on), (0, offset), current_leader_epoch=0)
        on.ask(0, API, version, fetching(part))


@scenario(API, good=True, versions=WITH_FETCHED_EPOCHS)
def the_epoch_that_was_fetched_last(on: Side, version: int) -> None:
    for offset in (0, 3, END):
        part = wanted(filled(on), (0, offset), last_fetched_epoch=0)
        on.ask(0, API, version, fetching(part))


@scenario(API, good=True)
def zstd(on: Side, version: int) -> None:
    """A topic that has the codec by chance, and one that has it by its configuration."""
    plain = on.shared_topic(
        "zstd-inside", configs=FOREVER, fill=lambda topic: _fill_zstd(on, topic)
    )
    declared = on.shared_topic(
        "zstd-declared",
        configs={**FOREVER, "compression.type": "zstd"},
        fill=lambda topic: _fill_zstd(on, topic),
    )
    for topic in (plain, declared):
        on.ask(0, API, version, fetching(wanted(topic, (0, 0))))
        on.ask(0, API, version, fetching(wanted(topic, (0, 1))))


def _fill_zstd(on: Side, topic: Topic) -> None:
    on.append(topic, 0, batch(b"a", codec=ZSTD))


@scenario(API, good=False)
def offsets_out_of_range(on: Side, version: int) -> None:
    for offset in (END + 1, 1 << 62, -1, -2):
        on.ask(0, API, version, fetching(wanted(filled(on), (0, offset)), max_wait=WAIT))
    for offset in (0, 1, 5):
        on.ask(0, API, version, fetching(wanted(trimmed(on), (0, offset))))
    on.ask(0, API, version, fetching(wanted(filled(on), (1, 1))))


@scenario(API, good=False)
def a_broker_that_does_not_lead(on: Side, version: int) -> None:
    elsewhere = on.shared_topic("one-replica", [[2]])
    on.ask(0, API, version, fetching(wanted(elsewhere, (0, 0))))
    if version < 11:
        # Later a follower may be read.
        on.ask(1, API, version, fetching(wanted(filled(on), (0, 0))))


@scenario(API, good=False, versions=range(11, 19))
def a_follower(on: Side, version: int) -> None:
    topic = filled(on)

    def settled() -> bool:
        answer = on.do(1, API, 12, fetching(wanted(topic, (0, 0))))
        (partition,) = answer["responses"][0]["partitions"]
        return partition["error_code"] != "none" or partition["high_watermark"] == END

    on.wait_until(settled, "a follower to know all that is committed")
    for offset in (0, END):
        on.ask(1, API, version, fetching(wanted(topic, (0, offset))))
    on.ask(1, API, version, fetching(wanted(topic, (0, 0)), rack_id="r"))


@scenario(API, good=False, versions=WITH_EPOCHS)
def another_epoch_than_the_leaders(on: Side, version: int) -> None:
    elsewhere = on.shared_topic("one-replica", [[2]])
    for epoch in (1, 100, -2):
        for topic in (filled(on), elsewhere):
            part = wanted(topic, (0, 0), current_leader_epoch=epoch)
            on.ask(0, API, version, fetching(part))
    for epoch in (1, 100):
        part = wanted(filled(on), (0, 0), current_leader_epoch=epoch)
        on.ask(1, API, version, fetching(part))


@scenario(API, good=False, versions=WITH_FETCHED_EPOCHS)
def an_epoch_that_cannot_have_been_fetched(on: Side, version: int) -> None:
    for epoch in (1, 100):
        for offset in (0, END):
            part = wanted(filled(on), (0, offset), last_fetched_epoch=epoch)
            on.ask(0, API, version, fetching(part))
    for offset in (END + 1, -1):
        part = wanted(filled(on), (0, offset), last_fetched_epoch=0)
        on.ask(0, API, version, fetching(part))
    for offset in (0, 1):
        part = wanted(trimmed(on), (0, offset), last_fetched_epoch=0)
        on.ask(0, API, version, fetching(part))


@scenario(API, good=False)
def what_is_not_there(on: Side, version: int) -> None:
    on.ask(0, API, version, fetching(wanted(NOBODY, (0, 0)), max_wait=WAIT))
    for partition in (2, -1):
        on.ask(0, API, version, fetching(wanted(filled(on), (partition, 0))))
    if version < FIRST_WITH_IDS:
        for name in ("", "a b"):
            on.ask(0, API, version, fetching(wanted(Topic(name, NOBODY.topic_id), (0, 0))))
    else:
        on.ask(0, API, version, fetching({**wanted(filled(on), (0, 0)), "topic_id": None}))


@scenario(API, good=False)
def one_bad_among_good_ones(on: Side, version: int) -> None:
    scattered = on.shared_topic("one-replica-each", [[0], [1], [2]])
    parts = [(index, 0) for index in range(4)]
    waiting = {"max_wait": WAIT}
    on.ask(0, API, version, fetching(wanted(scattered, *parts), **waiting))
    both = wanted(NOBODY, (0, 0)), wanted(filled(on), (0, 0))
    on.ask(0, API, version, fetching(*both, **waiting))


@scenario(API, good=False)
def a_partition_named_twice(on: Side, version: int) -> None:
    on.ask(0, API, version, fetching(wanted(filled(on), (0, 2), (0, 5))))
    on.ask(0, API, version, fetching(*(wanted(filled(on), (0, offset)) for offset in (2, 5))))


@scenario(API, good=False)
def isolation_levels_that_do_not_exist(on: Side, version: int) -> None:
    for level in (2, -1):
        on.ask(0, API, version, fetching(wanted(filled(on), (0, 0)), isolation_level=level))


@scenario(API, good=False)
def who_is_no_consumer(on: Side, version: int) -> None:
    """Whoever debugs, and a broker that there is none of."""
    topic = filled(on)
    for replica in (-2, 9):
        if version < FIRST_WITH_REPLICA_STATE:
            who: dict[str, object] = {"replica_id": replica}
        else:
            who = {"replica_state": {"replica_id": replica, "replica_epoch": 1}}
        on.ask(0, API, version, fetching(wanted(topic, (0, 0)), **who))


@scenario(API, good=False)
def null_in_place_of(on: Side, version: int) -> None:
    if version < FIRST_WITH_IDS:
        body = encode_request(API, version, fetching(wanted(Topic("nothing", NOBODY.topic_id))))
        on.ask(0, API, version, with_null(body, "nothing", flexible=is_flexible(API, version)))
    on.ask(0, API, version, fetching({**wanted(filled(on)), "partitions": None}))
    on.ask(0, API, version, {**fetching(), "topics": None})


@scenario(API, good=False)
def a_request_of_another_length(on: Side, version: int) -> None:
    body = encode_request(API, version, fetching(wanted(NOBODY, (0, 0))))
    on.ask(0, API, version, body[:-1])
    on.ask(0, API, version, b"")
    on.ask(0, API, version, body + b"more")


@scenario(API, good=False, versions=just_outside(API))
def a_version_that_does_not_exist(on: Side, version: int) -> None:
    on.ask(0, API, version, encode_request(API, min(max(version, 4), 18), fetching()))
