"""OTC: a tool-efficiency coefficient in [0, 1] that multiplies the correctness reward (arXiv 2504.14870).

m is the number of tool calls of this episode, n the fewest calls with which the question has been answered
correctly so far (kept over all epochs, so it only falls), c the largest number of calls allowed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from agentic_gym.trainers.credit._arrays import FloatArray, flags, integers, vector


def coefficient(calls: int, optimal: int | None, limit: float) -> float:
    """Return r_tool.

    OTC-PPO (``optimal=None``): cos(m pi / (2m + c)). OTC-GRPO: 1 if m = n = 0; the OTC-PPO form if only n = 0; else
    sin(f pi / (2n)) with f = 2nm / (m + n), which is sin(pi m / (m + n)).

    Args:
        calls: m >= 0.
        optimal: n >= 0, or None where no correct episode is known.
        limit: c >= 0; a smaller c punishes extra calls harder. Not used where n > 0.

    Returns:
        A number in [0, 1]: 1 for m = n. With n > 0 an episode without calls gets 0, so lower n first
        (:func:`lowered`) with the correct episodes of the group.

    >>> [round(coefficient(m, 2, limit=4), 4) for m in (0, 1, 2, 4)]
    [0.0, 0.866, 1.0, 0.866]
    """
    for name, value in (("calls", calls), ("optimal", optimal), ("limit", limit)):
        if value is not None and not (math.isfinite(value) and value >= 0):
            raise ValueError(f"{name} must be a finite number of at least 0, got {value}")
    if calls == 0 and not optimal:
        return 1.0
    angle = calls * math.pi / (calls + optimal if optimal else 2 * calls + limit)
    return max(0.0, math.sin(angle) if optimal else math.cos(angle))


def shape_rewards(
    rewards: ArrayLike, calls: ArrayLike, *, optimal: int | None, limit: float, alpha: float = 1.0
) -> FloatArray:
    """Return alpha * r_tool * r for every positive reward; zero and negative rewards stay as they are.

    Args:
        rewards: r, shape (M,). The paper's r is 0 or 1; a negative one is a format penalty, which efficiency must
            not soften.
        calls: m, shape (M,).
        optimal, limit: see :func:`coefficient`.
        alpha: weight of the product.

    Returns:
        Shaped rewards, shape (M,).
    """
    values = vector("rewards", rewards)
    counts = integers("calls", calls, values.size, least=0)
    factors = np.array([coefficient(int(m), optimal, limit) for m in counts], dtype=np.float64)
    return np.where(values > 0, alpha * factors * values, values)


def lowered(optimal: Mapping[str, int], task_id: str, calls: ArrayLike, correct: ArrayLike) -> dict[str, int]:
    """Return ``optimal`` with n of ``task_id`` lowered to the fewest calls among this group's correct episodes.

    Args:
        optimal: n per task so far; goes into the checkpoint, so that a resumed run has not forgotten it.
        task_id: the group's task.
        calls, correct: shape (M,).

    Returns:
        A new dict. n never rises, and stays (or stays absent) where no episode is correct.

    >>> lowered({"a": 3}, "a", calls=[1, 2, 0], correct=[False, True, False])
    {'a': 2}
    """
    counts = integers("calls", calls, least=0)
    right = counts[flags("correct", correct, counts.size)]
    if not right.size:
        return dict(optimal)
    fewest = int(right.min())
    return {**optimal, task_id: min(fewest, optimal.get(task_id, fewest))}
