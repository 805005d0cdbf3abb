"""GRPO and its two critic-free relatives, Dr. GRPO and RLOO.

A group G is M episodes of one task with scalar returns R_i. Each rule gives one advantage per episode, which every
token of that episode shares (:func:`agentic_gym.trainers.credit.tokens.spread`).

Sources: GRPO, arXiv 2402.03300; Dr. GRPO, arXiv 2503.20783; RLOO, arXiv 2402.14740.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from agentic_gym.trainers.credit._arrays import FloatArray, deviations, divided, one_of, vector


def group_advantages(returns: ArrayLike, *, ddof: int = 1, eps: float = 1e-6, divide_by_std: bool = True) -> FloatArray:
    """Return A_i = (R_i - mean_G) / (std_G + eps).

    Args:
        returns: R, shape (M,), any finite range.
        ddof: 1 for the sample standard deviation (the common implementation), 0 for the population one.
        eps: added to the standard deviation.
        divide_by_std: False gives Dr. GRPO, A_i = R_i - mean_G.

    Returns:
        A, shape (M,). All zero when every return is equal; a group of one has no baseline, so A = R.

    >>> group_advantages([1, 0, 0, 1]).round(4).tolist()
    [0.866, -0.866, -0.866, 0.866]
    """
    values = vector("returns", returns)
    one_of("ddof", ddof, (0, 1))
    if not eps >= 0:
        raise ValueError(f"eps must not be negative, got {eps}")
    if values.size == 1:
        return np.copy(values)
    centred, std = deviations(values, ddof=ddof)
    return divided(centred, std + eps) if divide_by_std else centred


def dr_grpo_advantages(returns: ArrayLike) -> FloatArray:
    """Return A_i = R_i - mean_G, shape (M,): no division, which would favour very easy and very hard tasks."""
    return group_advantages(returns, divide_by_std=False)


def rloo_advantages(returns: ArrayLike) -> FloatArray:
    """Return A_i = R_i - mean of the *other* returns = M / (M - 1) (R_i - mean_G), shape (M,).

    A group of one has no others: A = R.

    >>> rloo_advantages([1, 0, 0, 0]).round(4).tolist()
    [1.0, -0.3333, -0.3333, -0.3333]
    """
    values = vector("returns", returns)
    if values.size == 1:
        return np.copy(values)
    centred, _ = deviations(values)
    return divided(centred, 1.0 - 1.0 / values.size) if values.size else centred
