"""Options that several commands share, and how their values are read."""

from __future__ import annotations

from typing import Annotated

import typer

from mobula.cluster.options import UsageError

Name = Annotated[str, typer.Option(metavar="NAME", help="Of the cluster.")]
Bootstrap = Annotated[
    str | None,
    typer.Option(
        "-b", "--bootstrap", metavar="HOST:PORT,...", help="Brokers, instead of --name's."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Machine-readable, on stdout.")]


def help_without_command(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def pairs(texts: list[str] | None, option: str) -> list[tuple[str, str]]:
    """Each `KEY=VALUE` of an option that can be repeated."""
    found = []
    for text in texts or ():
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"{option} {text}: not of the form KEY=VALUE")
        found.append((key.strip(), value))
    return found
