"""Reward shaping: from what a group did to one reward an episode.

- ``OutcomeReward``: the score, or a penalty for a broken format.
- ``MultiToolReward``: Tool-Star's, with a bonus for using both tools.
- ``EfficiencyShaping``: EAPO's, where a needless call on an easy task costs.
- ``ToolProductivity``: OTC's, where every call beyond the fewest known costs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from agentic_gym.episodes import Episode, Group
from agentic_gym.ranges import Checked, Natural, NonNegative
from agentic_gym.trainers.algorithm import FloatArray, Shaping
from agentic_gym.trainers.credit import eapo, otc, toolstar
from agentic_gym.trainers.credit.eapo import Threshold

__all__ = ["EfficiencyShaping", "MultiToolReward", "OutcomeReward", "ToolProductivity"]


@dataclass(frozen=True)
class OutcomeReward(Checked):
    """R_i: the score of a well-formed episode, ``bad_format`` for any other (EAPO eq. 7). None: the environment's own reward."""

    bad_format: float | None = -1.0

    def __call__(self, group: Group) -> FloatArray:
        """One reward an episode."""
        rows = group.trainable
        if self.bad_format is None:
            return np.array([episode.reward for episode in rows], dtype=np.float64)
        scores = [episode.score for episode in rows]
        return eapo.base_rewards(scores, [episode.well_formed for episode in rows], bad_format=self.bad_format)


@dataclass(frozen=True)
class MultiToolReward(Checked):
    """Tool-Star's reward: -1 for a broken format, else the score, plus a bonus when both tools were called."""

    bonus: float = 0.1
    bad_format: float = -1.0

    def __call__(self, group: Group) -> FloatArray:
        """One reward an episode."""
        return np.array([self._reward(episode) for episode in group.trainable], dtype=np.float64)

    def _reward(self, episode: Episode) -> float:
        used = {step.tool.name for step in episode.steps if step.tool is not None}
        return toolstar.reward(
            episode.score,
            well_formed=episode.well_formed,
            tools_used=used,
            bonus=self.bonus,
            bad_format=self.bad_format,
        )


@dataclass(frozen=True)
class EfficiencyShaping(Checked):
    """EAPO's R~: on easy tasks a needless call costs (eqs. 4-6)."""

    base: Shaping = OutcomeReward()
    beta: NonNegative = 1.0
    correct_threshold: Threshold = 0.5
    """Score from which an episode counts as correct."""
    shape_negative: bool = False
    clamp: bool = True

    def __call__(self, group: Group) -> FloatArray:
        """One reward an episode."""
        rows = group.trainable
        correct = eapo.is_correct([e.score for e in rows], threshold=self.correct_threshold)
        calls = [e.tool_calls for e in rows]
        return eapo.shape_rewards(
            self.base(group), calls, correct, beta=self.beta, shape_negative=self.shape_negative, clamp=self.clamp
        )


@dataclass(frozen=True)
class ToolProductivity(Checked):
    """OTC's alpha r_tool R: a positive reward shrinks with every call beyond the fewest known to suffice.

    Remembers that number for every task over the whole run (``optimal``); it only falls.
    """

    base: Shaping = OutcomeReward()
    limit: Natural = 3
    """c: most calls of an episode."""
    alpha: NonNegative = 1.0
    correct_threshold: Threshold = 0.5
    remember: bool = True
    """False: OTC-PPO, which knows no optimum."""
    optimal: dict[str, int] = field(default_factory=dict, compare=False)
    """n of each task so far."""

    def __call__(self, group: Group) -> FloatArray:
        """One reward an episode. Lowers n first, so that no correct episode is judged by an n above its own calls."""
        rows = group.trainable
        calls = [episode.tool_calls for episode in rows]
        if self.remember:
            correct = eapo.is_correct([e.score for e in rows], threshold=self.correct_threshold)
            self.optimal.update(otc.lowered(self.optimal, group.task_id, calls, correct))
        n = self.optimal.get(group.task_id)
        return otc.shape_rewards(self.base(group), calls, optimal=n, limit=self.limit, alpha=self.alpha)

    def state_dict(self) -> dict[str, Any]:
        """n of each task."""
        return {"optimal": dict(self.optimal)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The inverse of ``state_dict``."""
        self.optimal.clear()
        self.optimal.update(state["optimal"])
