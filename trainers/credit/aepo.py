"""AEPO: ARPO with a pre-monitored budget split, a penalty on consecutive branching and entropy-weighted advantages.

The fourth part, the clip that keeps the gradient of high-ratio tokens, is in
:func:`agentic_gym.trainers.credit.losses.policy_loss` (``keep_clipped_gradient``). Formulas as in the released
code, which differs from the paper's text in the branching rule (:func:`branch_probability`). Source: arXiv
2510.14545.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from agentic_gym.trainers.credit._arrays import FloatArray, bounded, deviations, divided, flags, one_of, vector


def initial_rollouts(budget: int, entropy_root: float, entropy_tool: float, *, beta: float = 0.5) -> int:
    """Return how many of ``budget`` rows start at the prompt: clip(int(k sigmoid(beta (H_root - H_tool))) + 1, 1, k).

    Args:
        budget: k >= 1, rows of the group.
        entropy_root: entropy of the probe's first tokens.
        entropy_tool: mean entropy of the probe's segments after tool results.
        beta: steepness.

    >>> initial_rollouts(16, 1.0, 1.0)
    9
    """
    if budget < 1:
        raise ValueError(f"budget must be at least 1, got {budget}")
    if not (math.isfinite(entropy_root) and math.isfinite(entropy_tool)):
        raise ValueError(f"entropies must be finite, got {entropy_root} and {entropy_tool}")
    x = beta * (entropy_root - entropy_tool)
    sigmoid = 0.5 * (1.0 + math.tanh(0.5 * x))  # the same function, without overflow
    return min(budget, int(budget * sigmoid) + 1)


def branch_probability(
    entropy_now: float,
    entropy_initial: float,
    consecutive: int,
    *,
    weight: float = 0.2,
    base: float = 0.5,
    penalty: float = 0.05,
) -> float:
    """Return P(branch) under the code's rule: with u uniform, branch iff (u + weight dH) f >= base, f = max(0, 1 -
    penalty l).

    Args:
        entropy_now, entropy_initial, weight: as in :func:`agentic_gym.trainers.credit.arpo.branch_probability`.
        consecutive: l >= 0, branches already made for this question.
        base: threshold; note that here a *larger* base means fewer branches.
        penalty: loss of the factor f per branch.

    Returns:
        clip(1 + weight dH - base / f, 0, 1), and 0 once f has reached 0 (for a positive base).

    >>> round(branch_probability(1.0, 1.0, consecutive=4), 4)
    0.375
    """
    for name, value in (("entropy_now", entropy_now), ("entropy_initial", entropy_initial)):
        if not math.isfinite(value):
            raise ValueError(f"{name} must be finite, got {value}")
    if consecutive < 0:
        raise ValueError(f"consecutive must not be negative, got {consecutive}")
    factor = max(0.0, 1.0 - penalty * consecutive)
    if base <= 0:
        return 1.0
    if factor == 0:
        return 0.0
    return min(1.0, max(0.0, 1.0 + weight * (entropy_now - entropy_initial) - base / factor))


def entropy_scaled(
    advantages: ArrayLike, entropies: ArrayLike, mask: ArrayLike, *, alpha: float = 0.2, ddof: int = 0
) -> FloatArray:
    """Return A_t * max(0, 1 + alpha z_t), z the token entropies standardised over the trained tokens.

    Args:
        advantages: A, shape (T,); T may run over a whole batch.
        entropies: entropy of the *current* policy at each token, in nats, shape (T,); detached.
        mask: True for trained tokens, shape (T,); masked entries are not read.
        alpha: strength.
        ddof: 0 for the population standard deviation, 1 for the sample one. A deviation of 0 leaves A unchanged.

    Returns:
        Shape (T,), exactly 0 on masked tokens. The sign of A is kept: the factor is clamped at 0.

    >>> entropy_scaled([1.0, 1.0, 1.0], [2.0, 0.0, 9.0], mask=[1, 1, 0]).tolist()
    [1.2, 0.8, 0.0]
    """
    trained = flags("mask", mask)
    one_of("ddof", ddof, (0, 1))
    a = vector("advantages of trained tokens", vector("advantages", advantages, trained.size, finite=False)[trained])
    h = vector("entropies of trained tokens", vector("entropies", entropies, trained.size, finite=False)[trained])
    centred, std = deviations(h, ddof=ddof)
    z = divided(centred, std)
    result = np.zeros(trained.size)
    with np.errstate(over="ignore"):
        result[trained] = bounded(a * np.maximum(0.0, 1.0 + alpha * z))
    return result
