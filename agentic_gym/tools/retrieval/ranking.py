"""Choosing the best few of many scores: exact, and the same on every machine."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["top_positive"]

_BLOCK = 1024


def top_positive(scores: npt.NDArray[np.floating[Any]], k: int) -> npt.NDArray[np.intp]:
    """Positions of the ``k`` highest scores above 0, best first; of equal scores the earlier position comes first.

    The winners lie in the ``k`` blocks with the highest maxima (and those that tie with them), so all but a pass for the
    maxima touches few scores. Selecting by value, not by ``argpartition``'s order, keeps ties independent of the CPU.

    Args:
        scores: shape (n,), finite.
        k: at least 1.

    >>> top_positive(np.array([0.0, 2.0, 5.0, 2.0]), 2)
    array([2, 1])
    """
    n = len(scores)
    full = n - n % _BLOCK
    if n <= k * _BLOCK:
        candidates = np.flatnonzero(scores > 0)
    else:
        maxima = scores[:full].reshape(-1, _BLOCK).max(axis=1)
        blocks = np.flatnonzero(maxima >= _kth_highest(maxima, k))
        inside = (blocks[:, None] * _BLOCK + np.arange(_BLOCK)).ravel()
        candidates = np.concatenate([inside, np.arange(full, n)])
        candidates = candidates[scores[candidates] > 0]
    values = scores[candidates]
    if len(candidates) > k:
        keep = values >= _kth_highest(values, k)
        candidates, values = candidates[keep], values[keep]
    return candidates[np.lexsort((candidates, -values))][:k]


def _kth_highest(values: npt.NDArray[np.floating[Any]], k: int) -> np.floating[Any]:
    if k >= len(values):
        return values.min()  # type: ignore[no-any-return]  # numpy's stubs lose the scalar type
    return np.partition(values, len(values) - k)[len(values) - k]  # type: ignore[no-any-return]
