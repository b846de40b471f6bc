"""`mobula config explain`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from mobula.actors.config.definitions import BROKER_KEYS, TOPIC_KEYS, Key, Scope, unknown_key
from mobula.cluster.commands.arguments import AsJson, help_without_command
from mobula.cluster.commands.output import print_json

app = typer.Typer(
    help="What configuration keys mean.",
    invoke_without_command=True,
    callback=help_without_command,
)


@app.command()
def explain(key: Annotated[str, typer.Argument(metavar="KEY")], as_json: AsJson = False) -> None:
    """What a key does, its default, and why that differs from Kafka's where it does."""
    found = _find(key)
    if as_json:
        print_json([_document(definition) for definition in found])
        return
    for number, definition in enumerate(found):
        if number:
            typer.echo()
        _print(definition)


def _find(name: str) -> list[Key]:
    """Of brokers, of topics, or both: some keys are."""
    found = [table[name] for table in (BROKER_KEYS, TOPIC_KEYS) if name in table]
    if found:
        return found
    raise unknown_key(name, [*BROKER_KEYS, *TOPIC_KEYS])


def _print(key: Key) -> None:
    kind = f"{key.scope.value} key, {key.type.name.lower()}"
    typer.echo(f"{key.name} ({kind}{', ours' if key.ours else ''})")
    typer.echo(f"  {key.doc}")
    typer.echo(f"  default: {'unset' if key.default is None else key.default}")
    if key.why:
        typer.echo(f"  why: {key.why}")
    if key.checks:
        typer.echo(f"  must be: {' and '.join(check.wants for check in key.checks)}")
    if key.synonyms:
        names = ", then ".join(synonym.key for synonym in key.synonyms)
        typer.echo(f"  default for all topics: {names}")
    typer.echo(f"  {_when(key)}")


def _when(key: Key) -> str:
    if key.given_by:
        return f"cannot be set: {key.given_by}"
    if key.scope is Scope.TOPIC:
        return f"set it with: mobula topic config NAME --set {key.name}=VALUE"
    how = f"set it with: mobula up --set {key.name}=VALUE"
    return f"{how} (or while it runs, with a Kafka admin client)" if key.dynamic else how


def _document(key: Key) -> dict[str, Any]:
    return {
        "name": key.name,
        "scope": key.scope.value,
        "type": key.type.name.lower(),
        "default": key.default,
        "doc": key.doc,
        "why": key.why or None,
        "must_be": [check.wants for check in key.checks],
        "synonyms": [synonym.key for synonym in key.synonyms],
        "dynamic": key.dynamic,
        "ours": key.ours,
    }
