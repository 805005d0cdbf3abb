"""``agentic-gym train``."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

EXAMPLE = "agentic-gym train config.yaml --optimizer.lr 2e-6 --output runs/mine"


def main(arguments: Sequence[str]) -> int:
    """Train a model: a YAML file (optional), then flags that override it. A run found in --output is resumed.

    The flags are the fields of ``TrainConfig``; a YAML file holds the same names, nested.
    """
    from agentic_gym.commands.environments import resolve_id
    from agentic_gym.configs import load_config
    from agentic_gym.trainers.config import TrainConfig

    file, flags = None, list(arguments)
    if flags and not flags[0].startswith("-"):
        file = Path(flags.pop(0))
    description = f"{inspect.cleandoc(main.__doc__ or '')}\n\nExample: {EXAMPLE}"
    config = load_config(TrainConfig, file, flags, prog="agentic-gym train", description=description)
    config = replace(config, env=replace(config.env, id=resolve_id(config.env.id)))
    try:
        from agentic_gym.trainers.launch import launch
    except ImportError as error:
        raise ImportError(
            f"training needs torch and transformers: pip install 'agentic-gym[train]' ({error})"
        ) from error
    console = Console(stderr=True)
    try:
        latest = launch(config, console)
    except KeyboardInterrupt:
        console.print(
            f"interrupted; the same command resumes from the last checkpoint in {config.output}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
        raise
    console.print(f"trained: {latest}", markup=False, highlight=False, soft_wrap=True)
    return 0
