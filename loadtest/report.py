"""The comparison for people: a table in the terminal or in Markdown, and a chart."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from rich.console import Console
from rich.table import Table

from mobula.loadtest.measured import KAFKA, OURS, Measured, Row


def table(measured: Measured) -> tuple[list[str], list[list[str]]]:
    """(head, rows) as text: medians with their spread, and ratios to Apache Kafka."""
    others = [side for side in measured.sides if side != KAFKA]
    with_kafka = KAFKA in measured.sides
    head = ["load", "unit"]
    head += [measured.sides[side] for side in measured.sides]
    if with_kafka:
        head += [f"{measured.sides[side]} / Kafka" for side in others]
    rows = []
    for row in measured.rows.values():
        cells = [row.title, row.unit, *(_cell(row, side) for side in measured.sides)]
        if with_kafka:
            cells += [_ratio(row.ratio(side)) for side in others]
        rows.append(cells)
    return head, rows


def print_table(measured: Measured, console: Console) -> None:
    head, rows = table(measured)
    shown = Table(title=caption(measured), caption="medians (lowest - highest)")
    for index, name in enumerate(head):
        shown.add_column(name, justify="left" if index == 0 else "right")
    for row in rows:
        shown.add_row(*row)
    console.print(shown)


def markdown(measured: Measured) -> str:
    head, rows = table(measured)
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def caption(measured: Measured) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in measured.versions.items())
    return f"{measured.date}, {measured.machine}; {versions}; {measured.rounds} rounds"


def chart(measured: Measured, path: Path) -> None:
    """How many times better than Apache Kafka each figure is."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    bars = [
        (row.title, ratio if row.rate else 1 / ratio)
        for row in measured.rows.values()
        if not row.name.endswith(".cpu") and (ratio := row.ratio(OURS))
    ]
    figure, axes = plt.subplots(figsize=(9, 0.34 * len(bars) + 1.4), layout="constrained")
    colors = ["#1f6f8b" if value >= 1 else "#c8553d" for _, value in bars]
    places = range(len(bars))
    axes.barh(places, [value - 1 for _, value in bars], left=1, color=colors)
    axes.set_yticks(places, [title for title, _ in bars])
    axes.invert_yaxis()
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}x")
    axes.axvline(1, color="black", linewidth=1)
    for place, (_, value) in zip(places, bars, strict=True):
        text = f"{value:,.0f}x" if value >= 10 else f"{value:.2g}x"
        axes.annotate(
            text, (max(value, 1), place), xytext=(3, 0), textcoords="offset points", va="center"
        )
    axes.margins(x=0.12, y=0.01)
    figure.suptitle("Mobula beside Apache Kafka: times better (right of 1x: Mobula)")
    figure.supxlabel(caption(measured), fontsize=7)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _cell(row: Row, side: str) -> str:
    middle, spread = row.median(side), row.spread(side)
    if middle is None or spread is None:
        return "-"
    return f"{_number(middle)} ({_number(spread[0])} - {_number(spread[1])})"


def _ratio(value: float | None) -> str:
    if value is None:
        return "-"
    # Two digits that say something, never as 3e-05.
    return f"{value:.2f}" if value >= 0.1 else f"{Decimal(f'{value:.2g}'):f}"


def _number(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.3g}"
