"""Scalar process reward, TRIAGE's first rival: the same judge gives a number in [-1, 1] instead of a role.

The paper does not print its form; ours is A_{i,k} = A_i + lambda s_{i,k}, with the same lambda and whitening.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from agentic_gym.trainers.credit._arrays import FloatArray
from agentic_gym.trainers.credit.triage import corrected, neutral_corrected


def progress_credit(scores: Sequence[float | None]) -> FloatArray:
    """Return s clipped to [-1, 1], shape (K,); NaN where the judge gave no number (None, NaN or infinite)."""
    known = [math.nan if s is None or not math.isfinite(s) else float(s) for s in scores]
    return np.clip(np.array(known, dtype=np.float64), -1.0, 1.0)


def segment_advantages(advantage: ArrayLike, scores: Sequence[float | None], *, lam: float) -> FloatArray:
    """Return A_k = A + lambda s_k, shape (K,), not yet whitened; a missing score adds nothing.

    Args:
        advantage: GRPO's A: one number, or one per segment, shape (K,).
        scores: s of each segment, length K.
        lam: lambda >= 0.

    >>> segment_advantages(0.5, [1.0, -3.0, None], lam=0.2).tolist()
    [0.7, 0.3, 0.5]
    """
    return corrected(advantage, np.nan_to_num(progress_credit(scores)), lam=lam)


def batch_advantages(
    advantages: ArrayLike,
    scores: Sequence[float | None],
    *,
    lam: float,
    whitened: bool = True,
    weights: ArrayLike | None = None,
) -> FloatArray:
    """Return the advantages of all K segments of a batch, as TRIAGE's ``batch_advantages`` with scores for roles."""
    return neutral_corrected(advantages, progress_credit(scores), lam=lam, whitened=whitened, weights=weights)
