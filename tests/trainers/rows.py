"""Random training rows for the tests of batching, objective and update."""

from __future__ import annotations

import numpy as np

from agentic_gym.trainers.batching import TrainRow

VOCABULARY = 194


def random_rows(n: int, *, seed: int = 0, longest: int = 30) -> list[TrainRow]:
    """Rows of unequal length, prompts first, then written tokens with gaps; every row has a trained token."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        size = int(rng.integers(4, longest))
        mask = np.arange(size) >= rng.integers(1, size - 1)
        mask &= rng.random(size) < 0.8
        mask[-1] = True
        rows.append(
            TrainRow(
                rng.integers(3, VOCABULARY, size),
                mask,
                np.where(mask, -rng.exponential(3.0, size), 0.0),
                np.where(mask, rng.normal(size=size), 0.0),
            )
        )
    return rows
