"""The loads of the comparison, each from topic to figures.

A figure is (name, unit); higher is better for rates, lower for all others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from statistics import quantiles

from mobula.loadtest.clients import end_offsets, run_clients
from mobula.loadtest.jobs import Consume, Done, Failed, Job, OneAtATime, Paced, Produce, Receive
from mobula.loadtest.sides import Side

PARTITIONS = 6
_FILL_BYTES_A_SECOND = 1_000_000_000 / 3
_FILL_TIMEOUT_S = 120.0
_topics = count(1)


@dataclass(frozen=True, slots=True)
class Figure:
    name: str
    title: str
    unit: str
    rate: bool = False
    """Higher is better."""


@dataclass(frozen=True, slots=True)
class Load:
    name: str
    title: str
    run: Callable[[Side, float], dict[str, float]]
    """(side, seconds) to values, by the names of the figures."""
    figures: tuple[Figure, ...]


@dataclass(slots=True)
class _Cpu:
    side: Side
    before: float = 0.0
    spent: float = field(default=0.0)

    def begin(self) -> None:
        self.before = self.side.cpu_s()

    def end(self) -> None:
        self.spent = self.side.cpu_s() - self.before


@contextmanager
def _topic(side: Side) -> Iterator[str]:
    name = f"load-{next(_topics)}"
    side.create_topic(name, PARTITIONS)
    try:
        yield name
    finally:
        side.delete_topic(name)


def _clients(side: Side, jobs: Sequence[Job]) -> tuple[list[Done], float]:
    cpu = _Cpu(side)
    done = run_clients(jobs, cpu.begin, cpu.end)
    return done, cpu.spent


def _produce(
    name: str,
    title: str,
    *,
    unit: str,
    record_bytes: int,
    producers: int = 1,
    settings: dict[str, str],
) -> Load:
    """As fast as it goes. Every record must be in the log afterwards."""
    megabytes = unit == "MB/s"

    def run(side: Side, seconds: float) -> dict[str, float]:
        with _topic(side) as topic:
            job = Produce(side.bootstrap, topic, record_bytes, producers, seconds, settings)
            (done,), cpu_s = _clients(side, [job])
            there = sum(end_offsets(side.bootstrap, topic, PARTITIONS).values())
            # Each producer also says hello to each partition.
            sent = done.records + producers * PARTITIONS
            if there < sent:
                raise Failed(f"{sent} records were sent, {there} are in the log")
        rate = done.bytes / 1e6 if megabytes else done.records
        return {
            name: rate / done.seconds,
            f"{name}.cpu": cpu_s / (done.bytes / 1e9 if megabytes else done.records / 1000),
        }

    cpu = Figure(f"{name}.cpu", f"CPU, {title}", "s/GB" if megabytes else "s/1,000")
    return Load(name, title, run, (Figure(name, title, unit, rate=True), cpu))


def _consume(name: str, title: str, consumers: int) -> Load:
    def run(side: Side, seconds: float) -> dict[str, float]:
        with _topic(side) as topic:
            _fill(side, topic, int(seconds * _FILL_BYTES_A_SECOND))
            ends = end_offsets(side.bootstrap, topic, PARTITIONS)
            jobs = [
                Consume(
                    side.bootstrap,
                    topic,
                    {p: end for p, end in ends.items() if p % consumers == index},
                )
                for index in range(consumers)
            ]
            done, cpu_s = _clients(side, jobs)
        gigabytes = sum(each.bytes for each in done) / 1e9
        slowest = max(each.seconds for each in done)
        return {name: gigabytes * 1000 / slowest, f"{name}.cpu": cpu_s / gigabytes}

    cpu = Figure(f"{name}.cpu", f"CPU, {title}", "s/GB")
    return Load(name, title, run, (Figure(name, title, "MB/s", rate=True), cpu))


def _fill(side: Side, topic: str, size: int) -> None:
    """The same on every side: a reader of more is faster only for having begun once."""
    settings = {"linger.ms": "20"}
    job = Produce(side.bootstrap, topic, 1000, 1, _FILL_TIMEOUT_S, settings, most_bytes=size)
    (done,) = run_clients([job], lambda: None, lambda: None)
    if done.bytes < size:
        raise Failed(f"{side.title} took {done.bytes} of {size} bytes in {_FILL_TIMEOUT_S:.0f} s")


def _end_to_end(name: str, title: str, a_second: int) -> Load:
    def run(side: Side, seconds: float) -> dict[str, float]:
        with _topic(side) as topic:
            records = int(a_second * seconds)
            done, cpu_s = _clients(
                side,
                [
                    Receive(side.bootstrap, topic, PARTITIONS, records, seconds + 60),
                    Paced(side.bootstrap, topic, 1000, a_second, seconds),
                ],
            )
        return _percentiles(name, done[0].latencies_ms) | {f"{name}.cpu": cpu_s / records * 1000}

    return Load(name, title, run, _latency_figures(name, title))


def _one_at_a_time(name: str, title: str) -> Load:
    def run(side: Side, seconds: float) -> dict[str, float]:
        with _topic(side) as topic:
            (done,), cpu_s = _clients(side, [OneAtATime(side.bootstrap, topic, 100, seconds)])
        return _percentiles(name, done.latencies_ms) | {f"{name}.cpu": cpu_s / done.records * 1000}

    return Load(name, title, run, _latency_figures(name, title))


def _percentiles(name: str, latencies_ms: list[float]) -> dict[str, float]:
    cuts = quantiles(latencies_ms, n=100)
    return {f"{name}.p50": cuts[49], f"{name}.p99": cuts[98]}


def _latency_figures(name: str, title: str) -> tuple[Figure, ...]:
    return (
        Figure(f"{name}.p50", f"{title}, p50", "ms"),
        Figure(f"{name}.p99", f"{title}, p99", "ms"),
        Figure(f"{name}.cpu", f"CPU, {title}", "s/1,000"),
    )


_BATCHED = {"linger.ms": "5", "queue.buffering.max.kbytes": "16384"}
"""A small queue, so that what is sent last does not take long to flush where a cluster is slow."""
_SINGLE = {"linger.ms": "0", "batch.num.messages": "1"}

PRODUCE_LOADS = (
    _produce(
        "linger", "produce 1 KB, linger 5 ms", unit="MB/s", record_bytes=1000, settings=_BATCHED
    ),
    _produce(
        "batches",
        "produce 1 KB, 16 KB batches",
        unit="MB/s",
        record_bytes=1000,
        settings={**_BATCHED, "batch.size": "16384"},
    ),
    _produce("small", "produce 100 B", unit="MB/s", record_bytes=100, settings=_BATCHED),
    _produce(
        "single",
        "one record a request, 1 producer",
        unit="requests/s",
        record_bytes=100,
        settings={**_SINGLE, "queue.buffering.max.messages": "1000"},
    ),
    _produce(
        "single16",
        "one record a request, 16 producers",
        unit="requests/s",
        record_bytes=100,
        producers=16,
        settings={**_SINGLE, "queue.buffering.max.messages": "100"},
    ),
)
CONSUME_LOADS = (
    _consume("consume1", "catch-up consume, 1 consumer", 1),
    _consume("consume4", "catch-up consume, 4 consumers", 4),
)
LATENCY_LOADS = (
    _end_to_end("end_to_end", "end to end at 1,000 records/s", 1000),
    _one_at_a_time("one", "one at a time"),
)
