"""``agentic-gym data``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import tyro

from agentic_gym.tasks import near

__all__ = ["EXAMPLE", "main"]

EXAMPLE = "agentic-gym data alfworld --from ALFRED_DIR"

KINDS = {
    "alfworld": "where ALFWorld's games go; rebuild them from ALFRED, or generate some",
    "tasks": "where the files of mathematics and question-answering sets go",
    "webshop": "where WebShop's official files go",
}


def main(arguments: Sequence[str]) -> int:
    """Say where data files go, and make those that can be made. Raises ValueError for an unknown kind."""
    name, flags = (arguments[0], list(arguments[1:])) if arguments else ("--help", [])
    if name in ("-h", "--help"):
        lines = "\n".join(f"  {kind:<10}{what}" for kind, what in KINDS.items())
        sys.stdout.write(f"usage: agentic-gym data KIND ...\n\n{lines}\n\nExample: {EXAMPLE}\n")
        return 0
    if name not in KINDS:
        raise ValueError(f"no data of kind {name!r}.{near(name, KINDS)} Kinds: {', '.join(KINDS)}. Example: {EXAMPLE}")
    ask: Callable[..., str] = {"alfworld": _alfworld, "tasks": _tasks, "webshop": _webshop}[name]
    sys.stdout.write(tyro.cli(ask, args=flags, prog=f"agentic-gym data {name}") + "\n")
    return 0


def _alfworld(
    *,
    source: Annotated[Path | None, tyro.conf.arg(name="from")] = None,
    out: Path | None = None,
    generate: int = 0,
) -> str:
    """Fill a folder with ALFWorld games; without flags, say where they go.

    Example: agentic-gym data alfworld --from ALFRED_DIR

    Args:
        source: ALFRED's data: folders with traj_data.json, or condensed <split>.jsonl.gz files.
        out: the folder to fill; default $ALFWORLD_DATA, or ~/.cache/alfworld.
        generate: write so many generated games a split.
    """
    from agentic_gym.envs.alfworld.data_command import prepare_data

    return prepare_data(source, out, generate=generate)


def _tasks() -> str:
    """Say where the files of mathematics and question-answering sets go, and where they come from.

    Example: agentic-gym data tasks
    """
    from agentic_gym.task_sources import SOURCES

    names = "\n".join(f"  {name:<16}{source.hub}" for name, source in SOURCES.items())
    return (
        "Set AGENTIC_GYM_DATA to a folder and put NAME.jsonl, NAME.json or NAME.parquet into it; what is not there comes from\n"
        f"the hub where `datasets` is installed (pip install 'agentic-gym[data]'). NAME, and its place on the hub:\n{names}"
    )


def _webshop() -> str:
    """Say where WebShop's official files go.

    Example: agentic-gym data webshop
    """
    return (
        "Set WEBSHOP_DATA to the folder with WebShop's own files (items_shuffle_1000.json, items_ins_v2_1000.json,\n"
        "items_human_ins.json, or the full ones). Without it the environment generates a shop of its own."
    )
