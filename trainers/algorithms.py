"""An algorithm is five parts, each replaceable alone.

rollout plan -> reward shaping -> advantage -> segment credit -> token weights (and the loss variant for the objective).

``Algorithm.credit(groups)`` is pure: whole groups in, one advantage a token out. Parts see everything that a group
records (roles, spans, executed calls, tool-free flags), not a fixed list of arrays. Adding an algorithm is one function and one
line in ``ALGORITHMS``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from agentic_gym.episodes import Episode, Group
from agentic_gym.tasks import near
from agentic_gym.trainers.credit import eapo as eapo_rules
from agentic_gym.trainers.credit import grpo as grpo_rules
from agentic_gym.trainers.credit import triage as triage_rules

__all__ = [
    "ALGORITHMS",
    "Algorithm",
    "BatchCredit",
    "ConfidenceWeights",
    "EfficiencyShaping",
    "GroupRelative",
    "LossVariant",
    "OutcomeReward",
    "RoleCredit",
    "RolloutPlan",
    "make_algorithm",
]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class RolloutPlan:
    """How the M episodes of one task are drawn."""

    group_size: int = 16
    """M."""
    tool_free: int = 0
    """n: how many of them are forced to do without tools."""

    def __post_init__(self) -> None:
        if self.group_size < 1 or not 0 <= self.tool_free <= self.group_size:
            raise ValueError(f"a plan needs group_size >= 1 and 0 <= tool_free <= group_size, got {self}")


@dataclass(frozen=True)
class LossVariant:
    """The clipped objective's settings (see ``trainers.objective``)."""

    clip_low: float = 0.2
    clip_high: float = 0.2
    dual_clip: float | None = 3.0
    """Bound c > 1 on the loss of a negative advantage; None is off."""
    aggregation: str = "token-mean"
    """token-mean, seq-mean-token-sum, seq-mean-token-mean or seq-mean-token-sum-norm."""
    kl_coefficient: float = 0.0
    """Weight of the k3 divergence from the starting policy, as a loss."""


class Shaping(Protocol):
    """Rewards of a group's trainable episodes, shape (M,)."""

    def __call__(self, group: Group) -> FloatArray:
        """One reward an episode of ``group.trainable``."""
        ...


class Advantage(Protocol):
    """Advantages of whole episodes; sees the batch, so that it may normalise over it."""

    def __call__(self, groups: Sequence[Group], rewards: Sequence[FloatArray]) -> list[FloatArray]:
        """One array (M,) a group."""
        ...


class SegmentCredit(Protocol):
    """Advantages of steps; sees the batch, so that it may whiten over it."""

    def __call__(self, episodes: Sequence[Episode], advantages: FloatArray) -> list[FloatArray]:
        """For each episode, one advantage a step, shape (K,)."""
        ...


class TokenWeights(Protocol):
    """Factors on the advantages of one episode's tokens."""

    def __call__(self, episode: Episode) -> FloatArray:
        """Shape (T,)."""
        ...


@dataclass(frozen=True)
class OutcomeReward:
    """R_i: the score of a well-formed episode, ``bad_format`` for any other (EAPO eq. 7). None: the environment's own reward."""

    bad_format: float | None = -1.0

    def __call__(self, group: Group) -> FloatArray:
        """One reward an episode."""
        rows = group.trainable
        if self.bad_format is None:
            return np.array([episode.reward for episode in rows], dtype=np.float64)
        scores = [episode.score for episode in rows]
        return eapo_rules.base_rewards(scores, [episode.well_formed for episode in rows], bad_format=self.bad_format)


@dataclass(frozen=True)
class EfficiencyShaping:
    """EAPO's R~: on easy tasks a needless call costs (eqs. 4-6)."""

    base: OutcomeReward = OutcomeReward()
    beta: float = 1.0
    correct_threshold: float = 0.5
    """Score from which an episode counts as correct."""
    shape_negative: bool = False
    clamp: bool = True

    def __call__(self, group: Group) -> FloatArray:
        """One reward an episode."""
        rows = group.trainable
        correct = eapo_rules.is_correct([e.score for e in rows], threshold=self.correct_threshold)
        calls = [e.tool_calls for e in rows]
        return eapo_rules.shape_rewards(
            self.base(group), calls, correct, beta=self.beta, shape_negative=self.shape_negative, clamp=self.clamp
        )


@dataclass(frozen=True)
class GroupRelative:
    """GRPO's A_i, group by group."""

    ddof: int = 1
    eps: float = 1e-6
    divide_by_std: bool = True

    def __call__(self, groups: Sequence[Group], rewards: Sequence[FloatArray]) -> list[FloatArray]:
        """One array a group."""
        return [
            grpo_rules.group_advantages(r, ddof=self.ddof, eps=self.eps, divide_by_std=self.divide_by_std)
            for r in rewards
        ]


@dataclass(frozen=True)
class RoleCredit:
    """TRIAGE's A + lambda c_role for each step, whitened over the batch's steps."""

    lam: float = 0.2
    whiten: bool = True

    def __call__(self, episodes: Sequence[Episode], advantages: FloatArray) -> list[FloatArray]:
        """One advantage a step."""
        counts = [len(episode.steps) for episode in episodes]
        roles = [step.role for episode in episodes for step in episode.steps]
        flat = triage_rules.batch_advantages(np.repeat(advantages, counts), roles, lam=self.lam, whitened=self.whiten)
        return np.split(flat, np.cumsum(counts)[:-1])


@dataclass(frozen=True)
class ConfidenceWeights:
    """EAPO's factors: a correct episode's least certain thoughts, a wrong one's most certain (section 3.3)."""

    rho: float = 0.2
    w_pos: float = 1.5
    w_neg: float = 1.5
    correct_threshold: float = 0.5
    train_tool_call_tokens: bool = True
    """False takes eq. 10 to the letter: tokens of a tool call get no gradient."""

    def __call__(self, episode: Episode) -> FloatArray:
        """Shape (T,)."""
        trace = episode.trace
        turn_ids, thought, call = np.full(len(trace), -1), np.zeros(len(trace), bool), np.zeros(len(trace), bool)
        for step, kind, start, end in trace.spans:
            turn_ids[start:end] = step
            thought[start:end] = kind in ("thought", "answer")
            call[start:end] = kind == "call"
        weights = eapo_rules.token_weights(
            trace.logprobs,
            turn_ids,
            thought,
            correct=episode.score >= self.correct_threshold,
            used_tool=episode.tool_calls > 0,
            rho=self.rho,
            w_pos=self.w_pos,
            w_neg=self.w_neg,
        )
        return weights if self.train_tool_call_tokens else np.where(call, 0.0, weights)


@dataclass(frozen=True)
class BatchCredit:
    """The credit of one batch."""

    episodes: list[Episode]
    """The trainable episodes, group by group."""
    advantages: list[FloatArray]
    """One array (T,) an episode; exactly 0 on tokens that the model did not write."""
    rewards: FloatArray
    """Shaped reward of each episode."""
    metrics: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Algorithm:
    """A credit rule: the five parts under a name."""

    name: str
    plan: RolloutPlan = RolloutPlan()
    shaping: Shaping = OutcomeReward()
    advantage: Advantage = GroupRelative()
    segments: SegmentCredit | None = None
    """None: every step has its episode's advantage."""
    token_weights: TokenWeights | None = None
    """None: every token has its step's advantage."""
    loss: LossVariant = LossVariant()

    def credit(self, groups: Sequence[Group]) -> BatchCredit:
        """Advantages of every token of every trainable episode. Pure."""
        groups = [group for group in groups if group.trainable]
        episodes = [episode for group in groups for episode in group.trainable]
        if not episodes:
            return BatchCredit([], [], np.zeros(0))
        rewards = [self.shaping(group) for group in groups]
        per_episode = np.concatenate(self.advantage(groups, rewards))
        if self.segments is None:
            per_step = [np.full(len(e.steps), a) for e, a in zip(episodes, per_episode)]
        else:
            per_step = self.segments(episodes, per_episode)
        advantages = [_to_tokens(episode, steps) for episode, steps in zip(episodes, per_step)]
        if self.token_weights is not None:
            advantages = [a * self.token_weights(e) for a, e in zip(advantages, episodes)]
        flat = np.concatenate(rewards)
        return BatchCredit(episodes, advantages, flat, _metrics(episodes, rewards, per_step))


def _to_tokens(episode: Episode, steps: FloatArray) -> FloatArray:
    """Spread one advantage a step over the tokens that the model wrote in it, shape (T,)."""
    result = np.zeros(len(episode.trace))
    for step, kind, start, end in episode.trace.spans:
        if kind not in ("prompt", "observation"):
            result[start:end] = steps[step]
    return result


def _metrics(
    episodes: Sequence[Episode], rewards: Sequence[FloatArray], steps: Sequence[FloatArray]
) -> dict[str, float]:
    flat = np.concatenate(steps)
    metrics = {
        "credit/reward": float(np.concatenate(rewards).mean()),
        "credit/advantage_std": float(flat.std()) if flat.size else 0.0,
        "credit/dead_groups": float(np.mean([np.ptp(r) == 0 for r in rewards])),
    }
    roles = [step.role for episode in episodes for step in episode.steps]
    if any(role is not None for role in roles):
        for letter in "DENR":
            metrics[f"roles/{letter}"] = sum(str(role) == letter for role in roles) / len(roles)
        metrics["roles/missing"] = sum(role is None for role in roles) / len(roles)
    return metrics


def grpo(*, group_size: int = 16, ddof: int = 1, bad_format: float | None = -1.0) -> Algorithm:
    """GRPO (arXiv 2402.03300)."""
    return Algorithm(
        "grpo", plan=RolloutPlan(group_size), shaping=OutcomeReward(bad_format), advantage=GroupRelative(ddof=ddof)
    )


def eapo(
    *,
    group_size: int = 16,
    tool_free: int = 2,
    beta: float = 1.0,
    rho: float = 0.2,
    w_pos: float = 1.5,
    w_neg: float = 1.5,
    correct_threshold: float = 0.5,
    shape_negative: bool = False,
    train_tool_call_tokens: bool = True,
    bad_format: float | None = -1.0,
) -> Algorithm:
    """EAPO (arXiv 2606.02132): tool-free quota, difficulty-aware shaping, confidence-aware token weights."""
    return Algorithm(
        "eapo",
        plan=RolloutPlan(group_size, tool_free),
        shaping=EfficiencyShaping(
            OutcomeReward(bad_format), beta=beta, correct_threshold=correct_threshold, shape_negative=shape_negative
        ),
        token_weights=ConfidenceWeights(rho, w_pos, w_neg, correct_threshold, train_tool_call_tokens),
    )


def triage(*, group_size: int = 8, lam: float = 0.2, whiten: bool = True, bad_format: float | None = None) -> Algorithm:
    """TRIAGE: GRPO plus lambda c_role a step. The environment needs ``RoleLabels``."""
    return Algorithm(
        "triage",
        plan=RolloutPlan(group_size),
        shaping=OutcomeReward(bad_format),
        segments=RoleCredit(lam, whiten),
    )


def eapo_triage(*, lam: float = 0.2, whiten: bool = True, **parameters: Any) -> Algorithm:
    """EAPO's rollout, shaping and token weights with TRIAGE's step credit."""
    base = eapo(**parameters)
    return Algorithm(
        "eapo+triage", base.plan, base.shaping, base.advantage, RoleCredit(lam, whiten), base.token_weights
    )


ALGORITHMS: dict[str, Callable[..., Algorithm]] = {
    "grpo": grpo,
    "eapo": eapo,
    "triage": triage,
    "eapo+triage": eapo_triage,
}
"""name -> factory; its keyword arguments are the algorithm's parameters."""


def make_algorithm(name: str, **parameters: Any) -> Algorithm:
    """The algorithm called ``name``. Raises ValueError naming the nearest right name or parameter.

    Example:
        >>> make_algorithm("eapo", beta=0.5).plan
        RolloutPlan(group_size=16, tool_free=2)
    """
    if name not in ALGORITHMS:
        raise ValueError(f"unknown algorithm {name!r}.{near(name, ALGORITHMS)} Known: {', '.join(ALGORITHMS)}")
    known = _parameters(ALGORITHMS[name])
    for key in parameters:
        if key not in known:
            raise ValueError(f"{name} has no parameter {key!r}.{near(key, known)} It has: {', '.join(sorted(known))}")
    return ALGORITHMS[name](**parameters)


def _parameters(factory: Callable[..., Algorithm]) -> set[str]:
    names = set()
    for parameter in inspect.signature(factory).parameters.values():
        # A composition passes what it does not know to EAPO.
        names |= _parameters(eapo) if parameter.kind is parameter.VAR_KEYWORD else {parameter.name}
    return names
