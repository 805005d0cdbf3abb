"""EAPO: keep tool use where it pays, drop it where the model can answer alone (arXiv 2606.02132).

A group has M episodes of one question q, some forced to be tool-free (:func:`tool_free_rows`). c_i counts executed
tool calls, I_i says whether episode i is correct. Shaped rewards R~ replace R in GRPO's advantage
(:mod:`agentic_gym.trainers.credit.grpo`); then each turn's least certain thoughts of correct episodes, and most
certain thoughts of incorrect ones, weigh more.

Where the paper is silent or contradicts itself the choice is a parameter; ``docs/credit.md`` lists them.
"""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from agentic_gym.ranges import Range
from agentic_gym.trainers.credit._arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    bounded,
    flags,
    integers,
    vector,
)

Threshold = Annotated[float, Range(above=0, most=1)]
"""Score from which an episode counts as correct."""
TOOL_FREE_ROWS = 2
"""n of the paper: tool-free episodes in a group of 16."""


def tool_free_rows(size: int, quota: int = TOOL_FREE_ROWS) -> BoolArray:
    """Return which of ``size`` rows are forced to be tool-free: exactly the last ``quota``, shape (M,).

    Rows that happen to call no tool come on top. ValueError unless 0 <= quota <= size.
    """
    if not 0 <= quota <= size:
        raise ValueError(f"the tool-free quota must lie in 0..{size} (the group size), got {quota}")
    return np.arange(size) >= size - quota


def is_correct(scores: ArrayLike, *, threshold: float = 0.5) -> BoolArray:
    """Return I_i = score_i >= threshold, shape (M,).

    For {0, 1} accuracy any threshold in (0, 1] is the same. For token F1 the paper does not define I: 0.5 is our
    choice, 1 asks for a perfect answer, a tiny positive value for any overlap.
    """
    if not 0 < threshold <= 1:
        raise ValueError(f"threshold must lie in (0, 1], got {threshold}")
    return vector("scores", scores) >= threshold


def base_rewards(scores: ArrayLike, well_formed: ArrayLike, *, bad_format: float = -1.0) -> FloatArray:
    """Return R_i (eq. 7), shape (M,): the score of a well-formed episode (accuracy or token F1), else ``bad_format``."""
    values = vector("scores", scores)
    return np.where(flags("well_formed", well_formed, values.size), values, bad_format)


def efficiency(calls: ArrayLike, correct: ArrayLike, *, beta: float = 1.0, clamp: bool = True) -> FloatArray:
    """Return eps_i = exp(-beta (c_i - c_min)), c_min the fewest calls among the correct episodes.

    Without a correct episode c_min = 0. An episode without calls has eps = 1.

    Args:
        calls: c, executed tool calls, shape (M,).
        correct: I, shape (M,).
        beta: tool penalty, not negative.
        clamp: an incorrect episode may have c_i < c_min and then eps > 1 by the formula, which would *raise* a
            partial reward; True (ours) keeps eps at 1.

    Returns:
        eps, shape (M,), in (0, 1] when clamped.

    >>> efficiency([3, 1, 2, 0], [True, True, False, False]).round(6).tolist()
    [0.135335, 1.0, 0.367879, 1.0]
    """
    counts = integers("calls", calls, least=0)
    return _efficiency(counts, flags("correct", correct, counts.size), beta, clamp)


def _efficiency(counts: IntArray, correct: BoolArray, beta: float, clamp: bool) -> FloatArray:
    if not (math.isfinite(beta) and beta >= 0):
        raise ValueError(f"beta must be a finite number of at least 0, got {beta}")
    right = counts[correct]
    fewest = int(right.min()) if right.size else 0
    excess = (counts - fewest).astype(np.float64)
    if clamp:
        excess = np.maximum(excess, 0.0)
    with np.errstate(over="ignore"):
        return np.where(counts == 0, 1.0, bounded(np.exp(-beta * excess)))


def difficulty(correct: ArrayLike) -> float:
    """Return d(q) = 1 - (number of correct episodes) / M, in [0, 1]; 1 is the hardest.

    >>> difficulty([True, False, False, False])
    0.75
    """
    right = flags("correct", correct)
    if not right.size:
        raise ValueError("correct must hold at least one episode, got shape (0,)")
    return 1.0 - int(right.sum()) / right.size


def shape_rewards(
    rewards: ArrayLike,
    calls: ArrayLike,
    correct: ArrayLike,
    *,
    beta: float = 1.0,
    shape_negative: bool = False,
    clamp: bool = True,
) -> FloatArray:
    """Return R~_i = [d + (1 - d) eps_i] R_i (eq. 6): the easier the question, the more a needless call costs.

    Args:
        rewards: R, shape (M,).
        calls, correct, beta, clamp: see :func:`efficiency`.
        shape_negative: True applies the formula to negative rewards too, to the letter: a badly formatted episode
            with more calls is then punished *less*. False (ours) leaves them as they are.

    Returns:
        R~, shape (M,).

    >>> shape_rewards([1, 1, 0, 0], [3, 1, 2, 0], [1, 1, 0, 0]).round(6).tolist()
    [0.567668, 1.0, 0.0, 0.0]
    """
    values = vector("rewards", rewards)
    right = flags("correct", correct, values.size)
    eps = _efficiency(integers("calls", calls, values.size, least=0), right, beta, clamp)
    if not values.size:
        return eps
    d = difficulty(right)
    with np.errstate(over="ignore"):
        shaped = bounded((d + (1.0 - d) * eps) * values)
    return shaped if shape_negative else np.where(values < 0, values, shaped)


def token_weights(
    logprobs: ArrayLike,
    turn_ids: ArrayLike,
    thought_mask: ArrayLike,
    *,
    correct: Any,
    used_tool: Any,
    rho: float = 0.2,
    w_pos: float = 1.5,
    w_neg: float = 1.5,
) -> FloatArray:
    """Return the factor w on each token's advantage.

    Confidence is C = log-probability of the sampled token. Within the thoughts S_u of a turn u: w_pos if the
    episode is correct and C <= Q_rho(S_u); w_neg if it is incorrect and C >= Q_{1-rho}(S_u); else 1. All of an
    episode that called no tool stays 1. Quantiles interpolate linearly and both comparisons include equality, so a
    turn of one thought token selects it.

    Args:
        logprobs: C, under the policy that sampled, shape (T,). Tokens outside ``thought_mask`` are not read.
        turn_ids: turn of each token, shape (T,). T may run over a whole batch if every turn of every episode has
            its own id.
        thought_mask: True for tokens of S_u: written by the model, not part of a tool invocation or result, shape
            (T,).
        correct, used_tool: I and c > 0 of the episode: one bool, or one per token, shape (T,).
        rho: share of a turn's tokens, in [0, 1].
        w_pos, w_neg: factors. w_neg = 1.5 > 1 pushes over-confident tokens of wrong answers down *harder*, as the
            paper's default does (its prose says "down-weighted").

    Returns:
        w, shape (T,): 1 wherever nothing is selected. A factor, not an advantage: the loss mask is applied to the
        latter.

    >>> token_weights([-3.0, -0.1, -0.2, -9.0], [0, 0, 0, 0], [1, 1, 1, 0], correct=True, used_tool=True).tolist()
    [1.5, 1.0, 1.0, 1.0]
    """
    thought = flags("thought_mask", thought_mask)
    size = thought.size
    turns = integers("turn_ids", turn_ids, size)
    confidence = vector("logprobs", logprobs, size, finite=False)
    right, tool = _per_token("correct", correct, size), _per_token("used_tool", used_tool, size)
    if not 0 <= rho <= 1:
        raise ValueError(f"rho must lie in [0, 1], got {rho}")
    for name, factor in (("w_pos", w_pos), ("w_neg", w_neg)):
        if not (math.isfinite(factor) and factor >= 0):
            raise ValueError(f"{name} must be a finite number of at least 0, got {factor}")

    weights = np.ones(size)
    members = np.flatnonzero(thought & tool)
    if members.size:
        c = vector("logprobs of thought tokens", confidence[members])
        low, high = _turn_extremes(c, turns[members], rho)
        selected_right = right[members] & low
        selected_wrong = ~right[members] & high
        weights[members[selected_right]] = w_pos
        weights[members[selected_wrong]] = w_neg
    return weights


def _per_token(name: str, value: Any, size: int) -> BoolArray:
    return np.full(size, bool(value)) if np.ndim(value) == 0 else flags(name, value, size)


def _turn_extremes(confidence: FloatArray, turns: IntArray, rho: float) -> tuple[BoolArray, BoolArray]:
    """Return which tokens lie at or below Q_rho, and at or above Q_{1-rho}, of their own turn.

    No token lies strictly between the two neighbours that the quantile interpolates, so "C <= Q_rho" is the same as
    "C <= the neighbour below": comparing with an order statistic needs no interpolation and has no rounding.
    """
    order = _by_turn_and_confidence(confidence, turns)
    ordered_turns = turns[order]
    starts = np.flatnonzero(np.r_[True, ordered_turns[1:] != ordered_turns[:-1]])
    counts = np.diff(np.r_[starts, turns.size])
    # 1e-9: rho * (n - 1) may miss a whole number by an ulp
    rank = np.floor((counts - 1) * rho + 1e-9).astype(np.int64)
    ordered = confidence[order]
    low, high = np.empty(turns.size, dtype=np.bool_), np.empty(turns.size, dtype=np.bool_)
    low[order] = ordered <= np.repeat(ordered[starts + rank], counts)
    high[order] = ordered >= np.repeat(ordered[starts + counts - 1 - rank], counts)
    return low, high


def _by_turn_and_confidence(confidence: FloatArray, turns: IntArray) -> IntArray:
    """Return the order of ``np.lexsort((confidence, turns))`` (ties aside), three times as fast.

    Sorting plain integers is quick, so turn and rank of confidence are packed into one.
    """
    bits = confidence.size.bit_length()
    least, most = int(turns.min()), int(turns.max())
    fits = (most - least).bit_length() + bits < 63
    offset = turns - least if fits else np.unique(turns, return_inverse=True)[1]
    by_confidence = np.argsort(confidence)
    packed = (offset[by_confidence] << bits) + np.arange(confidence.size)
    packed.sort()
    order: IntArray = by_confidence[packed & ((1 << bits) - 1)]
    return order
