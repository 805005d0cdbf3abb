"""From credited episodes to tensors: mini-batches for the optimiser, micro-batches without padding waste.

Rows are sorted by length inside a mini-batch and cut into micro-batches under a token budget, so neighbours have nearly
equal lengths.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

__all__ = ["MicroBatch", "TrainRow", "micro_batches", "mini_batches", "padding_share"]


@dataclass(frozen=True)
class TrainRow:
    """One episode as the objective sees it; all arrays have shape (T,)."""

    token_ids: NDArray[np.int64]
    loss_mask: NDArray[np.bool_]
    old_logprobs: NDArray[np.float64]
    advantages: NDArray[np.float64]
    old_values: NDArray[np.float64] | None = None
    """At the first written token of each step, V when the episode was credited; NaN elsewhere. None without a value head."""
    value_targets: NDArray[np.float64] | None = None
    """What V should have been there."""


@dataclass(frozen=True)
class MicroBatch:
    """B rows padded on the right to T tokens, and the N trained tokens among them.

    Token t is predicted at position t - 1, so ``index`` points at predicting positions and the other vectors hold what is
    predicted there.
    """

    token_ids: torch.Tensor
    """(B, T)"""
    index: tuple[torch.Tensor, torch.Tensor]
    """Row and position that predict each trained token, (N,) each."""
    targets: torch.Tensor
    """(N,)"""
    old_logprobs: torch.Tensor
    """(N,)"""
    advantages: torch.Tensor
    """(N,)"""
    rows: torch.Tensor
    """(N,): which row of the micro-batch a trained token belongs to."""
    n_rows: int
    source: NDArray[np.int64]
    """(B,): index of each row among those that were given to ``micro_batches``."""
    old_values: torch.Tensor | None = None
    """(N,), NaN where no step begins."""
    value_targets: torch.Tensor | None = None
    """(N,)"""


def mini_batches(n_rows: int, parts: int, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """A random partition of ``range(n_rows)`` into at most ``parts`` nearly equal parts."""
    order = rng.permutation(n_rows)
    return [part for part in np.array_split(order, max(1, min(parts, n_rows))) if part.size]


def micro_batches(rows: Sequence[TrainRow], max_tokens: int, device: torch.device) -> Iterator[MicroBatch]:
    """Cut ``rows`` into micro-batches of at most ``max_tokens`` padded tokens (a longer row comes alone)."""
    for chosen in _cut([len(row.token_ids) for row in rows], max_tokens):
        yield _collate([rows[i] for i in chosen], np.array(chosen, dtype=np.int64), device)


def _cut(lengths: Sequence[int], max_tokens: int) -> Iterator[list[int]]:
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    start = 0
    while start < len(order):
        size = max(1, max_tokens // max(lengths[order[start]], 1))
        yield order[start : start + size]
        start += size


def padding_share(rows: Sequence[TrainRow], max_tokens: int) -> float:
    """The share of forwarded positions that is padding, in [0, 1)."""
    lengths = [len(row.token_ids) for row in rows]
    padded = sum(len(chosen) * lengths[chosen[0]] for chosen in _cut(lengths, max_tokens))
    return 1.0 - sum(lengths) / padded if padded else 0.0


def _collate(rows: Sequence[TrainRow], source: NDArray[np.int64], device: torch.device) -> MicroBatch:
    width = max(len(row.token_ids) for row in rows)
    ids = np.zeros((len(rows), width), dtype=np.int64)
    for b, row in enumerate(rows):
        ids[b, : len(row.token_ids)] = row.token_ids
    # The first token of a row is never predicted.
    positions = [np.flatnonzero(row.loss_mask[1:]) for row in rows]
    row_index = np.repeat(np.arange(len(rows)), [len(p) for p in positions])
    column = np.concatenate(positions)
    with_values = all(row.old_values is not None and row.value_targets is not None for row in rows)

    def gather(values: list[NDArray[np.float64]]) -> torch.Tensor:
        picked = np.concatenate([v[1:][p] for v, p in zip(values, positions)])
        return torch.from_numpy(picked.astype(np.float32)).to(device)

    return MicroBatch(
        token_ids=torch.from_numpy(ids).to(device),
        index=(torch.from_numpy(row_index).to(device), torch.from_numpy(column).to(device)),
        targets=torch.from_numpy(ids[row_index, column + 1]).to(device),
        old_logprobs=gather([row.old_logprobs for row in rows]),
        advantages=gather([row.advantages for row in rows]),
        rows=torch.from_numpy(row_index).to(device),
        n_rows=len(rows),
        source=source,
        old_values=gather([row.old_values for row in rows if row.old_values is not None]) if with_values else None,
        value_targets=gather([row.value_targets for row in rows if row.value_targets is not None])
        if with_values
        else None,
    )
