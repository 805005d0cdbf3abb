"""REINFORCE++: one baseline and one scale for the whole batch instead of one per group (arXiv 2501.03262).

Plain form: A_t = R - beta * sum_{i >= t} KL_i, then whitened over all trained tokens of the batch. "With baseline":
A' = R - mean_G(R), then whitened; the KL is a separate k2 loss (:mod:`agentic_gym.trainers.credit.kl`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from agentic_gym.trainers.credit._arrays import (
    FloatArray,
    bounded,
    deviations,
    divided,
    flags,
    one_of,
    saturated,
    vector,
)
from agentic_gym.trainers.credit.grpo import group_advantages


def whiten(values: ArrayLike, weights: ArrayLike, *, ddof: int = 0, eps: float = 1e-8) -> FloatArray:
    """Return (x - mean) / sqrt(var + eps), the statistics weighted, over an array of any shape.

    Args:
        values: x, any shape. Entries of weight 0 are not read and may be NaN.
        weights: same shape, not negative. A loss mask for per-token values; token counts for per-episode values:
            the result is the same as whitening the values repeated once per token.
        ddof: 0 is the weighted population variance (OpenRLHF); 1 divides by ``sum(weights) - 1`` (verl).
        eps: added to the variance.

    Returns:
        Array shaped like ``values``, exactly 0 where the weight is 0, weighted mean 0.

    >>> whiten([1.0, 3.0, 99.0], [1, 1, 0]).round(4).tolist()
    [-1.0, 1.0, 0.0]
    """
    shape = np.shape(values)
    if np.shape(weights) != shape:
        raise ValueError(f"weights must have the shape of values {shape}, got {np.shape(weights)}")
    one_of("ddof", ddof, (0, 1))
    if not eps >= 0:
        raise ValueError(f"eps must not be negative, got {eps}")
    flat_weights = vector("weights", np.ravel(weights))
    if (flat_weights < 0).any():
        raise ValueError(f"weights must not be negative, got {flat_weights.min()}")
    counted = flat_weights > 0
    x = vector("values with positive weight", np.ravel(values)[counted])
    centred, std = deviations(x, flat_weights[counted], ddof=ddof)
    result = np.zeros(flat_weights.size)
    result[counted] = divided(centred, float(np.hypot(std, np.sqrt(eps))))
    return result.reshape(shape)


def returns_to_go(rewards: ArrayLike, mask: ArrayLike, *, gamma: float = 1.0) -> FloatArray:
    """Return G_t = r_t + gamma G_{t+1} along the trained tokens of one episode, 0 elsewhere.

    The return walks *over* tool results: a masked token neither discounts nor cuts it, and a reward that sits on a
    masked token counts for the trained tokens before it.

    Args:
        rewards: r, one per token, shape (T,).
        mask: True for trained tokens, shape (T,).
        gamma: discount per trained token, in [0, 1].

    Returns:
        G, shape (T,).

    >>> returns_to_go([0, 0, 0, 1], mask=[1, 0, 0, 1]).tolist()
    [1.0, 0.0, 0.0, 1.0]
    """
    reward = vector("rewards", rewards)
    trained = flags("mask", mask, reward.size)
    reward = saturated(reward, reward.size)
    if not 0 <= gamma <= 1:
        raise ValueError(f"gamma must lie in [0, 1], got {gamma}")
    if gamma == 1.0:
        return np.where(trained, np.cumsum(reward[::-1])[::-1], 0.0)
    result = np.zeros(reward.size)
    running = pending = 0.0
    for t in range(reward.size - 1, -1, -1):
        pending += float(reward[t])
        if trained[t]:
            running = pending + gamma * running
            pending = 0.0
            result[t] = running
    return result


def token_rewards(outcome: float, kl: ArrayLike, mask: ArrayLike, *, beta: float) -> FloatArray:
    """Return r_t = -beta KL_t on trained tokens plus ``outcome`` on the last of them, shape (T,).

    ``kl`` is usually k1 = logp_old - logp_ref, shape (T,); masked entries are not read. Without a trained token every
    reward is 0.
    """
    trained = flags("mask", mask)
    result = np.zeros(trained.size)
    penalty = vector("kl", kl, trained.size, finite=False)
    result[trained] = -beta * vector("kl of trained tokens", penalty[trained])
    if trained.any():
        result[np.flatnonzero(trained)[-1]] += outcome
    return bounded(result)


def batch_advantages(
    returns: ArrayLike, tokens: ArrayLike, *, groups: ArrayLike | None = None, ddof: int = 0, eps: float = 1e-8
) -> FloatArray:
    """Whiten one return per episode over the batch, each counted once per trained token.

    Args:
        returns: R, shape (B,).
        tokens: number of trained tokens of each episode, shape (B,).
        groups: group id of each episode, shape (B,), to subtract the group's mean first ("with baseline"; a group of
            one keeps A' = R). None for plain REINFORCE++ without a KL reward.
        ddof, eps: see :func:`whiten`.

    Returns:
        A, shape (B,); 0 for an episode without trained tokens.
    """
    values = vector("returns", returns)
    if groups is not None:
        ids = np.asarray(groups)
        if ids.shape != values.shape:
            raise ValueError(f"groups must have shape {values.shape}, got {ids.shape}")
        values = np.copy(values)
        for group in np.unique(ids):
            members = ids == group
            values[members] = group_advantages(values[members], divide_by_std=False)
    return whiten(values, vector("tokens", tokens, values.size), ddof=ddof, eps=eps)
