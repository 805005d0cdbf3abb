"""ARPO: branch the rollout after tool results, where the policy's entropy jumps (arXiv 2507.19849).

The reward is Tool-Star's, the advantage GRPO's over all M rows of the tree (*soft* attribution: a prefix shared by
d rows appears d times and so receives the mean of their advantages); *hard* attribution writes that mean down
explicitly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from agentic_gym.trainers.credit._arrays import FloatArray, IntArray, integers, vector

ENTROPY_TOKENS = 20
"""Tokens at the start of a generation segment whose entropy is read."""


def segment_entropy(top_logprobs: ArrayLike, vocabulary: int, *, tokens: int = ENTROPY_TOKENS) -> float:
    """Return H = sum over the first tokens and their top candidates of -p log p, divided by log(vocabulary).

    Args:
        top_logprobs: natural log-probabilities of the top candidates (10 in the original), shape (tokens, k);
            -inf is a candidate of probability 0.
        vocabulary: size of the vocabulary, at least 2.
        tokens: how many leading tokens count.

    Returns:
        A number >= 0. A *sum* over tokens, not a mean, as in the original code: up to ``tokens``. 0 without tokens.

    >>> round(segment_entropy([[math.log(0.5)] * 2], vocabulary=4), 4)
    0.5
    """
    if vocabulary < 2:
        raise ValueError(f"vocabulary must be at least 2, got {vocabulary}")
    table = np.asarray(top_logprobs, dtype=np.float64)
    if table.size == 0:
        return 0.0
    if table.ndim != 2:
        raise ValueError(f"top_logprobs must have shape (tokens, k), got {table.shape}")
    head = table[:tokens]
    if np.isnan(head).any() or (head > 1e-6).any():
        raise ValueError("top_logprobs must be log-probabilities, at most 0 and not NaN")
    p = np.exp(head)
    return max(0.0, float(-np.sum(p * np.where(p > 0, head, 0.0))) / math.log(vocabulary))


def branch_probability(entropy_now: float, entropy_initial: float, *, weight: float = 0.2, base: float = 0.5) -> float:
    """Return P(branch) = clip(base + weight * (H_now - H_initial), 0, 1).

    Args:
        entropy_now: :func:`segment_entropy` of the segment after the tool result.
        entropy_initial: that of the row's first segment; a branched row inherits its parent's value.
        weight: how strongly an entropy jump counts.
        base: probability without a jump.

    Returns:
        A probability in [0, 1]. Each of the ``beam - 1`` possible copies of a row draws on its own.

    >>> branch_probability(1.5, 0.5)
    0.7
    """
    for name, value in (("entropy_now", entropy_now), ("entropy_initial", entropy_initial)):
        if not math.isfinite(value):
            raise ValueError(f"{name} must be finite, got {value}")
    return min(1.0, max(0.0, base + weight * (entropy_now - entropy_initial)))


def prefix_nodes(parents: Sequence[int | None], shared: ArrayLike, lengths: ArrayLike) -> list[IntArray]:
    """Name every token of a rollout tree, equal names for tokens that several rows share.

    Args:
        parents: row each row branched from, None for a row that started at the prompt; shape (M,). A parent stands
            before its children.
        shared: how many leading tokens were copied from the parent, shape (M,); 0 for a root.
        lengths: tokens of each row, shape (M,).

    Returns:
        One id array of shape (lengths[i],) per row; ids count from 0 over the whole tree.

    >>> [ids.tolist() for ids in prefix_nodes([None, 0], shared=[0, 2], lengths=[3, 4])]
    [[0, 1, 2], [0, 1, 3, 4]]
    """
    total = integers("lengths", lengths, len(parents), least=0)
    copied = integers("shared", shared, len(parents), least=0)
    rows: list[IntArray] = []
    following = 0
    for row, parent in enumerate(parents):
        if parent is None:
            prefix = np.empty(0, dtype=np.int64)
        elif 0 <= parent < row:
            prefix = rows[parent][: copied[row]]
        else:
            raise ValueError(f"row {row} must have a parent before it, got {parent}")
        if prefix.size != copied[row] or prefix.size > total[row]:
            raise ValueError(f"row {row} of {total[row]} tokens cannot share {copied[row]} with its parent {parent}")
        fresh = int(total[row]) - prefix.size
        rows.append(np.concatenate([prefix, np.arange(following, following + fresh)]))
        following += fresh
    return rows


def hard_attribution(advantages: ArrayLike, nodes: Sequence[ArrayLike]) -> list[FloatArray]:
    """Return the advantage of every token: A_i on private tokens, the mean of the sharing rows' A_i on shared ones.

    Args:
        advantages: A, group-normalised, shape (M,).
        nodes: token names of each row, as :func:`prefix_nodes` gives them.

    Returns:
        One array per row. Shared tokens have the same value in every row that holds them.

    >>> [a.tolist() for a in hard_attribution([1.0, -1.0], [[0, 1], [0, 2]])]
    [[0.0, 1.0], [0.0, -1.0]]
    """
    values = vector("advantages", advantages)
    if len(nodes) != values.size:
        raise ValueError(f"nodes must name the tokens of {values.size} rows, got {len(nodes)}")
    rows = [integers(f"nodes[{i}]", row, least=0) for i, row in enumerate(nodes)]
    if not rows:
        return []
    names, inverse = np.unique(np.concatenate(rows), return_inverse=True)
    owners = np.repeat(values, [row.size for row in rows])
    sharing = np.bincount(inverse, minlength=names.size)
    mean = np.bincount(inverse, weights=owners / sharing[inverse], minlength=names.size)[inverse]
    return np.split(mean, np.cumsum([row.size for row in rows])[:-1])
