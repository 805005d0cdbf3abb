"""Dynamic sampling: groups whose returns are all equal teach an outcome-only rule nothing (DAPO, arXiv 2503.14476)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from agentic_gym.trainers.credit._arrays import BoolArray, vector


class Informative(NamedTuple):
    """Which episodes stay, and how many groups went."""

    keep: BoolArray
    """Shape (B,). Dropped episodes also leave every denominator of the loss."""
    dropped_groups: int
    groups: int

    @property
    def dropped_share(self) -> float:
        """Dropped groups over all groups, 0 without groups; to be reported with every step."""
        return self.dropped_groups / self.groups if self.groups else 0.0


def informative(returns: ArrayLike, groups: ArrayLike, *, tolerance: float = 0.0) -> Informative:
    """Keep the groups whose returns differ by more than ``tolerance``.

    Not for TRIAGE, whose role term trains on all-fail groups too. A group of one is kept: it has no baseline, so
    its advantage is its return.

    Args:
        returns: shape (B,), after reward shaping.
        groups: group id of each episode, shape (B,), any order.
        tolerance: largest spread that still counts as equal.

    >>> informative([0, 1, 1, 1], groups=["a", "a", "b", "b"]).keep.tolist()
    [True, True, False, False]
    """
    values = vector("returns", returns)
    ids = np.asarray(groups)
    if ids.shape != values.shape:
        raise ValueError(f"groups must have shape {values.shape}, got {ids.shape}")
    names, index, counts = np.unique(ids, return_inverse=True, return_counts=True)
    lowest, highest = np.full(names.size, np.inf), np.full(names.size, -np.inf)
    np.minimum.at(lowest, index, values)
    np.maximum.at(highest, index, values)
    with np.errstate(over="ignore", invalid="ignore"):
        useful = (highest - lowest > tolerance) | (counts == 1)
    return Informative(useful[index], int((~useful).sum()), int(names.size))
