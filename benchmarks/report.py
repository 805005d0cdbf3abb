"""One table and one picture of all results found in a folder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

__all__ = ["write_report"]

Row = dict[str, Any]


def write_report(folder: Path) -> Table:
    """Collect every ``results.json`` below ``folder`` into ``report.md`` and ``accuracy_against_calls.png``.

    Returns the table for a terminal. The picture is left out where matplotlib is not installed.
    """
    results = [json.loads(path.read_text()) for path in sorted(folder.glob("*/*/results.json"))]
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
        table.add_row(*cells)
        lines.append("| " + " | ".join((*cells, row["sha256"][:12])) + " |")
    left_out = {name: reason for r in results for name, reason in r["left_out"].items()}
    lines += ["", *(f"Left out: {name}: {reason}" for name, reason in left_out.items())]
    if _picture(folder / "accuracy_against_calls.png", rows):
        lines += ["", "![accuracy against calls](accuracy_against_calls.png)"]
    (folder / "report.md").write_text("# Benchmark\n\n" + "\n".join(lines) + "\n")
    return table


def _cells(row: Row) -> list[str]:
    return [
        row["policy"],
        row["method"],
        row["track"],
        str(row["tasks"]),
        f"{100 * row['success']:.1f}",
        f"{row['calls']:.2f}",
        f"{row['turns']:.2f}",
        f"{row['tokens']:.0f}",
        f"{100 * row['ill_formed']:.1f}",
        str(row["masked"]),
    ]


def _picture(path: Path, rows: Sequence[Row]) -> bool:
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("Agg")
    from matplotlib import pyplot

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
    axis.legend(fontsize=7, frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
    return True
