"""Replica actors learn of metadata before gateways do, and each sees every record once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mobula.actors.broker.messages import MetadataUpdate
from mobula.actors.broker.metadata_publisher import MetadataPublisher
from mobula.actors.link.interface import LinkError
from mobula.actors.link.method import Nothing
from mobula.actors.metadata.records import ClusterCreated, TopicCreated, encode_record


class FakeLink:
    """Keeps what was sent until the test lets it be answered."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.sent: list[MetadataUpdate] = []
        self._listeners: list[Callable[[bool], None]] = []
        self._waiting: list[tuple[Callable[..., None], Callable[[LinkError], None]]] = []

    def on_state(self, listener: Callable[[bool], None]) -> None:
        self._listeners.append(listener)

    def call(
        self, _method: Any, message: Any, on_reply: Any, on_error: Any, **_options: Any
    ) -> int:
        self.sent.append(message)
        self._waiting.append((on_reply, on_error))
        return len(self.sent)

    def state(self, up: bool) -> None:
        for listener in self._listeners:
            listener(up)

    def answer(self) -> None:
        on_reply, _ = self._waiting.pop(0)
        on_reply(Nothing(), memoryview(b""))

    def fail(self) -> None:
        _, on_error = self._waiting.pop(0)
        on_error(LinkError(self.target, "broke", sent=True))


def topic(number: int) -> bytes:
    return encode_record(TopicCreated(bytes([number]) * 16, f"topic-{number}"))


class Bench:
    def __init__(self) -> None:
        self.applied: list[tuple[str, bool]] = []
        self.publisher = MetadataPublisher(lambda name, first: self.applied.append((name, first)))
        self.replica = FakeLink("replica")
        self.gateway = FakeLink("gateway")
        self.publisher.add("replica", self.replica, is_replica=True)  # type: ignore[arg-type]
        self.publisher.add("gateway", self.gateway, is_replica=False)  # type: ignore[arg-type]

    def up(self) -> None:
        self.replica.state(True)
        self.gateway.state(True)

    def snapshot(self, offset: int = 5) -> None:
        records = [encode_record(ClusterCreated("c"))]
        self.publisher.received(snapshot=True, offset=offset, records=records)


def test_a_gateway_waits_until_the_replica_actor_has_applied() -> None:
    bench = Bench()
    bench.up()
    bench.snapshot()
    assert [update.offset for update in bench.replica.sent] == [5]
    assert bench.gateway.sent == []
    bench.replica.answer()
    assert [(u.offset, u.snapshot) for u in bench.gateway.sent] == [(5, True)]
    bench.gateway.answer()
    assert bench.applied == [("replica", True), ("gateway", True)]
    assert bench.publisher.all_applied()


def test_later_records_go_out_as_a_delta_with_each_record_once() -> None:
    bench = Bench()
    bench.up()
    bench.snapshot()
    bench.replica.answer()
    bench.gateway.answer()
    bench.publisher.received(snapshot=False, offset=6, records=[topic(1)])
    bench.publisher.received(snapshot=False, offset=8, records=[topic(2), topic(3)])
    assert bench.replica.sent[-1].records == [topic(1)]
    bench.replica.answer()
    assert bench.replica.sent[-1].records == [topic(2), topic(3)]
    assert bench.gateway.sent[-1].records == [topic(1)]
    bench.gateway.answer()
    bench.replica.answer()
    assert bench.gateway.sent[-1].records == [topic(2), topic(3)]


def test_an_actor_that_comes_back_gets_the_whole_image() -> None:
    bench = Bench()
    bench.up()
    bench.snapshot()
    bench.replica.answer()
    bench.gateway.answer()
    bench.publisher.received(snapshot=False, offset=6, records=[topic(1)])
    bench.replica.answer()
    bench.gateway.state(False)
    bench.gateway.state(True)
    update = bench.gateway.sent[-1]
    assert update.snapshot
    assert update.offset == 6
    assert topic(1) in update.records


def test_a_dead_replica_actor_does_not_hold_the_gateways_up() -> None:
    bench = Bench()
    bench.up()
    bench.snapshot()
    bench.replica.answer()
    bench.gateway.answer()
    bench.replica.state(False)
    bench.publisher.received(snapshot=False, offset=6, records=[topic(1)])
    assert bench.gateway.sent[-1].offset == 6


def test_a_held_replica_actor_gets_nothing_until_it_is_released() -> None:
    bench = Bench()
    bench.up()
    bench.snapshot()
    bench.replica.answer()
    bench.replica.state(False)
    bench.publisher.hold("replica")
    bench.replica.state(True)
    assert len(bench.replica.sent) == 1
    bench.publisher.release("replica")
    assert bench.replica.sent[-1].snapshot


def test_an_update_that_failed_is_sent_again_as_a_snapshot() -> None:
    bench = Bench()
    bench.up()
    bench.snapshot()
    bench.replica.fail()
    bench.publisher.tick()
    assert [update.snapshot for update in bench.replica.sent] == [True, True]


def test_the_answer_of_a_former_life_counts_for_nothing() -> None:
    bench = Bench()
    bench.up()
    bench.snapshot()
    bench.replica.state(False)
    bench.replica.state(True)
    bench.replica.answer()
    assert bench.applied == []
    assert not bench.publisher.applied("replica")
