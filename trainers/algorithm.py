"""What an algorithm is: five parts, each replaceable alone.

rollout plan -> reward shaping -> advantage -> segment credit -> token credit (and the loss variant for the objective).

``Algorithm.credit(groups)`` is pure: whole groups in, one advantage a token out. Parts see everything that a group
records (roles, spans, executed calls, tool-free flags), not a fixed list of arrays.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Protocol, get_args, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agentic_gym.episodes import Episode, Group, SpanKind
from agentic_gym.ranges import Checked, Count, Natural, NonNegative, Range, Share
from agentic_gym.roles import Role
from agentic_gym.trainers.credit import aepo as aepo_rules
from agentic_gym.trainers.credit import arpo as arpo_rules
from agentic_gym.trainers.credit import sampling, tokens
from agentic_gym.trainers.credit.kl import KlKind
from agentic_gym.trainers.credit.losses import Aggregation

__all__ = [
    "Advantage",
    "Algorithm",
    "BatchCredit",
    "Branching",
    "FloatArray",
    "LossVariant",
    "Readings",
    "RolloutPlan",
    "SegmentCredit",
    "Shaping",
    "Stateful",
    "TokenCredit",
    "TokenLayout",
    "cut",
    "trainable",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

KINDS: tuple[SpanKind, ...] = get_args(SpanKind)
"""Span kinds by number, as ``TokenLayout.kind`` holds them."""


@dataclass(frozen=True)
class Branching(Checked):
    """Spend part of a group's rows on copies of running episodes, made right after a tool result (ARPO, AEPO)."""

    initial: Count = 8
    """Rows that start at the prompt; the others are branches, or fresh rows where too few branches happen."""
    beam: Count = 2
    """A row gives at most ``beam - 1`` branches after one tool result."""
    base: Share = 0.5
    """Branching probability without an entropy jump (under AEPO's rule: the threshold)."""
    weight: NonNegative = 0.2
    """How strongly the entropy jump counts."""
    penalty: NonNegative | None = None
    """None: ARPO's rule. A number: AEPO's, with this loss of probability per branch already made for the task."""
    monitored: bool = False
    """AEPO's dynamic rollout: one row goes ahead, and its entropies decide how many start at the prompt."""

    def probability(self, entropy: float, initial: float, made: int) -> float:
        """P(branch) of one copy; ``made``: branches already made for the task."""
        if self.penalty is None:
            return arpo_rules.branch_probability(entropy, initial, weight=self.weight, base=self.base)
        return aepo_rules.branch_probability(
            entropy, initial, made, weight=self.weight, base=self.base, penalty=self.penalty
        )


@dataclass(frozen=True)
class RolloutPlan(Checked):
    """How the M episodes of one task are drawn."""

    group_size: Count = 16
    """M."""
    tool_free: Natural = 0
    """n: how many of them are forced to do without tools."""
    branching: Branching | None = None
    """None: all rows start at the prompt."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tool_free > self.group_size:
            raise ValueError(f"tool_free must be from 0 to {self.group_size} (group_size), got {self.tool_free}")
        initial = 0 if self.branching is None else self.branching.initial
        if initial + self.tool_free > self.group_size:
            raise ValueError(
                f"initial and tool-free rows must fit into the group: group_size must be at least {initial} + "
                f"{self.tool_free}, got {self.group_size}"
            )


@dataclass(frozen=True)
class LossVariant(Checked):
    """The clipped objective's settings (see ``trainers.objective``)."""

    clip_low: Share = 0.2
    clip_high: NonNegative = 0.2
    dual_clip: Annotated[float, Range(above=1)] | None = 3.0
    """Bound c > 1 on the loss of a negative advantage; None is off."""
    aggregation: Aggregation = "token-mean"
    """Over the tokens of a mini-batch (``credit.losses.aggregate``)."""
    kl_coefficient: NonNegative = 0.0
    """Weight of the divergence from the starting policy, as a loss."""
    kl_kind: KlKind = "k3"
    """See ``credit.kl``."""
    keep_clipped_gradient: bool = False
    """AEPO: above the clip range the gradient is kept, the value clipped."""
    entropy_alpha: NonNegative = 0.0
    """AEPO: advantages are multiplied by 1 + alpha z, z the present policy's entropy standardised over the mini-batch."""
    ratio: Literal["token", "sequence"] = "token"
    """token, or sequence (GSPO: one ratio a row)."""
    mismatch: Literal["token", "sequence"] | None = None
    """Correction for a sampler that is not the trainer: token (TIS) or sequence (MIS); None trusts the sampler."""
    mismatch_cap: Annotated[float, Range(least=1)] = 2.0
    """Largest weight of the correction."""
    value_coefficient: NonNegative = 0.0
    """Weight of the value head's loss; 0 has no head."""


@dataclass(frozen=True)
class Readings:
    """What only the model can tell about the trainable episodes of a batch; None where nobody asked."""

    reference_logprobs: list[FloatArray] | None = None
    """log-probability of each token under the starting policy, (T,) an episode."""
    values: list[FloatArray] | None = None
    """V at the start of each step, (K,) an episode."""


@dataclass(frozen=True)
class TokenLayout:
    """The tokens of a batch, end to end, T in all."""

    lengths: IntArray
    """Tokens of each episode."""
    step: IntArray
    """(T,): the step that each token belongs to, counted over the whole batch; -1 in a prompt or observation."""
    kind: IntArray
    """(T,): index into ``KINDS``."""

    @classmethod
    def of(cls, episodes: Sequence[Episode]) -> TokenLayout:
        """Read the spans of ``episodes``."""
        number = {kind: index for index, kind in enumerate(KINDS)}
        spans: list[tuple[int, int, int]] = []
        first = 0
        for episode in episodes:
            spans += [(end - start, first + step, number[kind]) for step, kind, start, end in episode.trace.spans]
            first += len(episode.steps)
        counts, steps, kinds = np.array(spans, dtype=np.int64).reshape(-1, 3).T
        read = (kinds == number["prompt"]) | (kinds == number["observation"])
        return cls(
            np.array([len(episode.trace) for episode in episodes], dtype=np.int64),
            np.repeat(np.where(read, -1, steps), counts),
            np.repeat(kinds, counts),
        )

    @property
    def written(self) -> NDArray[np.bool_]:
        """(T,): whether the model wrote the token."""
        return self.step >= 0

    @property
    def episode(self) -> IntArray:
        """(T,): the episode that each token belongs to."""
        return np.repeat(np.arange(self.lengths.size), self.lengths)

    def split(self, flat: FloatArray) -> list[FloatArray]:
        """Cut a (T,) array into one array an episode."""
        return cut(flat, self.lengths.tolist())

    def joined(self, rows: Iterable[ArrayLike]) -> FloatArray:
        """The inverse of ``split``."""
        parts: list[FloatArray] = [np.asarray(row, dtype=np.float64) for row in rows]
        return np.concatenate(parts) if parts else np.zeros(0)


class Shaping(Protocol):
    """Rewards of a group's trainable episodes."""

    def __call__(self, group: Group) -> FloatArray:
        """One reward an episode of ``group.trainable``, shape (M,)."""
        ...


class Advantage(Protocol):
    """Advantages of whole episodes; sees the batch, so that it may normalise over it."""

    def __call__(self, groups: Sequence[Group], rewards: Sequence[FloatArray]) -> list[FloatArray]:
        """One array (M,) a group."""
        ...


class SegmentCredit(Protocol):
    """Advantages of steps; sees the batch, so that it may whiten over it."""

    def __call__(
        self,
        groups: Sequence[Group],
        advantages: Sequence[FloatArray],
        rewards: Sequence[FloatArray],
        readings: Readings,
    ) -> list[FloatArray]:
        """One advantage a step, shape (K,), for each trainable episode of the batch in turn.

        ``advantages`` and ``rewards`` hold one array (M,) a group.
        """
        ...


class TokenCredit(Protocol):
    """Changes the advantages of tokens; sees the batch."""

    def __call__(
        self, episodes: Sequence[Episode], layout: TokenLayout, advantages: FloatArray, readings: Readings
    ) -> FloatArray:
        """New advantages, shape (T,) over the whole batch."""
        ...


@runtime_checkable
class Stateful(Protocol):
    """A part that remembers something between batches, so that a checkpoint has to keep it."""

    def state_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The inverse of ``state_dict``."""
        ...


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
    steps: list[FloatArray] = field(default_factory=list)
    """Advantage of each step before token credit, (K,) an episode."""
    values: list[FloatArray] | None = None
    """V at the start of each step, (K,) an episode, where there is a value head."""


@dataclass(frozen=True)
class Algorithm:
    """A credit rule: the five parts under a name."""

    name: str
    shaping: Shaping
    advantage: Advantage
    plan: RolloutPlan = RolloutPlan()
    segments: SegmentCredit | None = None
    """None: every step has its episode's advantage."""
    tokens: TokenCredit | None = None
    """None: every token has its step's advantage."""
    loss: LossVariant = LossVariant()
    dynamic_sampling: bool = False
    """Leave out groups whose shaped rewards are all equal; the share is reported."""
    needs_reference: bool = False
    """Whether ``credit`` has to be told ``Readings.reference_logprobs``."""

    @property
    def needs_values(self) -> bool:
        """Whether ``credit`` has to be told ``Readings.values``."""
        return self.loss.value_coefficient > 0

    def credit(self, groups: Sequence[Group], readings: Readings | None = None) -> BatchCredit:
        """Advantages of every token of every trainable episode.

        Pure but for what a stateful part remembers; calling it twice with the same groups changes nothing.

        Args:
            groups: the batch. Masked episodes are left out.
            readings: what the model says about ``trainable(groups)``, in that order, where the algorithm needs it.
        """
        readings = readings or Readings()
        groups = [group for group in groups if group.trainable]
        if not groups:
            return BatchCredit([], [], np.zeros(0))
        rewards = [self.shaping(group) for group in groups]
        advantages = self.advantage(groups, rewards)
        episodes = trainable(groups)
        counts = [len(episode.steps) for episode in episodes]
        if self.segments is None:
            flat = np.repeat(np.concatenate(advantages), counts)
            per_step = cut(flat, counts)
        else:
            per_step = self.segments(groups, advantages, rewards, readings)
            flat = np.concatenate(per_step)
        layout = TokenLayout.of(episodes)
        per_token = tokens.spread(flat, layout.step, layout.written)
        if self.tokens is not None:
            per_token = np.where(layout.written, self.tokens(episodes, layout, per_token, readings), 0.0)
        result = BatchCredit(
            episodes,
            layout.split(per_token),
            np.concatenate(rewards),
            _metrics(episodes, rewards, flat),
            per_step,
            readings.values,
        )
        return _without_silent_groups(result, groups) if self.dynamic_sampling else result

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint has to keep, by part."""
        parts = {name: getattr(self, name) for name in ("shaping", "advantage", "segments", "tokens")}
        return {name: part.state_dict() for name, part in parts.items() if isinstance(part, Stateful)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The inverse of ``state_dict``."""
        for name, kept in state.items():
            getattr(self, name).load_state_dict(kept)

    def replaced(self, **changes: Any) -> Algorithm:
        """A copy with other fields; fields of the loss variant may be given directly."""
        of_loss = {f.name for f in dataclasses.fields(LossVariant)}
        loss = {key: value for key, value in changes.items() if key in of_loss}
        rest = {key: value for key, value in changes.items() if key not in of_loss}
        return dataclasses.replace(self, loss=dataclasses.replace(self.loss, **loss), **rest)


def cut(flat: FloatArray, counts: Sequence[int]) -> list[FloatArray]:
    """Cut an array into pieces of these lengths (``np.split`` takes ten times as long for many small pieces)."""
    ends = np.cumsum(counts).tolist()
    return [flat[end - count : end] for end, count in zip(ends, counts)]


def trainable(groups: Sequence[Group]) -> list[Episode]:
    """The episodes of ``groups`` that count, group by group."""
    return [episode for group in groups for episode in group.trainable]


def _without_silent_groups(credit: BatchCredit, groups: Sequence[Group]) -> BatchCredit:
    ids = np.repeat(np.arange(len(groups)), [len(group.trainable) for group in groups])
    result = sampling.informative(credit.rewards, ids)
    kept = np.flatnonzero(result.keep)
    return BatchCredit(
        [credit.episodes[i] for i in kept],
        [credit.advantages[i] for i in kept],
        credit.rewards[kept],
        {**credit.metrics, "credit/dropped_groups": result.dropped_share},
        [credit.steps[i] for i in kept],
        None if credit.values is None else [credit.values[i] for i in kept],
    )


def _metrics(episodes: Sequence[Episode], rewards: Sequence[FloatArray], steps: FloatArray) -> dict[str, float]:
    metrics = {
        "credit/reward": float(np.concatenate(rewards).mean()),
        "credit/advantage_std": float(steps.std()) if steps.size else 0.0,
        "credit/dead_groups": float(np.mean([np.ptp(r) == 0 for r in rewards])),
    }
    roles = Counter(step.role for episode in episodes for step in episode.steps)
    if set(roles) - {None}:
        for role in Role:
            metrics[f"roles/{role}"] = roles[role] / roles.total()
        metrics["roles/missing"] = roles[None] / roles.total()
    return metrics
