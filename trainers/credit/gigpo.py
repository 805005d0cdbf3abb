"""GiGPO: an episode advantage as in GRPO plus a step advantage among steps that met the same state.

An *anchor* is the raw observation before a step. All steps of all episodes of one task with the same anchor form a
group; inside it the discounted returns are compared. A_t = A_episode + omega A_step. Source: arXiv 2505.10978.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from difflib import SequenceMatcher
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from agentic_gym.trainers.credit._arrays import (
    FloatArray,
    bounded,
    deviations,
    divided,
    flags,
    integers,
    one_of,
    saturated,
    vector,
)

Norm = Literal["std", "none"]
NORMS = get_args(Norm)
WEIGHTINGS = ("trajectory", "step")


def discounted_returns(rewards: ArrayLike, *, gamma: float = 0.95) -> FloatArray:
    """Return R_t = sum over k >= t of gamma^(k - t) r_k, over the steps of one episode, shape (K,).

    >>> discounted_returns([0, 0, 1]).round(4).tolist()
    [0.9025, 0.95, 1.0]
    """
    reward = vector("rewards", rewards)
    reward = saturated(reward, reward.size)
    if not 0 <= gamma <= 1:
        raise ValueError(f"gamma must lie in [0, 1], got {gamma}")
    result = np.zeros(reward.size)
    running = 0.0
    for t in range(reward.size - 1, -1, -1):
        result[t] = running = float(reward[t]) + gamma * running
    return result


def episode_advantages(
    returns: ArrayLike,
    steps: ArrayLike | None = None,
    *,
    norm: str = "std",
    weighting: str = "trajectory",
    ddof: int = 1,
    eps: float = 1e-6,
) -> FloatArray:
    """Return A_E = (R_i - mean) / F per episode, shape (M,).

    Args:
        returns: R, shape (M,).
        steps: steps of each episode, shape (M,); needed for ``weighting="step"``.
        norm: F is std + eps ("std") or 1 ("none").
        weighting: "trajectory" counts each episode once; "step" once per step, as one version of the original code
            does, so that long episodes weigh more.
        ddof: 1 for the sample standard deviation.

    Returns:
        A_E. A group of one keeps A = R.
    """
    values = vector("returns", returns)
    one_of("norm", norm, NORMS)
    one_of("weighting", weighting, WEIGHTINGS)
    one_of("ddof", ddof, (0, 1))
    if values.size == 1:
        return np.copy(values)
    weights = None
    if weighting == "step":
        if steps is None:
            raise ValueError("weighting='step' needs steps, the number of steps of each episode")
        weights = integers("steps", steps, values.size, least=0).astype(np.float64)
    centred, std = deviations(values, weights, ddof=ddof)
    return divided(centred, std + eps) if norm == "std" else centred


def step_advantages(step_returns: Any, anchors: Any, *, norm: str = "std", ddof: int = 1, eps: float = 1e-6) -> Any:
    """Return A_S = (R_t - mean) / F inside each anchor group of one task.

    Args:
        step_returns: R_t of the steps, flat (S,), or one sequence per episode.
        anchors: what each step's agent saw (any hashable), arranged like ``step_returns``. For several tasks at
            once use (task, observation) pairs.
        norm: F is std + eps ("std") or 1 ("none").
        ddof: 1 for the sample standard deviation.

    Returns:
        Arranged like ``step_returns``: an array (S,), or a list of arrays. A step alone with its anchor gets 0.

    >>> step_advantages([[0.9025, 0.95, 1.0], [0.0, 0.0]], [["s0", "s1", "s0"], ["s0", "s2"]], norm="none")[1].round(4).tolist()
    [-0.6342, 0.0]
    """
    one_of("norm", norm, NORMS)
    one_of("ddof", ddof, (0, 1))
    if len(step_returns) and np.ndim(step_returns[0]) == 1:
        rows = [vector(f"step_returns[{i}]", row) for i, row in enumerate(step_returns)]
        if [len(row) for row in anchors] != [row.size for row in rows]:
            raise ValueError("anchors must be arranged like step_returns, one anchor a step in every episode")
        together = [anchor for row in anchors for anchor in row]
        flat = step_advantages(np.concatenate(rows), together, norm=norm, ddof=ddof, eps=eps)
        return np.split(flat, np.cumsum([row.size for row in rows])[:-1])
    values = vector("step_returns", step_returns)
    if len(anchors) != values.size:
        raise ValueError(f"anchors must hold one anchor a step, {values.size}, got {len(anchors)}")
    groups: dict[Hashable, list[int]] = {}
    for step, anchor in enumerate(anchors):
        groups.setdefault(anchor, []).append(step)
    result = np.zeros(values.size)
    for members in groups.values():
        if len(members) > 1:
            centred, std = deviations(values[members], ddof=ddof)
            result[members] = divided(centred, std + eps) if norm == "std" else centred
    return result


def similar_anchors(observations: Sequence[str], *, threshold: float = 0.95) -> list[int]:
    """Return a cluster number per observation: the first cluster whose first member is at least that similar.

    Similarity is ``difflib.SequenceMatcher.ratio``. Use the numbers as ``anchors``. Cost grows with observations
    times clusters; equal texts are compared once.

    >>> similar_anchors(["a drawer", "a drawer.", "a fridge"], threshold=0.9)
    [0, 0, 1]
    """
    if not 0 <= threshold <= 1:
        raise ValueError(f"threshold must lie in [0, 1], got {threshold}")
    heads: list[str] = []
    known: dict[str, int] = {}
    for text in observations:
        if text in known:
            continue
        matcher = SequenceMatcher(autojunk=False)
        matcher.set_seq2(text)
        for cluster, head in enumerate(heads):
            matcher.set_seq1(head)
            if (
                matcher.real_quick_ratio() >= threshold
                and matcher.quick_ratio() >= threshold
                and matcher.ratio() >= threshold
            ):
                known[text] = cluster
                break
        else:
            known[text] = len(heads)
            heads.append(text)
    return [known[text] for text in observations]


def combined(episode: ArrayLike, step: ArrayLike, *, omega: float = 1.0) -> FloatArray:
    """Return A_E + omega A_S per step, shape (K,); ``episode`` is one number or one per step."""
    local = vector("step", step)
    base = np.asarray(episode, dtype=np.float64)
    whole = vector("episode", np.full(local.size, base) if base.ndim == 0 else base, local.size)
    with np.errstate(over="ignore"):
        return bounded(whole + omega * local)


def penalise_invalid(rewards: ArrayLike, valid: ArrayLike, *, coefficient: float = 0.1) -> FloatArray:
    """Return step rewards with ``coefficient`` taken off every step whose action was invalid, shape (K,).

    0.1 for ALFWorld and WebShop, 0.01 for SearchQA in the original.
    """
    reward = vector("rewards", rewards)
    return reward - coefficient * ~flags("valid", valid, reward.size)
