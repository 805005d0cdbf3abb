"""``agentic-gym view``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.console import Console

from agentic_gym.commands.transcript import show_episode
from agentic_gym.episodes import Episode
from agentic_gym.wrappers.record_episodes import RecordEpisodes

EXAMPLE = "agentic-gym view episodes.jsonl --only failed --limit 3"


def run(
    file: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FILE")],
    /,
    *,
    only: Literal["all", "solved", "failed", "masked"] = "all",
    task: str | None = None,
    limit: int | None = None,
    instructions: bool = False,
) -> int:
    """Show recorded episodes turn by turn, with roles and outcomes in colour.

    Args:
        file: a JSONL file of RecordEpisodes, of ``rollout`` or of a training run.
        only: which outcomes; failed is all that was neither solved nor masked.
        task: only episodes of this task id.
        limit: at most so many.
        instructions: show the system prompts too.
    """
    if limit is not None and limit < 1:
        raise ValueError(f"--limit must be at least 1, got {limit}")
    numbered = list(enumerate(RecordEpisodes.load(file), 1))
    if not numbered:
        raise ValueError(f"{file} holds no whole episode: nothing was recorded yet, or what was is cut off")
    chosen = [(n, e) for n, e in numbered if _wanted(e, only) and task in (None, e.task_id)][:limit]
    console = Console(highlight=False)
    for number, episode in chosen:
        show_episode(console, episode, number=number, instructions=instructions)
    console.rule(f"{len(chosen)} of {len(numbered)} episodes")
    return 0


def _wanted(episode: Episode, only: str) -> bool:
    kind = "masked" if episode.masked else "solved" if episode.success else "failed"
    return only in ("all", kind)
