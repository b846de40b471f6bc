"""`make versus`: Mobula and Apache Kafka under the same loads, in turns.

Kafka is warmed up until its figures stop rising; then every load runs on one side and
directly afterwards on the other, round after round.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import geometric_mean

from confluent_kafka import KafkaException, Message, Producer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from mobula.cluster.options import LaunchError
from mobula.loadtest.jobs import Failed
from mobula.loadtest.kafka_jars import KAFKA_VERSION, NoKafkaError, kafka_jars
from mobula.loadtest.loads import CONSUME_LOADS, LATENCY_LOADS, PRODUCE_LOADS, Figure, Load
from mobula.loadtest.measured import KAFKA, OURS, Measured, begin, kafka_beside
from mobula.loadtest.report import chart, print_table
from mobula.loadtest.sides import Side, kafka_side, our_side

_IDLE_TOPICS, _IDLE_PARTITIONS = 20, 100
_STILL_RISING = 1.05
_REST_S = 5.0
_START = Figure("start", "start to first record", "s")
_MEMORY = Figure("memory", "memory at rest (USS)", "MB")
_CREATE = Figure("create", "create 2,000 partitions, RF 3", "s")

_EVERYTHING = (*PRODUCE_LOADS, *CONSUME_LOADS, *LATENCY_LOADS)

_VARIANTS = {
    "ray": ("links by Ray calls", {"link.transport": "ray"}),
    "bytes": (
        "brokers as if on nodes of their own",
        {"link.transport": "ray-between-brokers", "replica.pull.ranges": "never"},
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    rounds: int
    seconds: float
    starts: int
    warm_rounds: tuple[int, int]
    """Of Kafka: at least and at most."""
    idle_partitions: bool
    variants: bool


FULL = Plan(
    rounds=5,
    seconds=3.0,
    starts=3,
    warm_rounds=(8, 14),
    idle_partitions=True,
    variants=True,
)
QUICK = Plan(
    rounds=1,
    seconds=1.0,
    starts=1,
    warm_rounds=(2, 2),
    idle_partitions=False,
    variants=False,
)


class Comparison:
    def __init__(self, plan: Plan, jars: Path | None, progress: Progress, out: Path | None) -> None:
        """`out` gets the figures round by round in a file beside the last run's, whose place
        it takes with `finish`."""
        self._plan = plan
        self._out = out
        self._jars = jars
        self._progress = progress
        self._task = progress.add_task("", total=None)
        titles = {OURS: "Mobula"}
        if jars is not None:
            titles[KAFKA] = "Apache Kafka"
        if plan.variants:
            titles |= {name: title for name, (title, _) in _VARIANTS.items()}
        self.measured: Measured = begin(titles, plan.rounds, KAFKA_VERSION if jars else None)

    def run(self) -> None:
        """Never more than two clusters at once: idle ones take time from those that are
        measured."""
        self._starts()
        with ExitStack() as stack:
            kafka = None
            if self._jars is not None:
                kafka = stack.enter_context(_running(self._side(KAFKA)))
                self._warm_up(kafka, *self._plan.warm_rounds)
            if self._plan.variants:
                for name in _VARIANTS:
                    with _running(self._side(name)) as variant:
                        self._warm_up(variant)
                        self._rounds({name: variant} | _beside(name, kafka), _EVERYTHING)
            ours = stack.enter_context(_running(self._side(OURS)))
            self._warm_up(ours)
            sides = {OURS: ours} | _beside(OURS, kafka)
            self._rounds(sides, _EVERYTHING)
            self._memory(sides)
            if self._plan.idle_partitions:
                self._create_idle_partitions(sides)
                loads = (*PRODUCE_LOADS, *LATENCY_LOADS)
                self._rounds(sides, loads, "idle.", "beside 2,000 partitions: ")

    def _side(self, name: str) -> Side:
        if name == KAFKA:
            assert self._jars is not None
            return kafka_side(self._jars)
        settings = _VARIANTS[name][1] if name in _VARIANTS else {}
        return our_side(name, self.measured.sides[name], settings)

    def _starts(self) -> None:
        """From the command to the first acknowledged record, nothing else running."""
        names = [name for name in (OURS, KAFKA) if name in self.measured.sides]
        for index in range(self._plan.starts):
            for name in names if index % 2 == 0 else reversed(names):
                self._say(f"start {index + 1} of {name}")
                side = self._side(name)
                begun = time.monotonic()
                with _running(side):
                    _first_record(side)
                    taken = time.monotonic() - begun
                self.measured.add(name, _START, taken)

    def _warm_up(self, side: Side, least: int = 1, most: int = 1) -> None:
        """Only Kafka has a compiler that learns, and is given the time for it."""
        best = 0.0
        for index in range(most):
            self._say(f"warming up {side.title}, round {index + 1}")
            rates = [
                load.run(side, self._plan.seconds)[load.name]
                for load in (*PRODUCE_LOADS, *CONSUME_LOADS)
            ]
            for load in LATENCY_LOADS:
                load.run(side, self._plan.seconds)
            mean = geometric_mean(rates)
            if index + 1 >= least and mean < best * _STILL_RISING:
                break
            best = max(best, mean)

    def _rounds(
        self, sides: Mapping[str, Side], loads: Sequence[Load], prefix: str = "", title: str = ""
    ) -> None:
        """`sides` by the names that their values go under."""
        self._progress.update(
            self._task, total=self._plan.rounds * len(loads) * len(sides), completed=0
        )
        names = list(sides)
        for index in range(self._plan.rounds):
            for load in loads:
                first = index % len(names)
                for name in (*names[first:], *names[:first]):
                    side = sides[name]
                    self._say(f"round {index + 1}: {title}{load.title} on {side.title}")
                    values = load.run(side, self._plan.seconds)
                    for figure in load.figures:
                        named = replace(
                            figure, name=prefix + figure.name, title=title + figure.title
                        )
                        self.measured.add(name, named, values[figure.name])
                    self._progress.advance(self._task)
            self.save()

    def _memory(self, sides: Mapping[str, Side]) -> None:
        self._say("memory at rest")
        time.sleep(_REST_S)
        for name, side in sides.items():
            self.measured.add(name, _MEMORY, side.uss_mb())

    def _create_idle_partitions(self, sides: Mapping[str, Side]) -> None:
        for name, side in sides.items():
            self._say(f"creating 2,000 partitions on {side.title}")
            begun = time.monotonic()
            for index in range(_IDLE_TOPICS):
                side.create_topic(f"idle-{index}", _IDLE_PARTITIONS)
            self.measured.add(name, _CREATE, time.monotonic() - begun)

    def save(self) -> Path | None:
        """What is measured so far; where it is written."""
        if self._out is None:
            return None
        path = self._out / "versus.json.partial"
        self.measured.write(path)
        return path

    def finish(self) -> None:
        """After a whole run: its figures replace those of the last one."""
        partial = self.save()
        if partial is not None:
            partial.replace(partial.with_suffix(""))

    def _say(self, what: str) -> None:
        self._progress.update(self._task, description=what)
        if not self._progress.console.is_terminal:
            self._progress.console.print(what)


@contextmanager
def _running(side: Side) -> Iterator[Side]:
    try:
        side.start()
        yield side
    finally:
        side.stop()


def _beside(name: str, kafka: Side | None) -> dict[str, Side]:
    """Apache Kafka, in turns with the side of that name."""
    return {} if kafka is None else {kafka_beside(name): kafka}


def _first_record(side: Side) -> None:
    side.create_topic("first", 1)

    def delivered(error: object, _message: Message) -> None:
        if error is not None:
            raise Failed(f"{side.title} did not take a first record: {error}")

    producer = Producer({"bootstrap.servers": side.bootstrap, "acks": "all", "log_level": 2})
    producer.produce("first", b"record", on_delivery=delivered)
    if producer.flush(60):
        raise Failed(f"{side.title} did not take a first record")


def _kafka_that_runs() -> Path:
    """The jars, once Java has formatted nodes with them: one that is too old cannot."""
    jars = kafka_jars()
    kafka_side(jars).stop()
    return jars


def main() -> int:
    parser = argparse.ArgumentParser(prog="make versus", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one short round, under 3 minutes")
    parser.add_argument("--rounds", type=int, help="instead of five")
    parser.add_argument("--no-variants", action="store_true", help="only Mobula and Apache Kafka")
    parser.add_argument(
        "--out", type=Path, help="a folder that exists, for versus.json and versus.png"
    )
    arguments = parser.parse_args()
    console = Console()
    plan = QUICK if arguments.quick else FULL
    if arguments.rounds is not None:
        plan = replace(plan, rounds=arguments.rounds)
    if arguments.no_variants:
        plan = replace(plan, variants=False)
    try:
        jars: Path | None = _kafka_that_runs()
    except NoKafkaError as error:
        console.print(f"Apache Kafka cannot run here: {error}. Mobula runs alone.")
        jars = None
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
               TimeElapsedColumn())  # fmt: skip
    with Progress(*columns, console=console) as progress:
        comparison = Comparison(plan, jars, progress, arguments.out)
        try:
            comparison.run()
        except LaunchError as error:
            console.print(f"Mobula cannot start: {error}.")
            return 1
        except (Failed, KafkaException, NoKafkaError) as error:
            console.print(f"A load failed: {error}")
            return 1
        except KeyboardInterrupt:
            return 130
    measured = comparison.measured
    print_table(measured, console)
    if arguments.quick:
        console.print("One short round, Kafka hardly warm: for a look. `make versus` compares.")
    if arguments.out is not None:
        comparison.finish()
        if jars is not None:
            chart(measured, arguments.out / "versus.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
