"""The clipped policy loss, its aggregation, and its gradient: the numpy reference of the torch objective.

ratio r = exp(logp - logp_old), the log-ratio clamped to +-20. Per token, with advantage A:
L = max(-A r, -A clip(r, 1 - low, 1 + high)), and for A < 0 at most -A * dual ("dual clip").
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from agentic_gym.trainers.credit._arrays import BoolArray, FloatArray, flags, one_of, saturated, vector
from agentic_gym.trainers.credit.kl import LOG_RATIO_LIMIT

Aggregation = Literal["token-mean", "seq-mean-token-sum", "seq-mean-token-mean", "seq-mean-token-sum-norm"]
AGGREGATIONS = get_args(Aggregation)


def policy_loss(
    logp: ArrayLike,
    logp_old: ArrayLike,
    advantages: ArrayLike,
    mask: ArrayLike,
    *,
    low: float = 0.2,
    high: float = 0.2,
    dual: float | None = 3.0,
    keep_clipped_gradient: bool = False,
) -> tuple[FloatArray, FloatArray]:
    """Return the loss per token and its derivative with respect to ``logp``, both of shape (T,).

    Args:
        logp, logp_old: log-probabilities of the sampled tokens now and when sampled, shape (T,).
        advantages: A, shape (T,).
        mask: True for trained tokens; others are not read and get exactly 0 in both results.
        low, high: clip range 1 - low .. 1 + high; ``high > low`` is "clip-higher" (DAPO).
        dual: bound c > 1 of the loss for A < 0, or None for no bound.
        keep_clipped_gradient: AEPO: above 1 + high the loss keeps its clipped value but also the gradient -(1 +
            high) A instead of 0.

    >>> loss, gradient = policy_loss([0.0], [-1.0], [1.0], [1])
    >>> loss.tolist(), gradient.tolist()
    ([-1.2], [0.0])
    """
    trained = flags("mask", mask)
    new, old, a = (
        vector(f"{name} of trained tokens", vector(name, values, trained.size, finite=False)[trained])
        for name, values in (("logp", logp), ("logp_old", logp_old), ("advantages", advantages))
    )
    if not (0 <= low <= 1 and high >= 0):
        raise ValueError(f"the clip range needs 0 <= low <= 1 and high >= 0, got low={low}, high={high}")
    if dual is not None and not dual > 1:
        raise ValueError(f"dual must be greater than 1 or None, got {dual}")
    with np.errstate(over="ignore"):
        log_ratio = new - old
    ratio = np.exp(np.clip(log_ratio, -LOG_RATIO_LIMIT, LOG_RATIO_LIMIT))
    ratio_slope = np.where(np.abs(log_ratio) < LOG_RATIO_LIMIT, ratio, 0.0)
    clipped = np.clip(ratio, 1 - low, 1 + high)
    above = ratio > 1 + high
    inside = (ratio >= 1 - low) & ~above
    clipped_slope = np.where(inside, ratio_slope, 0.0)
    if keep_clipped_gradient:
        clipped_slope = np.where(above & (ratio_slope > 0), 1 + high, clipped_slope)

    # The objective is linear in A, so an A near the largest float is saturated before it is multiplied.
    a = saturated(a, 1 << 64)
    at_ratio, at_clip = -a * ratio, -a * clipped
    use_clip = at_clip > at_ratio
    loss = np.where(use_clip, at_clip, at_ratio)
    slope = -a * np.where(use_clip, clipped_slope, ratio_slope)
    if dual is not None:
        over = (a < 0) & (loss > -a * dual)
        loss, slope = np.where(over, -a * dual, loss), np.where(over, 0.0, slope)
    result, gradient = np.zeros(trained.size), np.zeros(trained.size)
    result[trained], gradient[trained] = loss + 0.0, slope + 0.0  # + 0.0 turns -0 into 0
    return result, gradient


def aggregate(losses: ArrayLike, mask: ArrayLike, *, mode: str = "token-mean", length: float | None = None) -> float:
    """Reduce a batch of token losses to one number.

    Args:
        losses: shape (B, T), padded; masked entries are not read.
        mask: True for trained tokens, shape (B, T).
        mode: "token-mean": over all trained tokens. "seq-mean-token-sum": sum of each row, mean over rows.
            "seq-mean-token-mean": mean of each row, mean over rows (original GRPO).
            "seq-mean-token-sum-norm": as the second, divided by ``length`` (Dr. GRPO).
        length: constant of the last mode; the padded T where None.

    Returns:
        The loss. A row without trained tokens is no row; without any trained token it is 0.
    """
    one_of("mode", mode, AGGREGATIONS)
    trained, rows = _rows(mask)
    table = np.asarray(losses, dtype=np.float64)
    if table.shape != trained.shape:
        raise ValueError(f"losses must have the shape of mask {trained.shape}, got {table.shape}")
    if not rows.any():
        return 0.0
    table = np.where(trained, table, 0.0)
    vector("losses of trained tokens", table.ravel())
    table = saturated(table, table.size)
    counts = trained.sum(axis=1)
    if mode == "token-mean":
        return float(table.sum() / counts.sum())
    sums = table.sum(axis=1)[rows]
    if mode == "seq-mean-token-mean":
        return float((sums / counts[rows]).mean())
    mean = float(sums.mean())
    if mode == "seq-mean-token-sum":
        return mean
    constant = float(trained.shape[1]) if length is None else length
    if not constant > 0:
        raise ValueError(f"length must be positive, got {constant}")
    return mean / constant


def sequence_ratios(logp: ArrayLike, logp_old: ArrayLike, mask: ArrayLike) -> FloatArray:
    """Return GSPO's s_i = exp(mean over the trained tokens of row i of (logp - logp_old)), shape (B,) (arXiv
    2507.18071).

    The one ratio of a row replaces r at each of its tokens, in value and in clipping. 1 for a row without trained
    tokens.
    """
    trained, rows = _rows(mask)
    shift = log_ratios(logp, logp_old, trained)
    mean = shift.sum(axis=1) / np.maximum(trained.sum(axis=1), 1)
    return np.where(rows, np.exp(np.clip(mean, -LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)), 1.0)


def log_ratios(logp: ArrayLike, logp_old: ArrayLike, mask: ArrayLike) -> FloatArray:
    """Return logp - logp_old, shape (B, T), 0 on masked tokens whatever stands there."""
    trained, _ = _rows(mask)
    tables = [np.asarray(values, dtype=np.float64) for values in (logp, logp_old)]
    for name, table in zip(("logp", "logp_old"), tables):
        if table.shape != trained.shape:
            raise ValueError(f"{name} must have the shape of mask {trained.shape}, got {table.shape}")
        vector(f"{name} of trained tokens", table[trained])
    first, second = (saturated(np.where(trained, table, 0.0), 2 * table.size) for table in tables)
    return first - second


def _rows(mask: ArrayLike) -> tuple[BoolArray, BoolArray]:
    table = np.asarray(mask)
    if table.ndim != 2:
        raise ValueError(f"mask must have shape (B, T), got {table.shape}")
    trained: BoolArray = flags("mask", table.ravel()).reshape(table.shape)
    rows: BoolArray = np.asarray(trained.any(axis=1))
    return trained, rows
