"""Drawing tokens: inverse CDF, one uniform number a token, each row with its own stream.

A row's stream depends on its episode's seed and turn alone, so what is sampled does not depend on which rows share the batch.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

__all__ = ["Draw", "UniformStreams", "draw_tokens"]

_CHUNK = 64


class Draw(NamedTuple):
    """One token a row; all of shape (B,)."""

    tokens: torch.Tensor
    logprobs: torch.Tensor
    entropies: torch.Tensor | None


class UniformStreams:
    """Uniform numbers in [0, 1) for rows that leave one by one."""

    def __init__(self, seeds: list[tuple[int, int]]) -> None:
        self._generators = [np.random.default_rng(seed) for seed in seeds]
        self._buffer: NDArray[np.float64] = np.empty((len(seeds), 0))

    def column(self, step: int, rows: NDArray[np.int64]) -> torch.Tensor:
        """Number ``step`` of each of ``rows``, float64, shape (len(rows),)."""
        if step >= self._buffer.shape[1]:
            fresh = np.stack([generator.random(_CHUNK) for generator in self._generators])
            self._buffer = np.concatenate([self._buffer, fresh], axis=1)
        return torch.from_numpy(self._buffer[rows, step])


def draw_tokens(
    logits: torch.Tensor, uniforms: torch.Tensor, *, temperature: float, top_p: float = 1.0, entropies: bool = False
) -> Draw:
    """Draw one token a row.

    Args:
        logits: (B, V), any floating type; computed with in float32.
        uniforms: (B,), in [0, 1).
        temperature: 0 takes the most likely token (its log-probability is then the one at temperature 1).
        top_p: nucleus in (0, 1]; log-probabilities are those of the truncated, renormalised distribution.
        entropies: also return the entropy of each distribution, in nats.
    """
    logits = logits.float()
    if temperature not in (0.0, 1.0):
        # From the maximum, so that a temperature near 0 gives the greedy choice and not infinity over infinity.
        logits = (logits - logits.amax(-1, keepdim=True)) / temperature
    logprobs = torch.log_softmax(logits, dim=-1)
    if temperature == 0.0:
        tokens = logprobs.argmax(-1)
    else:
        if top_p < 1.0:
            logprobs = _nucleus(logprobs, top_p)
        cdf = logprobs.exp().cumsum(-1)
        # Scaling by the last entry absorbs the rounding of the running sum. A token of probability 0 repeats its neighbour's
        # value, and `right=True` steps over it.
        target = (uniforms.to(cdf.device, torch.float64) * cdf[:, -1].double()).to(cdf.dtype)
        tokens = torch.searchsorted(cdf, target[:, None], right=True)[:, 0].clamp_max(logits.shape[-1] - 1)
        stuck = logprobs.gather(1, tokens[:, None])[:, 0] == -torch.inf
        if bool(stuck.any()):
            tokens = torch.where(stuck, logprobs.argmax(-1), tokens)
    chosen = logprobs.gather(1, tokens[:, None])[:, 0]
    spread = -(logprobs.exp() * logprobs.clamp_min(-1e4)).sum(-1) if entropies else None
    return Draw(tokens, chosen, spread)


def _nucleus(logprobs: torch.Tensor, top_p: float) -> torch.Tensor:
    ordered, order = logprobs.sort(dim=-1, descending=True)
    before = ordered.exp().cumsum(-1) - ordered.exp()
    dropped = torch.zeros_like(before, dtype=torch.bool).scatter(1, order, before >= top_p)
    return torch.log_softmax(logprobs.masked_fill(dropped, -torch.inf), dim=-1)
