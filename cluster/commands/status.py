"""`mobula status`: one view of brokers, actors, links and partitions."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import typer

from mobula.cluster.commands.arguments import AsJson, Name
from mobula.cluster.commands.output import print_json
from mobula.cluster.document import StatusDocument
from mobula.cluster.options import DEFAULT_NAME

if TYPE_CHECKING:
    from rich.table import Table


def register(app: typer.Typer) -> None:
    app.command()(status)


def status(name: Name = DEFAULT_NAME, as_json: AsJson = False) -> None:
    """What runs, and whether it is well."""
    from mobula.cluster.launch import status as ask

    document = ask(name)
    if as_json:
        print_json(document)
    else:
        render(document)


def render(document: StatusDocument) -> None:
    from rich.console import Console
    from rich.markup import escape

    from mobula.cluster.health import judge

    console = Console(highlight=False, soft_wrap=True)
    health = judge(document)
    colour = "green" if health.well else "red"
    console.print(f"{escape(document['name'])}: [{colour}]{escape(health.sentence)}[/{colour}]")
    if health.next_command is not None:
        console.print(f"next: {health.next_command}", markup=False)
    console.print(f"bootstrap: {document['bootstrap']}", markup=False)
    console.print()

    brokers = _table("BROKER", "ADDRESS", "STATE", "DATA")
    for broker in document["brokers"]:
        brokers.add_row(
            str(broker["id"]),
            f"{broker['host']}:{broker['port']}",
            escape(broker["state"]),
            escape(broker.get("data_dir", "")),
        )
    console.print(brokers, crop=False)
    console.print()

    actors = _table("ACTOR", "STATE", "PID", "NODE", "RESTARTS")
    controller = document["controller"]
    listed = [actor for broker in document["brokers"] for actor in broker["actors"]]
    for actor in [*([controller] if controller is not None else []), *listed]:
        actors.add_row(
            escape(actor["name"]),
            escape(actor["state"]),
            str(actor["pid"]),
            actor["node"][:8],
            str(actor["restarts"]),
        )
    console.print(actors, crop=False)
    console.print()
    console.print(links_line(document), markup=False)
    console.print(partitions_line(document), markup=False)


def links_line(document: StatusDocument) -> str:
    counts = Counter(link["transport"] for link in document["links"])
    parts = ", ".join(f"{count} {transport}" for transport, count in sorted(counts.items()))
    return f"links: {parts or 'none'}"


def partitions_line(document: StatusDocument) -> str:
    partitions = document["partitions"]
    return (
        f"partitions: {partitions['total']}, {partitions['under_replicated']} under-replicated, "
        f"{partitions['offline']} offline"
    )


def _table(*columns: str) -> Table:
    from rich.table import Table

    made = Table(box=None, pad_edge=False)
    for column in columns:
        made.add_column(column, no_wrap=True)
    return made
