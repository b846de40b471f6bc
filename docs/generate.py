"""Writes the pages of docs/ that are tables, and the tables inside others: `make docs`.

A test fails when a page is not what this gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from mobula.actors.config.definitions import BROKER_KEYS, TOPIC_KEYS
from mobula.actors.config.key import Key
from mobula.actors.gateway.forwarding_manager import Forwarded
from mobula.actors.gateway.kafka_apis import HANDLERS
from mobula.loadtest.kafka_jars import KAFKA_VERSION
from mobula.loadtest.measured import Measured
from mobula.loadtest.report import caption, markdown
from mobula.protocol.api import ApiKey
from tests.conformance.explained import Explained
from tests.conformance.table import Compared, compared

FOLDER = Path(__file__).parent
README = FOLDER.parent / "README.md"
VERSUS = FOLDER / "versus.json"
"""What `make versus ARGS='--out docs'` measured last."""


def pages() -> dict[str, str]:
    """Text by file name."""
    return {
        "apis.md": _apis(),
        "compatibility.md": _compatibility(),
        "configuration.md": _configuration(),
    }


def filled() -> dict[Path, str]:
    """Pages written by hand, with what is between their markers as it should be."""
    measured = Measured.read(VERSUS)
    texts = {
        README: {"compatibility": _summary(), "versus": f"{caption(measured)}.\n"},
        FOLDER / "performance.md": {"versus": f"{caption(measured)}.\n\n{markdown(measured)}"},
    }
    return {path: _fill(path.read_text(), parts) for path, parts in texts.items()}


def _fill(page: str, parts: Mapping[str, str]) -> str:
    for marker, text in parts.items():
        begin, end = f"<!-- {marker} -->\n", f"<!-- /{marker} -->\n"
        before, _, rest = page.partition(begin)
        _, _, after = rest.partition(end)
        page = before + begin + text + end + after
    return page


def _apis() -> str:
    rows = [
        (
            _title(handler.API.key),
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


def _compatibility() -> str:
    rows = compared()
    return "\n".join(
        [
            "# Compatibility",
            "",
            "Written by `make docs`. The scenarios of `tests/conformance/` are requests, good and",
            f"bad, in every version. What Apache Kafka {KAFKA_VERSION} answers is recorded",
            "(`make record-kafka`); `make test` asks our brokers the same and compares field by",
            "field. Only what must differ between two clusters (ids, addresses, times) is compared",
            "by what it stands for. Every other difference is listed here, or fails the tests.",
            "",
            "| API | versions | scenarios | exchanges compared | explained differences |",
            "|---|---|---|---|---|",
            *(
                f"| {_title(row.api)} | {_versions(row.versions)} | {row.scenarios} "
                f"| {row.exchanges} | {len(row.explained)} |"
                for row in rows
            ),
            f"| all | | {sum(row.scenarios for row in rows)} | {_exchanges(rows)} "
            f"| {_explained(rows)} |",
            "",
            "## Explained differences",
            "",
            *(line for row in rows if row.explained for line in _reasons(row)),
        ]
    )


def _reasons(row: Compared) -> Iterator[str]:
    yield f"### {_title(row.api)}"
    yield ""
    yield from (f"- {_where(line)}: {line.why}" for line in row.explained)
    yield ""


def _where(line: Explained) -> str:
    scenario = "" if line.scenario == "*" else f" of `{line.scenario}`"
    versions = "" if line.versions is None else f", version {_versions(line.versions)}"
    return ("all" if line.path == "*" else f"`{line.path}`") + scenario + versions


def _summary() -> str:
    rows = compared()
    return "\n".join(
        [
            f"{_exchanges(rows)} exchanges of raw requests, good and bad, are compared field by",
            f"field with what Apache Kafka {KAFKA_VERSION} answers; {_explained(rows)} differences",
            "have a reason ([docs/compatibility.md](docs/compatibility.md)).",
            "",
            "| API | versions | exchanges | explained differences |",
            "|---|---|---|---|",
            *(
                f"| {_title(row.api)} | {_versions(row.versions)} | {row.exchanges} "
                f"| {_cell(' '.join(dict.fromkeys(line.why for line in row.explained)))} |"
                for row in rows
            ),
            "",
        ]
    )


def _exchanges(rows: Iterable[Compared]) -> int:
    return sum(row.exchanges for row in rows)


def _explained(rows: Iterable[Compared]) -> int:
    return sum(len(row.explained) for row in rows)


def _title(api: ApiKey) -> str:
    return api.name.replace("_", " ").title().replace(" ", "")


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
    for path, text in filled().items():
        path.write_text(text)
