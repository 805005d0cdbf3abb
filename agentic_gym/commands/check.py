"""``agentic-gym check``."""

from __future__ import annotations

from typing import Annotated

import tyro
from rich.console import Console

from agentic_gym.check_env import check_text_env
from agentic_gym.commands.environments import make_env

EXAMPLE = "agentic-gym check MathTools --with levels=[0]"


def run(
    env: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="ENV")],
    /,
    *,
    settings: Annotated[tuple[str, ...], tyro.conf.arg(name="with", metavar="NAME=VALUE")] = (),
    seed: int = 0,
) -> int:
    """Check an environment against the contract of text environments, and say what to mend.

    Args:
        env: a Gymnasium id, or module:id for one that a module of yours registers.
        settings: constructor arguments of the environment.
        seed: of the episodes that are played.
    """
    made = make_env(env, settings)
    name = str(made)
    check_text_env(made, seed=seed)
    Console().print(f"{name} keeps the contract", markup=False, soft_wrap=True, style="green")
    return 0
