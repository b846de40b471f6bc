"""What a user sees when the cluster is up: where everything is, and lines to paste."""

from __future__ import annotations

from collections import Counter

from rich.console import Console

from mobula.cluster.options import DEFAULT_NAME, UpOptions
from mobula.cluster.topology import BrokerPlan, Plan

_console = Console(highlight=False, soft_wrap=True)


def announce(options: UpOptions, plan: Plan) -> None:
    rows = [("BROKER", "ADDRESS", "DATA", "ACTORS")]
    rows += [
        (
            str(broker.broker_id),
            f"{broker.endpoint.host}:{broker.endpoint.port}",
            str(broker.data_dir),
            _actors(broker),
        )
        for broker in plan.brokers
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        # Never shortened, whatever the terminal's width: an address is there to be copied.
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        _console.print("  ".join(cells).rstrip(), markup=False)
    _console.print()
    _pasteable(options.name, plan.bootstrap)
    ready_line(plan.bootstrap)


def ready_line(bootstrap: str) -> None:
    """The last line, for scripts: nothing before it means ready."""
    _console.print(f"READY bootstrap={bootstrap}", markup=False)


def stop_hint(name: str) -> None:
    _console.print(f"stop it with: mobula down{_name_option(name)}", markup=False)


def _name_option(name: str) -> str:
    return "" if name == DEFAULT_NAME else f" --name {name}"


def _actors(broker: BrokerPlan) -> str:
    counts = Counter(spec.kind for spec in broker.actors)
    return ", ".join(
        f"{count} {kind}" if count > 1 else kind for kind, count in sorted(counts.items())
    )


def _pasteable(name: str, bootstrap: str) -> None:
    first = bootstrap.split(",", maxsplit=1)[0]
    lines = (
        f"kcat:    echo hello | kcat -b {first} -t greetings -P",
        f"         kcat -b {first} -t greetings -C -e",
        f"Python:  from confluent_kafka import Producer; "
        f"p = Producer({{'bootstrap.servers': '{bootstrap}'}}); "
        "p.produce('greetings', b'hello'); p.flush()",
        f"Mobula:  mobula topic list{_name_option(name)}",
        "Ctrl-C stops it; the data stays.",
        "",
    )
    for line in lines:
        _console.print(line, markup=False)
