"""``agentic-gym play``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import gymnasium as gym
import tyro
from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from agentic_gym.commands.environments import make_env
from agentic_gym.commands.transcript import printable, show_outcome, show_step
from agentic_gym.episodes import Episode, Response
from agentic_gym.wrappers import RecordEpisodes, ToolBudget, ToolFree
from agentic_gym.wrappers.record_episodes import append_episodes

EXAMPLE = "agentic-gym play MathTools --with levels=[4] --budget 2"
_OPENING = re.compile(r"<([a-z][a-z0-9_]*)>")
_HELP = (
    "Type an action; it may span lines once a tag such as <python> is open. An empty line repeats this, Ctrl-D leaves."
)


def run(
    env: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="ENV")],
    /,
    *,
    settings: Annotated[tuple[str, ...], tyro.conf.arg(name="with", metavar="NAME=VALUE")] = (),
    task: str | None = None,
    seed: int | None = None,
    budget: int | None = None,
    tool_free: bool = False,
    record: Path | None = None,
) -> int:
    """Play an environment yourself: you see what an agent sees and type its actions.

    Args:
        env: a Gymnasium id, or module:id.
        settings: constructor arguments of the environment.
        task: the task's index or id; otherwise one is drawn.
        seed: which one is drawn.
        budget: at most so many tool calls.
        tool_free: no tool at all.
        record: append the episode to this JSONL file.
    """
    made = make_env(env, settings)
    if budget is not None:
        made = ToolBudget(made, budget)
    if tool_free:
        made = ToolFree(made, active=True)
    if record is not None:
        made = RecordEpisodes(made, record)
        append_episodes(record, [])  # what cannot be written is said before anything is played
    try:
        _play(Console(highlight=False), made, seed, _task_option(task))
    finally:
        made.close()
    return 0


def _play(console: Console, env: gym.Env[str, str], seed: int | None, options: dict[str, Any] | None) -> None:
    observation, info = env.reset(seed=seed, options=options)
    episode = Episode(
        str(info.get("task_id", "")), str(info.get("instructions", "")), observation, info.get("level"), info=info
    )
    console.print(Panel(Text(printable(episode.instructions)), title="instructions", border_style="dim"))
    console.print(Text(printable(observation), style="green"))
    console.print(_HELP, style="dim", markup=False)
    while not episode.done:
        admissible = episode.info.get("admissible_actions")
        if admissible:
            console.print(Text(printable(" | ".join(admissible)), style="dim"))
        try:
            action = _read_action(console)
        except EOFError:
            console.print("left before the end", style="dim")
            return
        if not action.strip():
            console.print(_HELP, style="dim", markup=False)
            continue
        observation, reward, terminated, truncated, info = env.step(action)
        episode.record(Response(action), observation, float(reward), terminated, truncated, info)
        show_step(console, len(episode.steps), episode.steps[-1])
    show_outcome(console, episode)


def _read_action(console: Console) -> str:
    """A line, and further ones while the first tag that was opened is not closed."""
    lines = [console.input("> ", markup=False)]
    opened = _OPENING.search(lines[0])
    while opened is not None and f"</{opened[1]}>" not in "\n".join(lines):
        lines.append(console.input("... ", markup=False))
    return "\n".join(lines)


def _task_option(task: str | None) -> dict[str, Any] | None:
    if task is None:
        return None
    return {"task": int(task) if task.lstrip("-").isdigit() else task}
