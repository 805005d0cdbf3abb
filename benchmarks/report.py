"""One table and one picture of all results found in a folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from agentic_gym.files import read_json, write_text

__all__ = ["write_report"]

Row = dict[str, Any]


def write_report(folder: Path) -> Table:
    """Collect every ``results.json`` below ``folder`` into ``report.md`` and ``accuracy_against_calls.png``.

    Returns the table for a terminal. The picture is left out where matplotlib is not installed.
    """
    found = sorted(folder.glob("*/*/results.json"))
    results = [read_json(path, "file of results", fix="delete it and run the benchmark again") for path in found]
    rows: list[Row] = [
        {"policy": r["config"]["label"], "method": r["config"]["method"], "track": name, **track}
        for r in results
        for name, track in r["tracks"].items()
    ]
    columns = ("policy", "method", "track", "tasks", "accuracy %", "calls", "turns", "tokens", "ill-formed %", "masked")
    table = Table(*columns, title="Pass@1 on the tasks played")
    lines = ["| " + " | ".join((*columns, "tasks sha256")) + " |", "|" + " --- |" * (len(columns) + 1)]
    for row in rows:
        cells = _cells(row)
        table.add_row(*map(Text, cells))
        lines.append("| " + " | ".join(_in_markdown(cell) for cell in (*cells, row["sha256"][:12])) + " |")
    left_out = {name: reason for r in results for name, reason in r["left_out"].items()}
    lines += ["", *(f"Left out: {name}: {reason}" for name, reason in left_out.items())]
    if _picture(folder / "accuracy_against_calls.png", rows):
        lines += ["", "![accuracy against calls](accuracy_against_calls.png)"]
    write_text(folder / "report.md", "# Benchmark\n\n" + "\n".join(lines) + "\n")
    return table


def _cells(row: Row) -> list[str]:
    return [
        row["policy"],
        row["method"],
        row["track"],
        str(row["tasks"]),
        _number(row["success"], ".1%"),
        _number(row["calls"], ".2f"),
        _number(row["turns"], ".2f"),
        _number(row["tokens"], ".0f"),
        _number(row["ill_formed"], ".1%"),
        str(row["masked"]),
    ]


def _number(value: float | None, form: str) -> str:
    """A figure; a dash where no episode counts (all were lost to infrastructure)."""
    return "-" if value is None else format(value, form).removesuffix("%")


def _in_markdown(cell: str) -> str:
    return " ".join(cell.split()).replace("|", "\\|")


def _picture(path: Path, rows: Sequence[Row]) -> bool:
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = [row for row in rows if row["success"] is not None]
    figure, axis = pyplot.subplots(figsize=(6, 4.5))
    for number, (policy, method) in enumerate(sorted({(r["policy"], r["method"]) for r in rows})):
        colour = f"C{number}"
        mine = [r for r in rows if (r["policy"], r["method"]) == (policy, method)]
        axis.scatter(
            [r["calls"] for r in mine], [100 * r["success"] for r in mine], color=colour, label=f"{policy}, {method}"
        )
        for r in mine:
            axis.annotate(
                r["track"], (r["calls"], 100 * r["success"]), fontsize=7, xytext=(3, 3), textcoords="offset points"
            )
    axis.set_xlabel("tool calls an episode")
    axis.set_ylabel("accuracy %")
    axis.grid(alpha=0.25)
    if rows:
        axis.legend(fontsize=7, frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
    return True
