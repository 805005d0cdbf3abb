"""Outcome-supervised value baseline, TRIAGE's second rival: a value head on the policy's backbone instead of a judge.

V(s_k) is predicted at the start of segment k and trained on the episode's final return alone. The paper does not
print its form; ours offers both usual ones. GAE, for a critic per token, is here as well.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from agentic_gym.trainers.credit._arrays import FloatArray, bounded, flags, one_of, saturated, vector
from agentic_gym.trainers.credit.triage import corrected

ValueForm = Literal["baseline", "progress"]
FORMS = get_args(ValueForm)


def segment_advantages(
    outcome: float, values: ArrayLike, *, form: str = "baseline", advantage: float = 0.0, lam: float = 1.0
) -> FloatArray:
    """Return one advantage per segment of an episode, not yet whitened.

    Args:
        outcome: the episode's return R.
        values: V(s_k) at the start of each segment, shape (K,).
        form: "baseline" is R - V(s_k). "progress" is A + lambda (V(s_{k+1}) - V(s_k)), with R in place of V after the
            last segment.
        advantage: GRPO's A, for "progress".
        lam: lambda >= 0, for "progress".

    Returns:
        Shape (K,).

    >>> segment_advantages(1.0, [0.25, 0.75]).tolist()
    [0.75, 0.25]
    >>> segment_advantages(1.0, [0.25, 0.75], form="progress").tolist()
    [0.5, 0.25]
    """
    one_of("form", form, FORMS)
    v = vector("values", values)
    end = vector("outcome", [outcome])
    if form == "baseline":
        return corrected(end[0], -v, lam=1.0)
    return corrected(advantage, np.diff(saturated(np.concatenate([v, end]), 2)), lam=lam)


def value_loss(values: ArrayLike, old_values: ArrayLike, target: ArrayLike, *, clip: float = 0.5) -> FloatArray:
    """Return 0.5 max((V - R)^2, (V_clipped - R)^2) per segment, V_clipped within ``clip`` of the old value, shape
    (K,).

    ``target`` is one return or one per segment; ``clip=inf`` is the plain squared error.
    """
    v = vector("values", values)
    old = vector("old_values", old_values, v.size)
    goal = vector("target", np.broadcast_to(target, v.shape) if np.ndim(target) == 0 else target, v.size)
    if not clip >= 0:
        raise ValueError(f"clip must not be negative, got {clip}")
    with np.errstate(over="ignore"):
        near = np.clip(v, old - clip, old + clip)
        return bounded(0.5 * np.maximum((v - goal) ** 2, (near - goal) ** 2))


def gae(rewards: ArrayLike, values: ArrayLike, mask: ArrayLike, *, gamma: float = 1.0, lam: float = 1.0) -> FloatArray:
    """Return generalised advantage estimates along the trained tokens of one episode, 0 elsewhere.

    Tool results are stepped over: the value after a trained token is that of the next trained one. A reward on a
        masked token counts for the trained token before it.

    Args:
        rewards, values: per token, shape (T,); values of masked tokens are not read.
        mask: True for trained tokens, shape (T,).
        gamma, lam: in [0, 1].

    Returns:
        Shape (T,).
    """
    trained = flags("mask", mask)
    reward = vector("rewards", rewards, trained.size)
    result = np.zeros(trained.size)
    v = vector("values", values, trained.size, finite=False)
    vector("values of trained tokens", v[trained])
    reward, v = (saturated(x, 4 * trained.size) for x in (reward, v))
    for name, factor in (("gamma", gamma), ("lam", lam)):
        if not 0 <= factor <= 1:
            raise ValueError(f"{name} must lie in [0, 1], got {factor}")
    following_value = following_advantage = pending = 0.0
    for t in range(trained.size - 1, -1, -1):
        pending += float(reward[t])
        if trained[t]:
            delta = pending + gamma * following_value - float(v[t])
            following_advantage = delta + gamma * lam * following_advantage
            following_value, pending = float(v[t]), 0.0
            result[t] = following_advantage
    return result
