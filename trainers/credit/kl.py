"""Per-token estimators of KL(policy || reference), and where each belongs.

With d = logp - logp_ref of the sampled token: k1 = d, k2 = d^2 / 2, k3 = exp(-d) - 1 + d. In the *reward*
(:func:`agentic_gym.trainers.credit.reinforce_pp.token_rewards`) the value is what counts: k1 and k3 are unbiased.
In the *loss* the gradient is what counts: that of k2 is the gradient of the true KL, which is why "k3+" (the value
of k3, the gradient of k2) exists.
Source: J. Schulman, "Approximating KL divergence" (2020); the clamps are those of verl.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from agentic_gym.trainers.credit._arrays import BoolArray, FloatArray, bounded, flags, one_of, vector

KlKind = Literal["k1", "k2", "k3", "k3+"]
KINDS = get_args(KlKind)

LOG_RATIO_LIMIT = 20.0
"""A log-ratio is clamped to +- this before it is exponentiated."""

K3_LIMIT = 10.0
"""k3 is clamped to +- this."""


def _log_ratio(logp: ArrayLike, logp_ref: ArrayLike, mask: ArrayLike) -> tuple[FloatArray, BoolArray]:
    trained = flags("mask", mask)
    policy = vector("logp", logp, trained.size, finite=False)[trained]
    reference = vector("logp_ref", logp_ref, trained.size, finite=False)[trained]
    policy, reference = vector("logp of trained tokens", policy), vector("logp_ref of trained tokens", reference)
    with np.errstate(over="ignore"):
        return bounded(policy - reference), trained


def token_kl(logp: ArrayLike, logp_ref: ArrayLike, mask: ArrayLike, *, kind: str = "k3") -> FloatArray:
    """Return the estimate per token, shape (T,), exactly 0 on masked tokens.

    Args:
        logp, logp_ref: log-probability of the sampled token under policy and reference, shape (T,).
        mask: True for trained tokens, shape (T,); masked entries are not read.
        kind: "k1" (any sign), "k2" or "k3" (never negative), "k3+" (same value as k3).

    >>> token_kl([-1.0, -1.0], [-1.5, 0.0], mask=[1, 0], kind="k3").round(4).tolist()
    [0.1065, 0.0]
    """
    one_of("kind", kind, KINDS)
    d, trained = _log_ratio(logp, logp_ref, mask)
    result = np.zeros(trained.size)
    if kind == "k1":
        result[trained] = d
    elif kind == "k2":
        result[trained] = 0.5 * np.clip(d, -1e150, 1e150) ** 2
    else:
        inverse = np.clip(-d, -LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)
        result[trained] = np.clip(np.exp(inverse) - inverse - 1.0, -K3_LIMIT, K3_LIMIT)
    return result


def token_kl_gradient(logp: ArrayLike, logp_ref: ArrayLike, mask: ArrayLike, *, kind: str = "k3") -> FloatArray:
    """Return d(token_kl)/d(logp) per token, shape (T,): the reference a differentiable version is tested against.

    Zero on masked tokens and where a clamp of k3 is active.
    """
    one_of("kind", kind, KINDS)
    d, trained = _log_ratio(logp, logp_ref, mask)
    result = np.zeros(trained.size)
    if kind == "k1":
        result[trained] = 1.0
    elif kind in ("k2", "k3+"):
        result[trained] = d
    else:
        inverse = np.clip(-d, -LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)
        inside = (np.abs(d) < LOG_RATIO_LIMIT) & (np.exp(inverse) - inverse - 1.0 < K3_LIMIT)
        result[trained] = np.where(inside, 1.0 - np.exp(inverse), 0.0)
    return result
