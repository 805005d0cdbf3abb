"""TRIAGE: GRPO's outcome advantage plus a bounded correction by the role of each segment (arXiv 2606.32017).

A segment k is one action on the environment (a command, a search, a click, an answer) with the thoughts before it.
A judge that does not see the outcome gives it a role; A_{i,k} = A_i + lambda * c_role(i,k), then whitened over the
batch's segments. :func:`agentic_gym.role_theory.fit_constants` measures whether a judge and these constants can
help.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from agentic_gym.roles import ROLE_CREDIT, Role
from agentic_gym.trainers.credit._arrays import FloatArray, bounded, deviations, divided, vector
from agentic_gym.trainers.credit.reinforce_pp import whiten

LAMBDA: Mapping[str, float] = {"ALFWorld": 0.2, "WebShop": 0.2, "SearchQA": 0.4}
"""The paper's lambda per environment."""


def role_credit(roles: Sequence[Role | str | None], constants: Mapping[Role, float] = ROLE_CREDIT) -> FloatArray:
    """Return c_role per segment, shape (K,), NaN for a missing label (None).

    A role is a :class:`agentic_gym.roles.Role` or its letter; ValueError on anything else.
    """
    table = {str(role): float(c) for role, c in constants.items()}
    try:
        return np.array([np.nan if role is None else table[role] for role in roles], dtype=np.float64)
    except (KeyError, TypeError):
        strange = next(r for r in roles if r is not None and not (isinstance(r, str) and r in table))
        raise ValueError(
            f"a role must be one of {', '.join(str(r) for r in constants)} or None, got {strange!r}"
        ) from None


def segment_advantages(
    advantage: ArrayLike,
    roles: Sequence[Role | str | None],
    *,
    lam: float,
    constants: Mapping[Role, float] = ROLE_CREDIT,
) -> FloatArray:
    """Return A_k = A + lambda c_role(k), not yet whitened.

    Args:
        advantage: GRPO's A of the episode: one number, or one per segment, shape (K,).
        roles: role of each segment, length K; None (no usable label) adds nothing.
        lam: lambda >= 0; 0.2 for ALFWorld and WebShop, 0.4 for SearchQA in the paper.
        constants: c by role.

    Returns:
        Shape (K,). The correction may turn the sign of a small outcome advantage.

    >>> segment_advantages(0.866, ["D", "E", "N", "R", None], lam=0.2).round(4).tolist()
    [1.066, 0.966, 0.846, 0.766, 0.866]
    """
    credit = np.nan_to_num(role_credit(roles, constants))
    return corrected(advantage, credit, lam=lam)


def corrected(advantage: ArrayLike, credit: FloatArray, *, lam: float) -> FloatArray:
    """Return A + lam * credit per segment, shape (K,), for any bounded credit."""
    base = np.asarray(advantage, dtype=np.float64)
    outcome = vector("advantage", np.full(credit.size, base) if base.ndim == 0 else base, credit.size)
    if not (np.isfinite(lam) and lam >= 0):
        raise ValueError(f"lam must be a finite number of at least 0, got {lam}")
    with np.errstate(over="ignore"):
        return bounded(outcome + lam * credit)


def whiten_segments(advantages: ArrayLike, *, weights: ArrayLike | None = None, eps: float = 1e-8) -> FloatArray:
    """Return (A - mean) / (std + eps) over all segments of a batch, shape (K,), population statistics.

    Args:
        advantages: corrected advantages of every segment of the batch, shape (K,).
        weights: None counts each segment once (the default); token counts weigh long segments more. A segment of
            weight 0 gets 0.
        eps: added to the standard deviation.
    """
    values = vector("advantages", advantages)
    if weights is not None:
        return whiten(values, weights, eps=eps)
    centred, std = deviations(values)
    return divided(centred, std + eps)


def batch_advantages(
    advantages: ArrayLike,
    roles: Sequence[Role | str | None],
    *,
    lam: float,
    constants: Mapping[Role, float] = ROLE_CREDIT,
    whitened: bool = True,
    weights: ArrayLike | None = None,
) -> FloatArray:
    """Return the advantages of all K segments of a batch: correction, then whitening.

    A missing label is neutral in both steps. Whitening subtracts the mean correction of the labelled segments; an
    unlabelled one therefore gets that mean first (ours), so that it ends where its outcome alone puts it. Without
    whitening it gets 0.

    Args:
        advantages: GRPO's A of the episode of each segment, shape (K,).
        roles, lam, constants: see :func:`segment_advantages`.
        whitened: False leaves the sum as it is.
        weights: see :func:`whiten_segments`.
    """
    credit = role_credit(roles, constants)
    return neutral_corrected(advantages, credit, lam=lam, whitened=whitened, weights=weights)


def neutral_corrected(
    advantages: ArrayLike, credit: FloatArray, *, lam: float, whitened: bool, weights: ArrayLike | None = None
) -> FloatArray:
    """:func:`batch_advantages` for any credit per segment, NaN where it is missing."""
    known = ~np.isnan(credit)
    neutral = float(credit[known].mean()) if whitened and known.any() else 0.0
    values = corrected(advantages, np.where(known, credit, neutral), lam=lam)
    return whiten_segments(values, weights=weights) if whitened else values
