"""Importance correction for a sampler (say vLLM) whose log-probabilities differ from the trainer's for equal weights.

The weight multiplies a token's loss and carries no gradient. rho = exp(logp_trainer - logp_sampler), both *before*
the update.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from agentic_gym.trainers.credit._arrays import FloatArray, flags
from agentic_gym.trainers.credit.kl import LOG_RATIO_LIMIT
from agentic_gym.trainers.credit.losses import log_ratios


def token_truncated(logp: ArrayLike, logp_sampler: ArrayLike, mask: ArrayLike, *, cap: float = 2.0) -> FloatArray:
    """Return token-level truncated importance weights (TIS), min(rho_t, cap), shape (B, T), 0 on masked tokens.

    >>> token_truncated([[0.0, -1.0]], [[-1.0, -1.0]], [[1, 1]]).tolist()
    [[2.0, 1.0]]
    """
    _check(cap)
    shift = log_ratios(logp, logp_sampler, mask)
    weights = np.minimum(np.exp(np.clip(shift, -LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)), cap)
    return np.where(np.asarray(mask, dtype=bool), weights, 0.0)


def sequence_masked(logp: ArrayLike, logp_sampler: ArrayLike, mask: ArrayLike, *, cap: float = 2.0) -> FloatArray:
    """Return sequence-level masked importance weights (MIS), shape (B, T), 0 on masked tokens.

    The weight of a row is the product of its rho_t; a row whose product exceeds ``cap`` gets 0 and trains nothing.

    >>> sequence_masked([[0.0, -1.0], [-1.0, -1.0]], [[-1.0, -1.0], [-1.0, -1.0]], [[1, 1], [1, 1]]).tolist()
    [[0.0, 0.0], [1.0, 1.0]]
    """
    _check(cap)
    product = np.exp(np.clip(log_ratios(logp, logp_sampler, mask).sum(axis=1), -LOG_RATIO_LIMIT, LOG_RATIO_LIMIT))
    kept = np.where(product <= cap, product, 0.0)
    trained = flags("mask", np.ravel(mask)).reshape(np.shape(mask))
    return np.where(trained, kept[:, None], 0.0)


def _check(cap: float) -> None:
    if not cap >= 1:
        raise ValueError(f"cap must be at least 1, got {cap}")
