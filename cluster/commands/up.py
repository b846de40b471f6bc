"""`mobula up` and `mobula down`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mobula.cluster.commands.arguments import Name
from mobula.cluster.options import (
    DEFAULT_BROKERS,
    DEFAULT_NAME,
    DEFAULT_PORT,
    UpOptions,
    UsageError,
    default_data_dir,
)


def register(app: typer.Typer) -> None:
    app.command()(up)
    app.command()(down)


def up(
    *,
    brokers: Annotated[int, typer.Option("-n", "--brokers", help="How many brokers.")] = (
        DEFAULT_BROKERS
    ),
    port: Annotated[
        int, typer.Option(metavar="PORT", help="Of the first broker; broker i has PORT + i.")
    ] = DEFAULT_PORT,
    data_dir: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where the data stays. Default: one a user and name."),
    ] = None,
    name: Name = DEFAULT_NAME,
    address: Annotated[
        str | None,
        typer.Option(metavar="RAY_ADDRESS", help="Use a Ray cluster that runs already."),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A .properties file with Kafka's broker keys."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="One key; wins over the file. Repeat it."),
    ] = None,
    detach: Annotated[
        bool, typer.Option("-d", "--detach", help="Return when it is ready, leave it running.")
    ] = False,
) -> int:
    """Start a cluster; Ctrl-C stops it. Data stays, and the next start serves it."""
    from mobula.actors.config.properties import load_settings

    if data_dir == Path():
        raise UsageError("--data-dir is empty, or the current folder; name one of its own")
    options = UpOptions(
        brokers=brokers,
        port=port,
        data_dir=data_dir.absolute() if data_dir is not None else default_data_dir(name),
        name=name,
        address=address,
        settings=load_settings(config, settings or ()),
        detach=detach,
    )
    from mobula.cluster.launch import up_detached, up_foreground

    return up_detached(options) if detach else up_foreground(options)


def down(name: Name = DEFAULT_NAME) -> None:
    """Stop a cluster cleanly."""
    from mobula.cluster.launch import down as stop

    stop(name)
    typer.echo(f"cluster {name} is down")
