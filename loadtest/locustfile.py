"""Produce and consume users for locust, over librdkafka, against any Kafka cluster.

    locust -f loadtest/locustfile.py --host 127.0.0.1:9092,127.0.0.1:9093,127.0.0.1:9094

opens locust's page; `make loadtest` runs it without one on a cluster of its own. One request
of the statistics is a burst of records until the last one is acknowledged, or one read of
what a consumer was sent. Megabytes a second are printed at the end, shown at `/throughput`
and written beside the CSV files.
"""

from __future__ import annotations

import csv
import time
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import gevent
from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from locust import User, constant, events, task
from locust.env import Environment

_TIMEOUT_S = 30.0

T = TypeVar("T")


def _arguments(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("Kafka", "--host is the list of bootstrap servers")
    group.add_argument("--topic", default="loadtest", help="made when it is not there")
    group.add_argument("--partitions", type=int, default=6, help="of a topic that is made")
    group.add_argument("--record-bytes", type=int, default=1000, help="size of a record's value")
    group.add_argument("--burst", type=int, default=100, help="records a produce request")


def _make_topic(environment: Environment, **_: Any) -> None:
    options = _options(environment)
    admin = AdminClient({"bootstrap.servers": _bootstrap(environment)})
    if options.topic in _blocking(lambda: admin.list_topics(timeout=_TIMEOUT_S)).topics:
        return
    new = NewTopic(options.topic, options.partitions)
    _blocking(lambda: admin.create_topics([new])[options.topic].result(_TIMEOUT_S))


class ProduceUser(User):
    """Sends bursts of records with acks=all, each when the one before is acknowledged."""

    wait_time = constant(0)
    weight = 1

    def on_start(self) -> None:
        options = _options(self.environment)
        self._topic = options.topic
        self._value = bytes(options.record_bytes)
        self._burst = options.burst
        self._producer = Producer(
            {"bootstrap.servers": _bootstrap(self.environment), "acks": "all", "linger.ms": 5}
        )

    @task
    def produce(self) -> None:
        failures: list[Exception] = []

        def delivered(error: Any, _message: Message) -> None:
            if error is not None:
                failures.append(KafkaException(error))

        def send() -> None:
            for _ in range(self._burst):
                self._producer.produce(self._topic, self._value, on_delivery=delivered)
            if self._producer.flush(_TIMEOUT_S):
                failures.append(TimeoutError(f"not acknowledged within {_TIMEOUT_S:.0f} s"))

        begun = time.perf_counter()
        _blocking(send)
        _report(
            self,
            f"produce {self._burst} x {len(self._value)} B",
            begun,
            self._burst * len(self._value),
            failures[0] if failures else None,
        )


class ConsumeUser(User):
    """Reads every partition from its end on, as records come."""

    wait_time = constant(0)
    weight = 1
    _most: ClassVar[int] = 500

    def on_start(self) -> None:
        topic = _options(self.environment).topic
        self._consumer = Consumer(
            {
                "bootstrap.servers": _bootstrap(self.environment),
                "group.id": "loadtest",
                "enable.auto.commit": False,
                "auto.offset.reset": "latest",
            }
        )
        partitions = _blocking(lambda: _partitions(self._consumer, topic))
        self._consumer.assign([TopicPartition(topic, index, -1) for index in partitions])

    def on_stop(self) -> None:
        _blocking(self._consumer.close)

    @task
    def consume(self) -> None:
        begun = time.perf_counter()
        messages = _blocking(lambda: self._consumer.consume(self._most, timeout=0.2))
        if not messages:
            return
        failure = next((m.error() for m in messages if m.error() is not None), None)
        size = sum(len(m) for m in messages)
        error = None if failure is None else KafkaException(failure)
        _report(self, f"consume up to {self._most}", begun, size, error)


def _partitions(consumer: Consumer, topic: str) -> list[int]:
    """Of a topic that was just made: a broker hears of it a moment later than the first one."""
    deadline = time.monotonic() + _TIMEOUT_S
    while not (found := consumer.list_topics(topic, timeout=_TIMEOUT_S).topics[topic].partitions):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{topic} has no partitions after {_TIMEOUT_S:.0f} s")
        time.sleep(0.05)
    return list(found)


def _report(user: User, name: str, begun: float, size: int, error: Exception | None) -> None:
    user.environment.events.request.fire(
        request_type="kafka",
        name=name,
        response_time=(time.perf_counter() - begun) * 1000,
        response_length=size,
        exception=error,
        context=user.context(),
    )


def _options(environment: Environment) -> Any:
    assert environment.parsed_options is not None
    return environment.parsed_options


def _bootstrap(environment: Environment) -> str:
    host = environment.host or ""
    if not host:
        raise SystemExit("--host is missing: the list of bootstrap servers, HOST:PORT,...")
    return host.removeprefix("http://")


def _blocking(call: Callable[[], T]) -> T:
    """On a thread of its own: librdkafka waits in C, and would hold up every other user."""
    result: T = gevent.get_hub().threadpool.apply(call)
    return result


def throughput(environment: Environment) -> list[tuple[str, float]]:
    """(name, MB/s) since the load began."""
    total = environment.stats.total
    begun, last = total.start_time, total.last_request_timestamp
    seconds = (last - begun) if last else 0.0
    if seconds <= 0:
        return []
    return [
        (entry.name, entry.total_content_length / seconds / 1e6)
        for entry in environment.stats.entries.values()
    ]


def _page(environment: Environment, **_: Any) -> None:
    if environment.web_ui is not None and environment.web_ui.app is not None:
        environment.web_ui.app.add_url_rule(
            "/throughput", "throughput", lambda: dict(throughput(environment))
        )


def _say_throughput(environment: Environment, **_: Any) -> None:
    rows = throughput(environment)
    for name, rate in rows:
        print(f"{name}: {rate:.1f} MB/s")  # noqa: T201
    prefix = _options(environment).csv_prefix
    if prefix:
        with Path(f"{prefix}_throughput.csv").open("w", newline="") as file:
            csv.writer(file).writerows([("name", "MB/s"), *rows])


_listen: Any = events
_listen.init_command_line_parser.add_listener(_arguments)
_listen.test_start.add_listener(_make_topic)
_listen.init.add_listener(_page)
_listen.quitting.add_listener(_say_throughput)
