"""When does a correction by role help, and with which constants? The theory of TRIAGE as a measurement.

Let delta = A_true - A_outcome be what the outcome advantage of a segment misses. Correcting it by lambda c(role) changes
the mean squared error from E[delta^2] to E[(delta - lambda c)^2], so

- the best constants are c(role) = E[delta | role] (with lambda = 1);
- given constants help iff 0 < lambda < 2 E[c delta] / E[c^2]; the best lambda is half that bound;
- after whitening, which removes every mean, E[c delta] and E[c^2] become Cov(c, delta) and Var(c): a judge whose labels
  do not covary with delta helps with no lambda at all.

``fit_constants`` measures these on segments whose true advantage is known, from an oracle or from Monte-Carlo returns
(many continuations of the same prefix). Source: arXiv 2606.32017, section on the optimal role-only correction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from agentic_gym.episodes import Episode
from agentic_gym.roles import ROLE_CREDIT, Role

__all__ = ["RoleFit", "fit_constants", "fit_constants_to_episodes"]


@dataclass(frozen=True)
class RoleFit:
    """What a sample of K segments says about a judge and a set of constants. Units are those of the advantage."""

    counts: Mapping[Role, int]
    """Labelled segments of each role."""
    unlabelled: int
    """Segments without a label; their correction is 0."""
    constants: Mapping[Role, float]
    """Estimate of E[delta | role]: the best constants for lambda = 1. 0 for a role that never occurs."""
    standard_errors: Mapping[Role, float]
    """Standard error of each estimate; NaN with fewer than two segments."""
    covariance: float
    """Cov(c, delta) of the given constants, population form."""
    largest_lambda: float
    """The correction reduces the error iff 0 < lambda < this; 0 where none does."""
    best_lambda: float
    """Half of ``largest_lambda``."""
    lam: float
    """The lambda that ``mse_after`` was computed with."""
    mse_before: float
    """E[delta^2] (Var(delta) if whitened)."""
    mse_after: float
    """The same after the correction with the given constants and ``lam``."""
    mse_fitted: float
    """The same after the correction with ``constants``: no role-only correction does better on this sample."""

    def __str__(self) -> str:
        """Give the measurement as a small table."""
        rows = [
            f"  {role}  {self.counts[role]:7d}  {self.constants[role]:+9.4f}  {self.standard_errors[role]:9.4f}"
            for role in self.counts
        ]
        return "\n".join(
            [
                "role  segments  E[delta]  std. error",
                *rows,
                f"unlabelled {self.unlabelled}",
                f"Cov(c, delta) {self.covariance:+.4f}; the correction helps for 0 < lambda < {self.largest_lambda:.4f}",
                f"MSE {self.mse_before:.4f}, with lambda {self.lam:.4f} {self.mse_after:.4f}, "
                f"with fitted constants {self.mse_fitted:.4f}",
            ]
        )


def fit_constants(
    roles: Sequence[Role | str | None],
    residuals: ArrayLike,
    *,
    constants: Mapping[Role, float] = ROLE_CREDIT,
    lam: float | None = None,
    whitened: bool = False,
) -> RoleFit:
    """Estimate E[residual | role] and say whether, and for which lambda, the given constants reduce the error.

    Args:
        roles: role (or its letter) of each segment, length K; None for a missing label.
        residuals: delta of each segment, shape (K,), finite: true advantage minus outcome advantage, on one scale.
        constants: c by role, to be judged.
        lam: lambda for ``mse_after``; None takes the best one.
        whitened: True removes the means of correction and residual first, as whitening of the advantages does.

    Raises:
        ValueError: no segment, different lengths, an unknown role, or a residual that is not finite.

    >>> fit = fit_constants(["D", "D", "R"], [1.0, 3.0, -1.0], lam=1.0)
    >>> fit.constants[Role.DECISIVE], fit.constants[Role.REGRESSION], fit.mse_before > fit.mse_after > fit.mse_fitted
    (2.0, -1.0, True)
    """
    delta = np.asarray(residuals, dtype=np.float64)
    if delta.ndim != 1 or delta.size != len(roles) or not delta.size:
        raise ValueError(f"residuals must have shape ({len(roles)},), one a role and at least one, got {delta.shape}")
    if not np.isfinite(delta).all():
        raise ValueError(f"residuals must be finite, got {delta[~np.isfinite(delta)][0]}")
    try:
        labels = [None if role is None else Role(role) for role in roles]
    except ValueError as error:
        raise ValueError(f"a role must be one of {', '.join(map(str, Role))} or None: {error}") from None

    members = {role: np.array([label is role for label in labels], dtype=np.bool_) for role in Role}
    fitted = {role: float(delta[rows].mean()) if rows.any() else 0.0 for role, rows in members.items()}
    spread = {
        role: float(delta[rows].std(ddof=1) / np.sqrt(rows.sum())) if rows.sum() > 1 else float("nan")
        for role, rows in members.items()
    }
    c = np.array([0.0 if label is None else constants[label] for label in labels])
    best_c = np.array([0.0 if label is None else fitted[label] for label in labels])
    covariance = float(np.mean((c - c.mean()) * (delta - delta.mean())))
    if whitened:
        c, best_c, delta = c - c.mean(), best_c - best_c.mean(), delta - delta.mean()
    power, product = float(np.mean(c * c)), float(np.mean(c * delta))
    best = max(0.0, product / power) if power > 0 else 0.0
    chosen = best if lam is None else float(lam)
    return RoleFit(
        counts={role: int(rows.sum()) for role, rows in members.items()},
        unlabelled=sum(label is None for label in labels),
        constants=fitted,
        standard_errors=spread,
        covariance=covariance,
        largest_lambda=2.0 * best,
        best_lambda=best,
        lam=chosen,
        mse_before=float(np.mean(delta**2)),
        mse_after=float(np.mean((delta - chosen * c) ** 2)),
        mse_fitted=float(np.mean((delta - best_c) ** 2)),
    )


def fit_constants_to_episodes(
    episodes: Sequence[Episode],
    residuals: Sequence[ArrayLike],
    *,
    constants: Mapping[Role, float] = ROLE_CREDIT,
    lam: float | None = None,
    whitened: bool = False,
) -> RoleFit:
    """Call :func:`fit_constants` with the roles that the steps of labelled episodes carry.

    Args:
        episodes: labelled episodes (``RoleLabels``); masked ones are left out.
        residuals: for each episode, delta of each of its steps, shape (steps,).
        constants, lam, whitened: see :func:`fit_constants`.
    """
    if len(residuals) != len(episodes):
        raise ValueError(f"residuals must hold one array an episode, {len(episodes)}, got {len(residuals)}")
    roles: list[Role | None] = []
    values: list[float] = []
    for index, (episode, residual) in enumerate(zip(episodes, residuals)):
        if episode.masked:
            continue
        row = np.asarray(residual, dtype=np.float64)
        if row.shape != (len(episode.steps),):
            raise ValueError(f"residuals[{index}] must have shape ({len(episode.steps)},), got {row.shape}")
        roles += [step.role for step in episode.steps]
        values += row.tolist()
    return fit_constants(roles, values, constants=constants, lam=lam, whitened=whitened)
