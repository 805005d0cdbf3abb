"""From one value per row, turn or segment to one value per token."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from agentic_gym.trainers.credit._arrays import FloatArray, flags, integers, vector


def spread(values: ArrayLike, ids: ArrayLike, mask: ArrayLike) -> FloatArray:
    """Give every token the value of the row or segment it belongs to; masked tokens get exactly 0.

    Args:
        values: one value per row or segment, shape (N,).
        ids: index into ``values`` for each token, shape (T,). The id of a masked token is not read (-1 is usual).
        mask: True for tokens the model wrote, shape (T,).

    Returns:
        Advantage per token, shape (T,).

    >>> spread([1.5, -0.5], ids=[-1, 0, 0, 1], mask=[0, 1, 1, 1]).tolist()
    [0.0, 1.5, 1.5, -0.5]
    """
    per_id = vector("values", values)
    index = integers("ids", ids)
    trained = flags("mask", mask, index.size)
    used = index[trained]
    if used.size and (used.min() < 0 or used.max() >= per_id.size):
        raise ValueError(f"ids of trained tokens must lie in 0..{per_id.size - 1}, got {used.min()}..{used.max()}")
    result = np.zeros(index.size)
    result[trained] = per_id[used]
    return result
