"""The algorithms by name. Adding one is one function and one line in ``ALGORITHMS``.

Each function's keyword arguments are the algorithm's parameters, with the paper's defaults. Every algorithm also takes the fields
of ``LossVariant`` (clip_high, aggregation, kl_coefficient, ...) and ``dynamic_sampling``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Literal, get_type_hints

from agentic_gym.episodes import Episode
from agentic_gym.ranges import Count, Natural, NonNegative, Share, check
from agentic_gym.tasks import near
from agentic_gym.trainers.advantages import (
    AnchorCredit,
    BatchWhitened,
    ConfidenceWeights,
    Ddof,
    GroupRelative,
    LeaveOneOut,
    RawReturns,
    RoleCredit,
    ScoreCredit,
    SharedPrefixes,
    ValueCredit,
    WhitenedTokens,
)
from agentic_gym.trainers.algorithm import Algorithm, BatchCredit, Branching, LossVariant, Readings, RolloutPlan
from agentic_gym.trainers.credit.eapo import Threshold
from agentic_gym.trainers.credit.gigpo import Norm
from agentic_gym.trainers.credit.kl import KlKind
from agentic_gym.trainers.credit.triage import LAMBDA
from agentic_gym.trainers.credit.value import ValueForm
from agentic_gym.trainers.shaping import EfficiencyShaping, MultiToolReward, OutcomeReward, ToolProductivity

__all__ = [
    "ALGORITHMS",
    "Algorithm",
    "BatchCredit",
    "Branching",
    "LossVariant",
    "Readings",
    "RolloutPlan",
    "make_algorithm",
]


Lambda = NonNegative | Literal["ALFWorld", "WebShop", "SearchQA"]
"""TRIAGE's lambda, or the environment of the paper whose lambda it is."""


def grpo(*, group_size: Count = 16, ddof: Ddof = 1, bad_format: float | None = -1.0) -> Algorithm:
    """GRPO (arXiv 2402.03300)."""
    return Algorithm("grpo", OutcomeReward(bad_format), GroupRelative(ddof=ddof), RolloutPlan(group_size))


def dr_grpo(*, group_size: Count = 16, bad_format: float | None = -1.0) -> Algorithm:
    """Dr. GRPO (arXiv 2503.20783): no division by the standard deviation, none by the length."""
    loss = LossVariant(aggregation="seq-mean-token-sum-norm")
    advantage = GroupRelative(divide_by_std=False)
    return Algorithm("dr_grpo", OutcomeReward(bad_format), advantage, RolloutPlan(group_size), loss=loss)


def rloo(*, group_size: Count = 16, bad_format: float | None = -1.0) -> Algorithm:
    """RLOO (arXiv 2402.14740): the baseline is the mean of the other rows."""
    return Algorithm("rloo", OutcomeReward(bad_format), LeaveOneOut(), RolloutPlan(group_size))


def reinforce_pp(
    *,
    group_size: Count = 16,
    beta: NonNegative = 0.0,
    kl_in_reward: KlKind = "k1",
    ddof: Ddof = 0,
    bad_format: float | None = -1.0,
) -> Algorithm:
    """REINFORCE++ (arXiv 2501.03262): whitened over the batch's tokens; ``beta`` weighs the divergence in the reward."""
    plan, reward = RolloutPlan(group_size), OutcomeReward(bad_format)
    if beta == 0:
        return Algorithm("reinforce_pp", reward, BatchWhitened(ddof=ddof), plan)
    tokens = WhitenedTokens(beta, kl_in_reward, ddof)
    return Algorithm("reinforce_pp", reward, RawReturns(), plan, tokens=tokens, needs_reference=True)


def reinforce_pp_baseline(*, group_size: Count = 16, ddof: Ddof = 0, bad_format: float | None = -1.0) -> Algorithm:
    """REINFORCE++ with the group's mean as a baseline; a divergence is a k2 loss."""
    advantage = BatchWhitened(group_baseline=True, ddof=ddof)
    loss = LossVariant(kl_kind="k2")
    return Algorithm("reinforce_pp_baseline", OutcomeReward(bad_format), advantage, RolloutPlan(group_size), loss=loss)


def otc(
    *,
    group_size: Count = 16,
    limit: Natural = 3,
    alpha: NonNegative = 1.0,
    ppo: bool = False,
    correct_threshold: Threshold = 0.5,
    bad_format: float | None = 0.0,
) -> Algorithm:
    """OTC (arXiv 2504.14870): ``limit`` is the environment's call limit; ``ppo`` takes the form that knows no optimum."""
    shaping = ToolProductivity(OutcomeReward(bad_format), limit, alpha, correct_threshold, remember=not ppo)
    return Algorithm("otc", shaping, GroupRelative(), RolloutPlan(group_size))


def toolstar(*, group_size: Count = 8, bonus: float = 0.1, bad_format: float = -1.0) -> Algorithm:
    """Tool-Star (arXiv 2505.16410): GRPO on the multi-tool reward. Limit the calls with ``ToolBudget`` (3 in the paper)."""
    return Algorithm("toolstar", MultiToolReward(bonus, bad_format), GroupRelative(), RolloutPlan(group_size))


def arpo(
    *,
    group_size: Count = 16,
    initial: Count = 8,
    beam: Count = 2,
    branch_probability: Share = 0.5,
    entropy_weight: NonNegative = 0.2,
    attribution: Literal["soft", "hard"] = "soft",
    bonus: float = 0.1,
    bad_format: float = -1.0,
) -> Algorithm:
    """ARPO (arXiv 2507.19849): rows branch after tool results."""
    branching = Branching(initial, beam, branch_probability, entropy_weight)
    return Algorithm(
        "arpo",
        MultiToolReward(bonus, bad_format),
        GroupRelative(),
        RolloutPlan(group_size, branching=branching),
        segments=SharedPrefixes() if attribution == "hard" else None,
    )


def aepo(
    *,
    group_size: Count = 16,
    initial: Count = 8,
    beam: Count = 2,
    branch_probability: Share = 0.5,
    entropy_weight: NonNegative = 0.2,
    penalty: NonNegative = 0.05,
    dynamic_rollouts: bool = False,
    entropy_clipping: bool = True,
    entropy_advantage: NonNegative = 0.2,
    bonus: float = 0.1,
    bad_format: float = -1.0,
) -> Algorithm:
    """AEPO (arXiv 2510.14545): ARPO with a branch penalty, kept gradients above the clip, and entropy-scaled advantages."""
    return Algorithm(
        "aepo",
        MultiToolReward(bonus, bad_format),
        GroupRelative(),
        RolloutPlan(
            group_size,
            branching=Branching(initial, beam, branch_probability, entropy_weight, penalty, dynamic_rollouts),
        ),
        loss=LossVariant(keep_clipped_gradient=entropy_clipping, entropy_alpha=entropy_advantage),
    )


def gigpo(
    *,
    group_size: Count = 8,
    omega: NonNegative = 1.0,
    gamma: Share = 0.95,
    norm: Norm = "std",
    similarity: Share | None = None,
    invalid_penalty: NonNegative = 0.1,
    bad_format: float | None = None,
) -> Algorithm:
    """GiGPO (arXiv 2505.10978): an episode advantage plus one among steps at equal observations."""
    return Algorithm(
        "gigpo",
        OutcomeReward(bad_format),
        GroupRelative(divide_by_std=norm == "std"),
        RolloutPlan(group_size),
        segments=AnchorCredit(omega, gamma, norm, similarity, invalid_penalty),
        loss=LossVariant(kl_coefficient=0.01),
    )


def eapo(
    *,
    group_size: Count = 16,
    tool_free: Natural = 2,
    beta: NonNegative = 1.0,
    rho: Share = 0.2,
    w_pos: NonNegative = 1.5,
    w_neg: NonNegative = 1.5,
    correct_threshold: Threshold = 0.5,
    shape_negative: bool = False,
    train_tool_call_tokens: bool = True,
    bad_format: float | None = -1.0,
) -> Algorithm:
    """EAPO (arXiv 2606.02132): tool-free quota, difficulty-aware shaping, confidence-aware token weights."""
    return Algorithm(
        "eapo",
        EfficiencyShaping(
            OutcomeReward(bad_format), beta=beta, correct_threshold=correct_threshold, shape_negative=shape_negative
        ),
        GroupRelative(),
        RolloutPlan(group_size, tool_free),
        tokens=ConfidenceWeights(rho, w_pos, w_neg, correct_threshold, train_tool_call_tokens),
    )


def triage(
    *, group_size: Count = 8, lam: Lambda = 0.2, whiten: bool = True, bad_format: float | None = None
) -> Algorithm:
    """TRIAGE (arXiv 2606.32017): GRPO plus lambda c_role a step. The environment needs ``RoleLabels``.

    ``lam`` may name an environment of the paper (ALFWorld, WebShop, SearchQA) to take its lambda.
    """
    return Algorithm(
        "triage",
        OutcomeReward(bad_format),
        GroupRelative(),
        RolloutPlan(group_size),
        segments=RoleCredit(_lambda(lam), whiten),
    )


def progress_scores(episode: Episode) -> Sequence[float | None]:
    """The judge's number of each step. ValueError where no step has one."""
    scores = [step.judged for step in episode.steps]
    if scores and all(score is None for score in scores):
        raise ValueError(
            "triage_scalar needs a score a step: info['step_scores'] at the end of an episode, one number in [-1, 1] (or None) "
            "a step; or pass scores=, a function of the episode"
        )
    return scores


def triage_scalar(
    *,
    group_size: Count = 8,
    lam: Lambda = 0.2,
    whiten: bool = True,
    bad_format: float | None = None,
    scores: Callable[[Episode], Sequence[float | None]] = progress_scores,
) -> Algorithm:
    """TRIAGE's rival: the judge gives a number a step instead of a role. ``scores`` tells where the numbers are."""
    return Algorithm(
        "triage_scalar",
        OutcomeReward(bad_format),
        GroupRelative(),
        RolloutPlan(group_size),
        segments=ScoreCredit(scores, _lambda(lam), whiten),
    )


def value_baseline(
    *,
    group_size: Count = 8,
    form: ValueForm = "baseline",
    lam: Lambda = 0.2,
    whiten: bool = True,
    bad_format: float | None = None,
    value_coefficient: NonNegative = 0.5,
) -> Algorithm:
    """TRIAGE's other rival: a value head on the policy's backbone, trained on outcomes."""
    return Algorithm(
        "value_baseline",
        OutcomeReward(bad_format),
        GroupRelative(),
        RolloutPlan(group_size),
        segments=ValueCredit(form, _lambda(lam), whiten),
        loss=LossVariant(value_coefficient=value_coefficient),
    )


def eapo_triage(*, lam: Lambda = 0.2, whiten: bool = True, **parameters: Any) -> Algorithm:
    """EAPO's rollout, shaping and token weights with TRIAGE's step credit."""
    return eapo(**parameters).replaced(name="eapo+triage", segments=RoleCredit(_lambda(lam), whiten))


ALGORITHMS: dict[str, Callable[..., Algorithm]] = {
    "grpo": grpo,
    "dr_grpo": dr_grpo,
    "rloo": rloo,
    "reinforce_pp": reinforce_pp,
    "reinforce_pp_baseline": reinforce_pp_baseline,
    "otc": otc,
    "toolstar": toolstar,
    "arpo": arpo,
    "aepo": aepo,
    "gigpo": gigpo,
    "eapo": eapo,
    "triage": triage,
    "triage_scalar": triage_scalar,
    "value_baseline": value_baseline,
    "eapo+triage": eapo_triage,
}
"""name -> factory; its keyword arguments are the algorithm's parameters."""


def make_algorithm(name: str, **parameters: Any) -> Algorithm:
    """The algorithm called ``name``. Raises ValueError naming the nearest right name or parameter, or the range of a value.

    Example:
        >>> make_algorithm("eapo", beta=0.5).plan
        RolloutPlan(group_size=16, tool_free=2, branching=None)
        >>> make_algorithm("grpo", clip_high=0.28).loss.clip_high
        0.28
    """
    if name not in ALGORITHMS:
        raise ValueError(f"unknown algorithm {name!r}.{near(name, ALGORITHMS)} Known: {', '.join(ALGORITHMS)}")
    own = _parameters(ALGORITHMS[name])
    shared = {key: kind for key, kind in _SHARED.items() if key not in own}
    for key, value in parameters.items():
        if key not in own and key not in shared:
            known = sorted((*own, *shared))
            raise ValueError(f"{name} has no parameter {key!r}.{near(key, known)} It has: {', '.join(known)}")
        check(f"{name}'s {key}", value, own.get(key, shared.get(key)))
    algorithm = ALGORITHMS[name](**{key: value for key, value in parameters.items() if key in own})
    return algorithm.replaced(**{key: value for key, value in parameters.items() if key in shared})


_SHARED = {"dynamic_sampling": bool, **get_type_hints(LossVariant, include_extras=True)}
"""What every algorithm takes: name -> annotation."""


def _parameters(factory: Callable[..., Algorithm]) -> dict[str, Any]:
    """The parameters of an algorithm: name -> annotation."""
    kinds = get_type_hints(factory, include_extras=True)
    found: dict[str, Any] = {}
    for parameter in inspect.signature(factory).parameters.values():
        # A composition passes what it does not know to EAPO.
        of_eapo = parameter.kind is parameter.VAR_KEYWORD
        found |= _parameters(eapo) if of_eapo else {parameter.name: kinds[parameter.name]}
    return found


def _lambda(lam: Lambda) -> float:
    return LAMBDA[lam] if isinstance(lam, str) else lam
