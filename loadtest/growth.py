"""`make growth`: what Mobula costs as partitions, connections and brokers grow.

Each row is one cluster of ours under the same three loads. Its figures feed the page on
performance; `make versus` is the comparison with Apache Kafka.
"""

from __future__ import annotations

import argparse
import resource
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from statistics import median

from rich.console import Console

from mobula.loadtest.loads import LATENCY_LOADS, PRODUCE_LOADS, Load
from mobula.loadtest.sides import Side, our_side

_LOADS = {load.name: load for load in (*PRODUCE_LOADS, *LATENCY_LOADS)}
_COLUMNS: dict[str, tuple[str, float]] = {
    "linger": ("1 KB, linger 5 ms (MB/s)", 1),
    "single": ("one record a request (requests/s)", 1),
    "single.cpu": ("CPU a request (us)", 1000),
    "one.p50": ("one at a time, p50 (ms)", 1),
}
"""By the name of the figure: its title here, and what to multiply it by."""
_IDLE_TOPIC_PARTITIONS = 100
_REST_S = 5.0
_OTHER_FILES = 200
"""What this process opens beside its idle connections, amply."""


@contextmanager
def _cluster(brokers: int = 3) -> Iterator[Side]:
    side = our_side("ours", "Mobula", {}, brokers)
    side.start()
    try:
        yield side
    finally:
        side.stop()


def partitions(counts: Sequence[int], row: Callable[[str, Side], None]) -> None:
    """On one cluster, which gets more and more of them."""
    with _cluster() as side:
        there = 0
        for count in counts:
            while there < count:
                side.create_topic(f"idle-{there}", _IDLE_TOPIC_PARTITIONS)
                there += _IDLE_TOPIC_PARTITIONS
            row(f"{count:,} idle partitions", side)


def connections(
    counts: Sequence[int], row: Callable[[str, Side], None], skipped: Callable[[str], None]
) -> None:
    """Rows that do not fit this process's open files are told to `skipped`."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    fitting = [count for count in counts if count + _OTHER_FILES <= most]
    with _cluster() as side, ExitStack() as stack:
        addresses = [address.rsplit(":", 1) for address in side.bootstrap.split(",")]
        there = 0
        for count in fitting:
            for index in range(there, count):
                host, port = addresses[index % len(addresses)]
                stack.enter_context(socket.create_connection((host, int(port)), timeout=10))
            there = count
            row(f"{count:,} idle connections", side)
    for count in counts[len(fitting) :]:
        skipped(f"{count:,} idle connections: skipped, a process may open {most:,} files here")


def brokers(counts: Sequence[int], row: Callable[[str, Side], None]) -> None:
    for count in counts:
        with _cluster(count) as side:
            row(f"{count} brokers", side)


class Growth:
    def __init__(self, console: Console, rounds: int, seconds: float) -> None:
        self._console = console
        self._rounds = rounds
        self._seconds = seconds

    def head(self) -> None:
        titles = ["", *(title for title, _ in _COLUMNS.values()), "CPU idle (%)", "memory (MB)"]
        self._line(titles)
        self._line(["---"] * len(titles))

    def row(self, title: str, side: Side) -> None:
        values = self._loads(side)
        time.sleep(_REST_S)
        before, begun = side.cpu_s(), time.monotonic()
        time.sleep(_REST_S)
        idle = (side.cpu_s() - before) / (time.monotonic() - begun) * 100
        cells = [values[name] * factor for name, (_, factor) in _COLUMNS.items()]
        self._line([title, *(f"{cell:,.3g}" for cell in [*cells, idle]), f"{side.uss_mb():,.0f}"])

    def skipped(self, why: str) -> None:
        self._console.print(why, soft_wrap=True, markup=False)

    def _loads(self, side: Side) -> dict[str, float]:
        names = {name.partition(".")[0] for name in _COLUMNS}
        loads: list[Load] = [_LOADS[name] for name in sorted(names)]
        seen: dict[str, list[float]] = {}
        for _ in range(self._rounds):
            for load in loads:
                for name, value in load.run(side, self._seconds).items():
                    seen.setdefault(name, []).append(value)
        return {name: median(values) for name, values in seen.items()}

    def _line(self, cells: list[str]) -> None:
        self._console.print(f"| {' | '.join(cells)} |", soft_wrap=True, markup=False)


def _allow_many_files() -> None:
    """To this process, and to the brokers that it starts."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # A system may refuse what it calls unlimited: then rows are skipped.
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def main() -> int:
    parser = argparse.ArgumentParser(prog="make growth", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="medians of so many")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each load")
    arguments = parser.parse_args()
    growth = Growth(Console(), arguments.rounds, arguments.seconds)
    _allow_many_files()
    growth.head()
    partitions((0, 500, 2000, 4000), growth.row)
    connections((0, 1000, 3000), growth.row, growth.skipped)
    brokers((3, 4, 6), growth.row)
    return 0


if __name__ == "__main__":
    sys.exit(main())
