"""The quickstart's table and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

__all__ = ["write_report"]

ROWS = ("easy", "middle", "hard", "all")
COLOURS = {"before": "#8a8a8a", "grpo": "#c44e52", "eapo": "#2a7fba"}
_MORE = ("#55a868", "#8172b2", "#ccb974", "#64b5cd", "#937860", "#da8bc3")


def write_report(folder: Path, results: dict[str, Any], arms: Sequence[str]) -> Table:
    """Write ``report.md``, ``learning_curves.png`` and ``accuracy_against_calls.png``; returns the table for a terminal."""
    columns = ["before", *arms]
    table = Table(title="unseen problems, T = 0.6: accuracy % / tool calls (mean over seeds)")
    table.add_column("level")
    for column in columns:
        table.add_column(column.upper() if column != "before" else column, justify="right")
    lines = ["| level | " + " | ".join(columns) + " |", "| --- |" + " --- |" * len(columns)]
    for row in ROWS:
        cells = [cell(results, column, row) for column in columns]
        table.add_row(row, *cells)
        lines.append(f"| {row} | " + " | ".join(cells) + " |")
    seeds = ", ".join(results["seeds"])
    smoke = ["**A smoke test (`--short`): the figures mean nothing.**", ""] if results["config"].get("short") else []
    text = [
        "# Quickstart: an agent that learns when not to use its tool",
        "",
        *smoke,
        f"Accuracy % / tool calls a problem, on unseen problems, sampled at T = 0.6; mean over seeds {seeds}.",
        "",
        *lines,
        "",
        *_changes(results, arms),
        "",
        "Accuracy % / calls of every manner of playing, lowest to highest seed:",
        "",
        *_spread_lines(results, columns),
        "",
        "![learning curves](learning_curves.png)",
        "",
        "![accuracy against calls](accuracy_against_calls.png)",
        "",
        f"Tasks sha256 {results['tasks'][:12]}; {results['seconds']} s.",
    ]
    (folder / "report.md").write_text("\n".join(text) + "\n")
    _curves(folder / "learning_curves.png", results, arms)
    _scatter(folder / "accuracy_against_calls.png", results, columns)
    return table


def figure(results: dict[str, Any], column: str, row: str, name: str, manner: str = "T=0.6") -> list[float]:
    """One figure of the examination, a value a seed."""
    return [seed["examination"][column][manner][row][name] for seed in results["seeds"].values()]


def cell(results: dict[str, Any], column: str, row: str) -> str:
    """``accuracy / calls``, means over the seeds."""
    accuracy, calls = figure(results, column, row, "success"), figure(results, column, row, "calls")
    return f"{100 * np.mean(accuracy):.1f} / {np.mean(calls):.2f}"


def _spread_lines(results: dict[str, Any], columns: Sequence[str]) -> list[str]:
    """Lowest and highest over the seeds, and the other manners of playing, a line a column."""
    lines = ["| | manner | " + " | ".join(ROWS) + " |", "| --- | --- |" + " --- |" * len(ROWS)]
    for column in columns:
        for manner in ("T=0.6", "T=1", "greedy", "greedy tool-free"):
            cells = []
            for row in ROWS:
                accuracy = [100 * value for value in figure(results, column, row, "success", manner)]
                calls = figure(results, column, row, "calls", manner)
                cells.append(f"{_range(accuracy, 1)} / {_range(calls, 2)}")
            lines.append(f"| {column} | {manner} | " + " | ".join(cells) + " |")
    return lines


def _range(values: Sequence[float], digits: int) -> str:
    low, high = f"{min(values):.{digits}f}", f"{max(values):.{digits}f}"
    return low if low == high else f"{low}-{high}"


def _changes(results: dict[str, Any], arms: Sequence[str]) -> list[str]:
    """What EAPO changes against GRPO, in words."""
    if "grpo" not in arms or "eapo" not in arms:
        return []
    calls = [np.mean(figure(results, arm, "all", "calls")) for arm in ("grpo", "eapo")]
    accuracy = [100 * np.mean(figure(results, arm, "all", "success")) for arm in ("grpo", "eapo")]
    change = 100 * (calls[1] / calls[0] - 1) if calls[0] else 0.0
    return [
        f"EAPO against GRPO over all levels: calls {change:+.0f} %, accuracy {accuracy[1] - accuracy[0]:+.1f} points."
    ]


def _colour(column: str, columns: Sequence[str]) -> str:
    others = [c for c in columns if c not in COLOURS]
    return COLOURS.get(column) or _MORE[others.index(column) % len(_MORE)]


def _curves(path: Path, results: dict[str, Any], arms: Sequence[str]) -> None:
    """Calls and accuracy by level over training; one thin line a seed, the mean thick."""
    plt = _pyplot()
    figure_, axes = plt.subplots(2, 3, figsize=(11, 5.5), sharex=True, sharey="row")
    for column, (level, name) in enumerate(((0, "easy"), (1, "middle"), (2, "hard"))):
        for row, (key, label) in enumerate((("calls", "tool calls"), ("success", "accuracy"))):
            axis = axes[row][column]
            for arm in arms:
                lines = [_series(s["curves"][arm], f"level {level}/{key}") for s in results["seeds"].values()]
                shortest = min(map(len, lines))
                colour = _colour(arm, arms)
                for line in lines:
                    axis.plot(line, color=colour, alpha=0.25, linewidth=0.8)
                axis.plot(np.mean([line[:shortest] for line in lines], axis=0), color=colour, label=arm.upper())
            axis.grid(alpha=0.25)
            if row == 0:
                axis.set_title(name)
            else:
                axis.set_xlabel("iteration")
            if column == 0:
                axis.set_ylabel(label)
    axes[0][0].legend(frameon=False)
    figure_.suptitle("Training episodes at T = 1 (tool-free rows left out)")
    figure_.tight_layout()
    figure_.savefig(path, dpi=130)
    plt.close(figure_)


def _scatter(path: Path, results: dict[str, Any], columns: Sequence[str]) -> None:
    """Accuracy against calls on unseen problems: a mark a level, a colour an arm."""
    plt = _pyplot()
    figure_, axis = plt.subplots(figsize=(6, 4.5))
    for column in columns:
        colour = _colour(column, columns)
        for row, mark in zip(ROWS[:3], "os^"):
            x = np.mean(figure(results, column, row, "calls"))
            y = 100 * np.mean(figure(results, column, row, "success"))
            axis.scatter(x, y, color=colour, marker=mark, s=70, label=f"{column}, {row}")
    axis.set_xlabel("tool calls a problem")
    axis.set_ylabel("accuracy %")
    axis.grid(alpha=0.25)
    axis.legend(fontsize=7, ncols=len(columns), loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False)
    figure_.tight_layout()
    figure_.savefig(path, dpi=130)
    plt.close(figure_)


def _series(metrics: Sequence[dict[str, float]], key: str) -> list[float]:
    """A curve; an iteration that drew no problem of the level repeats the value before it."""
    values: list[float] = []
    for row in metrics:
        values.append(row.get(key, values[-1] if values else float("nan")))
    return values


def _pyplot() -> Any:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot
