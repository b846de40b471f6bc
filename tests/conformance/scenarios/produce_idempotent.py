"""Produce: batches of idempotent producers, in order and out of it."""

from __future__ import annotations

from mobula.protocol.api import ApiKey
from tests.conformance.data import ask_all, batch, given_producer_id, into
from tests.conformance.scenario import scenario
from tests.conformance.side import FOREVER, Side, Topic

API = ApiKey.PRODUCE
KEPT = 5
"""So many batches of a producer are remembered."""


class Producer:
    def __init__(self, on: Side, version: int) -> None:
        self._on = on
        self._version = version
        self.topic: Topic = on.topic("a", configs=FOREVER)
        self.producer_id = given_producer_id(on)

    def send(self, sequence: int, *values: bytes, epoch: int = 0, acks: int = -1) -> None:
        part = batch(
            *values or (b"%d" % sequence,),
            producer_id=self.producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
        )
        self._on.ask(0, API, self._version, into(self.topic, part, acks=acks))


@scenario(API, good=True)
def in_order(on: Side, version: int) -> None:
    producer = Producer(on, version)
    producer.send(0, b"a", b"b")
    producer.send(2, acks=1)
    producer.send(3)
    ask_all(on, producer.topic)


@scenario(API, good=True)
def sent_again(on: Side, version: int) -> None:
    producer = Producer(on, version)
    producer.send(0, b"a", b"b")
    producer.send(2)
    for acks in (-1, 1):
        producer.send(0, b"a", b"b", acks=acks)
        producer.send(2, acks=acks)
    producer.send(3)
    ask_all(on, producer.topic)


@scenario(API, good=True)
def a_new_epoch(on: Side, version: int) -> None:
    producer = Producer(on, version)
    producer.send(0)
    producer.send(0, epoch=1)
    producer.send(1, epoch=1)
    producer.send(0, epoch=32_767)
    ask_all(on, producer.topic)


@scenario(API, good=True)
def a_producer_that_nobody_knows(on: Side, version: int) -> None:
    """It may begin anywhere: its records may have expired."""
    producer = Producer(on, version)
    producer.send(5)
    producer.send(6)
    producer.producer_id = 1 << 40
    producer.send(7, epoch=3)
    ask_all(on, producer.topic)


@scenario(API, good=True)
def the_largest_sequence(on: Side, version: int) -> None:
    producer = Producer(on, version)
    producer.send((1 << 31) - 1)
    producer.send(0)
    producer.send((1 << 31) - 1)
    producer.send(1)


@scenario(API, good=False)
def a_gap(on: Side, version: int) -> None:
    producer = Producer(on, version)
    producer.send(0, b"a", b"b")
    for sequence in (3, 1, 100):
        producer.send(sequence)
    producer.send(0, b"a")
    producer.send(0, b"a", b"b", b"c")
    ask_all(on, producer.topic)


@scenario(API, good=False)
def sent_again_too_late(on: Side, version: int) -> None:
    producer = Producer(on, version)
    for sequence in range(KEPT + 1):
        producer.send(sequence)
    producer.send(1)
    producer.send(0)


@scenario(API, good=False)
def an_old_epoch(on: Side, version: int) -> None:
    producer = Producer(on, version)
    producer.send(0, epoch=2)
    for epoch in (1, 0):
        for sequence in (0, 1):
            producer.send(sequence, epoch=epoch)


@scenario(API, good=False)
def a_new_epoch_that_does_not_begin_at_0(on: Side, version: int) -> None:
    producer = Producer(on, version)
    producer.send(0)
    producer.send(1, epoch=1)
    producer.send(5, epoch=1)
    producer.send(1)
