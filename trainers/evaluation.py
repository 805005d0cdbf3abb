"""Playing tasks without learning, and the figures of a set of episodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from agentic_gym.episodes import Episode
from agentic_gym.policies.base import Policy, Sampling
from agentic_gym.trainers.rollout import EnvPool, group_requests, rollout

__all__ = ["Summary", "by_level", "evaluate", "summarise"]


@dataclass(frozen=True)
class Summary:
    """Means over the episodes that count (masked ones do not)."""

    episodes: int
    success: float
    """Share solved, in [0, 1]."""
    score: float
    """Mean graded value, in [0, 1]."""
    calls: float
    """Executed tool calls an episode."""
    turns: float
    """Actions an episode."""
    tokens: float
    """Sampled tokens an episode; 0 for text policies."""
    ill_formed: float
    """Share with an invalid or refused action or no answer, in [0, 1]."""
    masked: int
    """Episodes lost to infrastructure."""


def summarise(episodes: Sequence[Episode]) -> Summary:
    """The figures of ``episodes``; NaN means where none counts."""
    rows = [episode for episode in episodes if not episode.masked]

    def mean(value: Callable[[Episode], float]) -> float:
        return float(np.mean([value(row) for row in rows])) if rows else float("nan")

    return Summary(
        episodes=len(rows),
        success=mean(lambda e: float(e.success)),
        score=mean(lambda e: e.score),
        calls=mean(lambda e: e.tool_calls),
        turns=mean(lambda e: len(e.steps)),
        tokens=mean(lambda e: sum(e.trace.loss_mask)),
        ill_formed=mean(lambda e: float(not e.well_formed)),
        masked=len(episodes) - len(rows),
    )


def by_level(episodes: Sequence[Episode]) -> dict[int | str | None, Summary]:
    """One summary a level, in order of level. An episode whose reset failed is masked and has no level: it stands in none."""
    found = {episode.level for episode in episodes if not (episode.masked and episode.level is None)}
    levels = sorted(found, key=lambda level: (isinstance(level, str), str(level).zfill(8)))
    return {level: summarise([e for e in episodes if e.level == level]) for level in levels}


def evaluate(
    policy: Policy,
    pool: EnvPool,
    tasks: Sequence[int | str],
    sampling: Sampling,
    *,
    samples: int = 1,
    seed: int = 0,
    tool_free: bool = False,
    on_finished: Callable[[Episode], None] | None = None,
) -> list[Episode]:
    """Play each task ``samples`` times. Rows of equal seed have the same noise whatever the policy."""
    requests = group_requests(tasks, group_size=samples, tool_free=samples if tool_free else 0, seed=(seed, 0xE7A1))
    return rollout(policy, pool, requests, sampling, on_finished=on_finished)
