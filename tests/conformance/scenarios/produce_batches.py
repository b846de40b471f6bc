"""Produce: the batches themselves, as they should be and as they should not."""

from __future__ import annotations

import struct

from mobula.protocol.api import ApiKey
from mobula.storage.batch import DELETE_HORIZON_FLAG
from tests.conformance.data import (
    ask_all,
    attributes_of,
    batch,
    changed,
    given_producer_id,
    into,
    refusing,
)
from tests.conformance.scenario import scenario
from tests.conformance.side import BASE_TIME_MS, FOREVER, Side

API = ApiKey.PRODUCE
GZIP, SNAPPY, LZ4, ZSTD = range(1, 5)
FIRST_WITH_ZSTD = 7
LONG = b"a long value that compresses well " * 20
A_CENTURY_MS = 100 * 365 * 24 * 3600 * 1000


@scenario(API, good=True)
def every_codec(on: Side, version: int) -> None:
    topic = on.topic("a", configs=FOREVER)
    for codec in range(4 + (version >= FIRST_WITH_ZSTD)):
        on.ask(0, API, version, into(topic, batch(LONG, b"b", codec=codec)))
    ask_all(on, topic)


@scenario(API, good=True)
def keys_and_no_values(on: Side, version: int) -> None:
    topic = on.topic("a", configs=FOREVER)
    for key in (b"key", b"", None):
        on.ask(0, API, version, into(topic, batch(b"value", b"", None, key=key)))
    ask_all(on, topic)


@scenario(API, good=True)
def an_epoch_that_the_client_made_up(on: Side, version: int) -> None:
    topic = on.topic("a", configs=FOREVER)
    for epoch in (7, -5):
        on.ask(0, API, version, into(topic, batch(b"a", b"b", leader_epoch=epoch)))
    ask_all(on, topic)


@scenario(API, good=False)
def an_offset_that_the_client_made_up(on: Side, version: int) -> None:
    for offset in (1, 100, -5):
        on.ask(0, API, version, into(refusing(on), batch(b"a", b"b", base_offset=offset)))


@scenario(API, good=True)
def a_topic_with_log_append_time(on: Side, version: int) -> None:
    topic = on.topic("a", configs={**FOREVER, "message.timestamp.type": "LogAppendTime"})
    for codec in (0, GZIP):
        on.ask(0, API, version, into(topic, batch(b"a", b"b", codec=codec)))
    flagged = batch(b"c", log_append_time_ms=5)
    on.ask(0, API, version, into(topic, flagged))
    ask_all(on, topic)


@scenario(API, good=True, versions=(3, 13))
def a_topic_with_a_codec_of_its_own(on: Side, version: int) -> None:
    for name in ("uncompressed", "gzip", "snappy", "lz4", "zstd"):
        topic = on.topic(name, configs={**FOREVER, "compression.type": name})
        for codec in (0, LZ4):
            on.ask(0, API, version, into(topic, batch(LONG, b"b", codec=codec)))
        ask_all(on, topic)


@scenario(API, good=True)
def a_compacted_topic(on: Side, version: int) -> None:
    topic = on.topic("a", configs={"cleanup.policy": "compact"})
    for codec in (0, GZIP):
        on.ask(0, API, version, into(topic, batch(b"a", None, key=b"key", codec=codec)))
    ask_all(on, topic)


@scenario(API, good=False)
def a_compacted_topic_and_no_keys(on: Side, version: int) -> None:
    topic = on.shared_topic("compacted", configs={"cleanup.policy": "compact"})
    for codec in (0, GZIP):
        on.ask(0, API, version, into(topic, batch(b"a", b"b", codec=codec)))
    # Empty is a key.
    other = on.topic("a", configs={"cleanup.policy": "compact"})
    on.ask(0, API, version, into(other, batch(b"a", key=b"")))


@scenario(API, good=False)
def no_records(on: Side, version: int) -> None:
    """Null records Kafka does not answer at all, so there is nothing to compare."""
    on.ask(0, API, version, into(refusing(on), b""))


@scenario(API, good=False)
def a_batch_that_is_cut_short(on: Side, version: int) -> None:
    good = batch(b"a", b"b")
    length = len(good) - 12
    cut = [good[:end] for end in (-1, 61, 60, 17, 16, 5)]
    for records in (*cut, changed(good, length=length + 1)):
        on.ask(0, API, version, into(refusing(on), records))


@scenario(API, good=False)
def bytes_after_a_batch(on: Side, version: int) -> None:
    topic = on.topic("a", configs=FOREVER)
    good = batch(b"a", b"b")
    for records in (
        good + b"\0",
        good + b"\0" * 20,
        good + b"\0" * 80,
        changed(good, length=len(good) - 13),
    ):
        on.ask(0, API, version, into(topic, records))


@scenario(API, good=False)
def a_length_that_no_batch_has(on: Side, version: int) -> None:
    for length in (0, -1, 48, (1 << 31) - 1):
        on.ask(0, API, version, into(refusing(on), changed(batch(b"a"), length=length)))


@scenario(API, good=False)
def two_batches(on: Side, version: int) -> None:
    on.ask(0, API, version, into(refusing(on), batch(b"a") + batch(b"b")))


@scenario(API, good=False)
def a_wrong_checksum(on: Side, version: int) -> None:
    good = batch(b"abc")
    for damaged in (good.replace(b"abc", b"abd"), good[:17] + b"\0\0\0\0" + good[21:]):
        on.ask(0, API, version, into(refusing(on), damaged))


@scenario(API, good=False)
def another_magic(on: Side, version: int) -> None:
    for magic in (0, 1, 3, 255):
        on.ask(0, API, version, into(refusing(on), changed(batch(b"a"), magic=magic)))


@scenario(API, good=False)
def too_large_a_batch(on: Side, version: int) -> None:
    topic = on.shared_topic("small-batches", configs={"max.message.bytes": "1000"})
    for codec in (0, GZIP):
        noise = bytes(struct.pack(">500H", *(at * 40_503 & 0xFFFF for at in range(500))))
        on.ask(0, API, version, into(topic, batch(noise, codec=codec)))


@scenario(API, good=False, versions=(3, 13))
def a_batch_larger_than_a_segment(on: Side, version: int) -> None:
    large = {"segment.bytes": "1048576", "max.message.bytes": "2000000"}
    topic = on.shared_topic("large-batches", configs=large)
    on.ask(0, API, version, into(topic, batch(b"x" * 1_100_000)))


@scenario(API, good=False)
def counts_that_cannot_be(on: Side, version: int) -> None:
    for count in (0, -1, 1, 3, (1 << 31) - 1):
        on.ask(0, API, version, into(refusing(on), changed(batch(b"a", b"b"), count=count)))
    good = bytearray(batch(b"a", b"b"))
    for delta in (-1, 0, 2):
        struct.pack_into(">i", good, 23, delta)
        on.ask(0, API, version, into(refusing(on), changed(bytes(good))))


@scenario(API, good=False)
def a_codec_that_does_not_exist(on: Side, version: int) -> None:
    for codec in (5, 7):
        on.ask(0, API, version, into(refusing(on), changed(batch(b"a"), attributes=codec)))


@scenario(API, good=False)
def a_control_batch(on: Side, version: int) -> None:
    on.ask(0, API, version, into(refusing(on), batch(b"a", control=True)))


@scenario(API, good=False)
def log_append_time_of_the_clients(on: Side, version: int) -> None:
    topic = on.topic("a", configs=FOREVER)
    on.ask(0, API, version, into(topic, batch(b"a", log_append_time_ms=BASE_TIME_MS)))


@scenario(API, good=False)
def attributes_without_a_meaning(on: Side, version: int) -> None:
    topic = on.topic("a", configs=FOREVER)
    for attributes in (DELETE_HORIZON_FLAG, 0x80, 0x4000):
        on.ask(0, API, version, into(topic, changed(batch(b"a"), attributes=attributes)))


@scenario(API, good=False, versions=range(3, FIRST_WITH_ZSTD))
def zstd_before_its_version(on: Side, version: int) -> None:
    on.ask(0, API, version, into(refusing(on), batch(b"a", codec=ZSTD)))


@scenario(API, good=False, versions=range(3, FIRST_WITH_ZSTD))
def zstd_before_its_version_and_of_a_follower(on: Side, version: int) -> None:
    on.ask(1, API, version, into(refusing(on), batch(b"a", codec=ZSTD)))


@scenario(API, good=False)
def records_that_are_damaged(on: Side, version: int) -> None:
    """The checksum is right."""
    topic = on.topic("a", configs=FOREVER)
    good = batch(b"a", b"b")
    packed = batch(LONG, codec=GZIP)
    for damaged in (
        changed(good, records=b"\xff" * 20),
        changed(good, records=good[61:-1]),
        changed(good, records=b""),
        changed(good, records=good[61:] + b"more"),
        changed(packed, records=b"\xff" * 20),
        changed(good, attributes=attributes_of(packed)),
    ):
        on.ask(0, API, version, into(topic, damaged))


@scenario(API, good=False)
def times_out_of_bounds(on: Side, version: int) -> None:
    on.ask(0, API, version, into(refusing(on), batch(b"a", time=A_CENTURY_MS)))
    on.ask(0, API, version, into(refusing(on), batch(b"a", b"b", time=A_CENTURY_MS, codec=GZIP)))
    old = on.shared_topic("nothing-old", configs={"message.timestamp.before.max.ms": "1000"})
    for codec in (0, GZIP):
        on.ask(0, API, version, into(old, batch(b"a", b"b", codec=codec)))


@scenario(API, good=False)
def a_transactional_batch(on: Side, version: int) -> None:
    """In a request that is none of a transaction."""
    producer = {"producer_id": given_producer_id(on), "producer_epoch": 0, "base_sequence": 0}
    on.ask(0, API, version, into(refusing(on), batch(b"a", transactional=True, **producer)))
    on.ask(0, API, version, into(refusing(on), batch(b"a", transactional=True)))


@scenario(API, good=False)
def a_producer_id_without_a_sequence(on: Side, version: int) -> None:
    producer_id = given_producer_id(on)
    for epoch, sequence in ((0, -1), (-1, -1), (0, -2)):
        part = batch(b"a", producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
        on.ask(0, API, version, into(refusing(on), part))


@scenario(API, good=False)
def a_producer_id_without_an_epoch(on: Side, version: int) -> None:
    topic = on.topic("a", configs=FOREVER)
    part = batch(b"a", producer_id=given_producer_id(on), producer_epoch=-1, base_sequence=0)
    on.ask(0, API, version, into(topic, part))
