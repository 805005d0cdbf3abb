"""Advantages of episodes, steps and tokens.

- episodes: ``GroupRelative`` (GRPO, Dr. GRPO), ``LeaveOneOut`` (RLOO), ``BatchWhitened`` (REINFORCE++), ``RawReturns``;
- steps: ``RoleCredit`` (TRIAGE), ``ScoreCredit`` (scalar process reward), ``ValueCredit`` (value baseline), ``AnchorCredit``
  (GiGPO), ``SharedPrefixes`` (ARPO, hard attribution);
- tokens: ``ConfidenceWeights`` (EAPO), ``WhitenedTokens`` (REINFORCE++ with the KL in the reward).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from agentic_gym.episodes import Episode, Group
from agentic_gym.ranges import Checked, NonNegative, Share
from agentic_gym.trainers.algorithm import KINDS, FloatArray, Readings, TokenLayout, cut, trainable
from agentic_gym.trainers.credit import arpo, eapo, gigpo, grpo, kl, reinforce_pp, scalar, triage, value
from agentic_gym.trainers.credit.eapo import Threshold
from agentic_gym.trainers.credit.gigpo import Norm
from agentic_gym.trainers.credit.kl import KlKind
from agentic_gym.trainers.credit.value import ValueForm

__all__ = [
    "AnchorCredit",
    "BatchWhitened",
    "ConfidenceWeights",
    "GroupRelative",
    "LeaveOneOut",
    "RawReturns",
    "RoleCredit",
    "ScoreCredit",
    "SharedPrefixes",
    "ValueCredit",
    "WhitenedTokens",
]

Scores = Callable[[Episode], Sequence[float | None]]
Ddof = Literal[0, 1]
"""Subtracted from the number of values where a standard deviation is taken."""


@dataclass(frozen=True)
class GroupRelative(Checked):
    """GRPO's A_i, group by group."""

    ddof: Ddof = 1
    eps: NonNegative = 1e-6
    divide_by_std: bool = True

    def __call__(self, groups: Sequence[Group], rewards: Sequence[FloatArray]) -> list[FloatArray]:
        """One array a group."""
        return [
            grpo.group_advantages(r, ddof=self.ddof, eps=self.eps, divide_by_std=self.divide_by_std) for r in rewards
        ]


@dataclass(frozen=True)
class LeaveOneOut:
    """RLOO: the baseline of an episode is the mean of the others."""

    def __call__(self, groups: Sequence[Group], rewards: Sequence[FloatArray]) -> list[FloatArray]:
        """One array a group."""
        return [grpo.rloo_advantages(r) for r in rewards]


@dataclass(frozen=True)
class BatchWhitened(Checked):
    """REINFORCE++: whitened over the batch, each episode counted once a written token."""

    group_baseline: bool = False
    """Subtract the group's mean first."""
    ddof: Ddof = 0

    def __call__(self, groups: Sequence[Group], rewards: Sequence[FloatArray]) -> list[FloatArray]:
        """One array a group. Without tokens (text policies) every episode counts once."""
        sizes = [len(r) for r in rewards]
        tokens = np.array([sum(e.trace.loss_mask) for e in trainable(groups)], dtype=np.float64)
        ids = np.repeat(np.arange(len(groups)), sizes) if self.group_baseline else None
        flat = reinforce_pp.batch_advantages(
            np.concatenate(rewards), tokens if tokens.any() else np.ones_like(tokens), groups=ids, ddof=self.ddof
        )
        return cut(flat, sizes)


@dataclass(frozen=True)
class RawReturns:
    """No baseline: the reward itself, for a token part that whitens."""

    def __call__(self, groups: Sequence[Group], rewards: Sequence[FloatArray]) -> list[FloatArray]:
        """One array a group."""
        return list(rewards)


@dataclass(frozen=True)
class RoleCredit(Checked):
    """TRIAGE's A + lambda c_role for each step, whitened over the batch's steps."""

    lam: NonNegative = 0.2
    whiten: bool = True

    def __call__(
        self,
        groups: Sequence[Group],
        advantages: Sequence[FloatArray],
        rewards: Sequence[FloatArray],
        readings: Readings,
    ) -> list[FloatArray]:
        """One advantage a step."""
        episodes = trainable(groups)
        roles = [step.role for episode in episodes for step in episode.steps]
        flat = triage.batch_advantages(_repeated(episodes, advantages), roles, lam=self.lam, whitened=self.whiten)
        return _by_episode(episodes, flat)


@dataclass(frozen=True)
class ScoreCredit(Checked):
    """TRIAGE's rival: A + lambda s, s a judge's number in [-1, 1] for each step."""

    scores: Scores
    """The numbers of an episode's steps, None where the judge gave none."""
    lam: NonNegative = 0.2
    whiten: bool = True

    def __call__(
        self,
        groups: Sequence[Group],
        advantages: Sequence[FloatArray],
        rewards: Sequence[FloatArray],
        readings: Readings,
    ) -> list[FloatArray]:
        """One advantage a step."""
        episodes = trainable(groups)
        scores: list[float | None] = []
        for episode in episodes:
            given = list(self.scores(episode))
            if len(given) != len(episode.steps):
                raise ValueError(f"scores must give one number a step, {len(episode.steps)}, got {len(given)}")
            scores += given
        flat = scalar.batch_advantages(_repeated(episodes, advantages), scores, lam=self.lam, whitened=self.whiten)
        return _by_episode(episodes, flat)


@dataclass(frozen=True)
class ValueCredit(Checked):
    """TRIAGE's other rival: a value head trained on outcomes, as a baseline or as a measure of progress."""

    form: ValueForm = "baseline"
    """baseline: R - V(s_k). progress: A + lambda (V(s_{k+1}) - V(s_k))."""
    lam: NonNegative = 0.2
    whiten: bool = True

    def __call__(
        self,
        groups: Sequence[Group],
        advantages: Sequence[FloatArray],
        rewards: Sequence[FloatArray],
        readings: Readings,
    ) -> list[FloatArray]:
        """One advantage a step. Raises ValueError without values."""
        if readings.values is None:
            raise ValueError("value_baseline needs Readings.values: V at the start of every step, from the value head")
        outcomes, bases = np.concatenate(rewards), np.concatenate(advantages)
        rows = [
            value.segment_advantages(float(r), v, form=self.form, advantage=float(a), lam=self.lam)
            for r, a, v in zip(outcomes, bases, readings.values, strict=True)
        ]
        if not self.whiten:
            return rows
        return _by_episode(trainable(groups), triage.whiten_segments(np.concatenate(rows)))


@dataclass(frozen=True)
class AnchorCredit(Checked):
    """GiGPO's A_episode + omega A_step: steps of a group that met the same observation are compared."""

    omega: NonNegative = 1.0
    gamma: Share = 0.95
    norm: Norm = "std"
    similarity: Share | None = None
    """Least similarity of observations that count as one; None asks for equality."""
    invalid_penalty: NonNegative = 0.0
    """Taken off the reward of a step whose action was malformed."""

    def __call__(
        self,
        groups: Sequence[Group],
        advantages: Sequence[FloatArray],
        rewards: Sequence[FloatArray],
        readings: Readings,
    ) -> list[FloatArray]:
        """One advantage a step."""
        result: list[FloatArray] = []
        for group, episode_advantages in zip(groups, advantages):
            rows = group.trainable
            seen = [[e.observation, *(s.observation for s in e.steps[:-1])][: len(e.steps)] for e in rows]
            anchors: list[list[str]] | list[list[int]] = seen
            if self.similarity is not None:
                flat = gigpo.similar_anchors([text for row in seen for text in row], threshold=self.similarity)
                places = iter(flat)
                anchors = [[next(places) for _ in row] for row in seen]
            local = gigpo.step_advantages([self._returns(e) for e in rows], anchors, norm=self.norm)
            result += [gigpo.combined(a, s, omega=self.omega) for a, s in zip(episode_advantages, local)]
        return result

    def _returns(self, episode: Episode) -> FloatArray:
        valid = [step.kind != "malformed" for step in episode.steps]
        rewards = gigpo.penalise_invalid([s.reward for s in episode.steps], valid, coefficient=self.invalid_penalty)
        return gigpo.discounted_returns(rewards, gamma=self.gamma)


@dataclass(frozen=True)
class SharedPrefixes:
    """ARPO's hard attribution: a step that several branches share has the mean of their advantages."""

    def __call__(
        self,
        groups: Sequence[Group],
        advantages: Sequence[FloatArray],
        rewards: Sequence[FloatArray],
        readings: Readings,
    ) -> list[FloatArray]:
        """One advantage a step."""
        result: list[FloatArray] = []
        for group, values in zip(groups, advantages):
            # Masked rows stay in the tree, because others may have branched from them; they carry no advantage.
            nodes = arpo.prefix_nodes(
                [episode.parent for episode in group],
                [episode.branch_step if episode.parent is not None else 0 for episode in group],
                [len(episode.steps) for episode in group],
            )
            counted = [ids for ids, episode in zip(nodes, group) if not episode.masked]
            result += arpo.hard_attribution(values, counted)
        return result


@dataclass(frozen=True)
class ConfidenceWeights(Checked):
    """EAPO's factors: a correct episode's least certain thoughts, a wrong one's most certain (section 3.3)."""

    rho: Share = 0.2
    w_pos: NonNegative = 1.5
    w_neg: NonNegative = 1.5
    correct_threshold: Threshold = 0.5
    train_tool_call_tokens: bool = True
    """False takes eq. 10 to the letter: tokens of a tool call get no gradient."""

    def __call__(
        self, episodes: Sequence[Episode], layout: TokenLayout, advantages: FloatArray, readings: Readings
    ) -> FloatArray:
        """Weighted advantages."""
        call = layout.kind == KINDS.index("call")
        row = layout.episode
        weights = eapo.token_weights(
            layout.joined(episode.trace.logprobs for episode in episodes),
            layout.step,
            layout.written & ~call,
            correct=np.array([e.score >= self.correct_threshold for e in episodes])[row],
            used_tool=np.array([e.tool_calls > 0 for e in episodes])[row],
            rho=self.rho,
            w_pos=self.w_pos,
            w_neg=self.w_neg,
        )
        if not self.train_tool_call_tokens:
            weights[call] = 0.0
        return advantages * weights


@dataclass(frozen=True)
class WhitenedTokens(Checked):
    """REINFORCE++ with the divergence in the reward: A_t - beta * (KL still to come), whitened over the batch's tokens."""

    beta: NonNegative
    kind: KlKind = "k1"
    ddof: Ddof = 0

    def __call__(
        self, episodes: Sequence[Episode], layout: TokenLayout, advantages: FloatArray, readings: Readings
    ) -> FloatArray:
        """Whitened advantages. Raises ValueError without the reference's log-probabilities."""
        if readings.reference_logprobs is None:
            raise ValueError("a divergence in the reward needs Readings.reference_logprobs, from the starting policy")
        logprobs = layout.joined(episode.trace.logprobs for episode in episodes)
        reference = layout.joined(readings.reference_logprobs)
        penalties = -self.beta * kl.token_kl(logprobs, reference, layout.written, kind=self.kind)
        to_go = [
            reinforce_pp.returns_to_go(row, written > 0)
            for row, written in zip(layout.split(penalties), layout.split(layout.written.astype(np.float64)))
        ]
        return reinforce_pp.whiten(advantages + layout.joined(to_go), layout.written, ddof=self.ddof)


def _repeated(episodes: Sequence[Episode], advantages: Sequence[FloatArray]) -> FloatArray:
    return np.repeat(np.concatenate(advantages), [len(episode.steps) for episode in episodes])


def _by_episode(episodes: Sequence[Episode], flat: FloatArray) -> list[FloatArray]:
    return cut(flat, [len(episode.steps) for episode in episodes])
