"""Writes the pages of docs/ that are tables of the code: `make docs`.

A test fails when a page is not what this gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from mobula.actors.config.definitions import BROKER_KEYS, TOPIC_KEYS
from mobula.actors.config.key import Key
from mobula.actors.gateway.forwarding_manager import Forwarded
from mobula.actors.gateway.kafka_apis import HANDLERS

FOLDER = Path(__file__).parent


def pages() -> dict[str, str]:
    """Text by file name."""
    return {"apis.md": _apis(), "configuration.md": _configuration()}


def _apis() -> str:
    rows = [
        (
            handler.API.key.name.replace("_", " ").title().replace(" ", ""),
            str(int(handler.API.key)),
            _versions(handler.API.versions),
            _versions(handler.API.served or handler.API.versions),
            "controller" if isinstance(handler, Forwarded) else "broker",
        )
        for handler in sorted(HANDLERS, key=lambda handler: handler.API.key)
    ]
    return "\n".join(
        [
            "# Supported APIs",
            "",
            "Written by `make docs` from the brokers' table of handlers, which is also what",
            "ApiVersions answers from. Requests that the controller answers can be sent to any",
            "broker.",
            "",
            "| API | key | advertised | served | answered by |",
            "|---|---|---|---|---|",
            *(f"| {' | '.join(row)} |" for row in rows),
            "",
        ]
    )


def _versions(versions: range) -> str:
    return f"{versions.start}-{versions.stop - 1}" if len(versions) > 1 else str(versions.start)


def _configuration() -> str:
    return "\n".join(
        [
            "# Configuration",
            "",
            "Written by `make docs`. Keys, meanings and defaults are Kafka's unless a key says",
            "why not; `mobula config explain KEY` prints the same.",
            "",
            "## Brokers",
            "",
            "For `mobula up --set KEY=VALUE` and `--config FILE.properties`.",
            "",
            *_table(BROKER_KEYS.values()),
            "",
            "## Topics",
            "",
            "For `mobula topic create -c KEY=VALUE` and `mobula topic config`.",
            "",
            *_table(TOPIC_KEYS.values()),
            "",
        ]
    )


def _table(keys: Iterable[Key]) -> Iterator[str]:
    yield "| key | default | |"
    yield "|---|---|---|"
    for key in sorted(keys, key=lambda key: key.name):
        default = "unset" if key.default is None else f"`{key.default}`" if key.default else "empty"
        about = key.doc + (f" *{key.why}*" if key.why else "")
        yield f"| `{key.name}`{' (ours)' if key.ours else ''} | {default} | {_cell(about)} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    for name, text in pages().items():
        (FOLDER / name).write_text(text)
