"""Playing many episodes for a file: what commands and benchmarks share.

- ``recorded_rollout``: in batches, each on disk before the next begins.
- ``progress_bar``: what a person sees meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from agentic_gym.episodes import Episode
from agentic_gym.policies.base import Policy, Sampling
from agentic_gym.trainers.rollout import EnvPool, EpisodeRequest, rollout
from agentic_gym.wrappers.record_episodes import append_episodes

__all__ = ["progress_bar", "recorded_rollout"]


def recorded_rollout(
    policy: Policy,
    pool: EnvPool,
    requests: Sequence[EpisodeRequest],
    sampling: Sampling,
    *,
    parallel: int,
    path: Path | None = None,
    on_finished: Callable[[Episode], None] | None = None,
) -> list[Episode]:
    """Play every request, ``parallel`` at a time, and return the episodes in order.

    Args:
        path: a JSONL file that the episodes are appended to, batch by batch; whatever interrupts a batch, those of its
            episodes that have ended are kept.
        on_finished: called with each episode as it ends.
    """
    played: list[Episode] = []
    for start in range(0, len(requests), parallel):
        ended: list[Episode] = []

        def finish(episode: Episode, ended: list[Episode] = ended) -> None:
            ended.append(episode)
            if on_finished is not None:
                on_finished(episode)

        try:
            batch = rollout(policy, pool, requests[start : start + parallel], sampling, on_finished=finish)
        except BaseException:
            if path is not None:
                append_episodes(path, ended)
            raise
        if path is not None:
            append_episodes(path, batch)
        played += batch
    return played


def progress_bar(console: Console, *columns: ProgressColumn) -> Progress:
    """A bar with counts and times, then ``columns``; nothing where ``console`` is no terminal."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        *columns,
        console=console,
        disable=not console.is_terminal,
    )
