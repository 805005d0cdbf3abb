import doctest
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_gym import role_theory
from agentic_gym.episodes import Episode, Step
from agentic_gym.role_theory import fit_constants, fit_constants_to_episodes
from agentic_gym.roles import ROLE_CREDIT, Role

SAMPLES = st.lists(st.tuples(st.sampled_from([*Role, None]), st.floats(-3, 3)), min_size=1, max_size=30)


def error_after(roles, residuals, lam, whitened):
    c = np.array([0.0 if r is None else ROLE_CREDIT[r] for r in roles])
    d = np.array(residuals)
    if whitened:
        c, d = c - c.mean(), d - d.mean()
    return float(np.mean((d - lam * c) ** 2))


@given(SAMPLES, st.booleans())
def test_lambda_range_is_exactly_where_the_correction_helps(sample, whitened):
    roles, residuals = map(list, zip(*sample))
    fit = fit_constants(roles, residuals, whitened=whitened)
    before = error_after(roles, residuals, 0.0, whitened)
    assert fit.mse_before == pytest.approx(before, abs=1e-12)
    for share in (0.1, 0.5, 0.9):
        after = error_after(roles, residuals, share * fit.largest_lambda, whitened)
        assert after < before or fit.largest_lambda * fit.covariance == 0 or before - after < 1e-9
        assert after <= before + 1e-12
    assert error_after(roles, residuals, 1.1 * fit.largest_lambda + 1e-3, whitened) >= before - 1e-9
    assert fit.mse_after == pytest.approx(error_after(roles, residuals, fit.best_lambda, whitened), abs=1e-12)
    assert fit.mse_fitted <= fit.mse_after + 1e-12 or (whitened and None in roles)


def test_recovers_the_constants_of_a_known_process():
    rng = np.random.default_rng(0)
    roles = rng.choice(list(Role), size=20_000)
    residuals = [0.3 * ROLE_CREDIT[Role(r)] + n for r, n in zip(roles, rng.normal(0, 0.5, roles.size))]
    fit = fit_constants(list(roles), residuals, lam=0.3)
    for role in Role:
        assert fit.constants[role] == pytest.approx(0.3 * ROLE_CREDIT[role], abs=5 * fit.standard_errors[role])
    assert fit.best_lambda == pytest.approx(0.3, abs=0.02)
    assert fit.covariance > 0
    assert fit.mse_after < fit.mse_before
    assert "lambda" in str(fit)


def test_an_unreliable_judge_helps_with_no_lambda():
    roles = [Role.DECISIVE, Role.REGRESSION] * 50
    fit = fit_constants(roles, [-1.0, 1.0] * 50)
    assert fit.covariance < 0
    assert (fit.largest_lambda, fit.mse_after) == (0.0, fit.mse_before)
    assert fit_constants([None, None], [1.0, 2.0]).largest_lambda == 0.0


def test_counts_and_missing_labels():
    fit = fit_constants(["D", None, "D", "N"], [1.0, 5.0, 2.0, 0.0])
    assert fit.counts == {Role.DECISIVE: 2, Role.EXPLORATION: 0, Role.NO_PROGRESS: 1, Role.REGRESSION: 0}
    assert fit.unlabelled == 1
    assert fit.constants[Role.DECISIVE] == 1.5
    assert math.isnan(fit.standard_errors[Role.NO_PROGRESS])
    assert fit.constants[Role.EXPLORATION] == 0.0


def test_episodes_give_the_roles_of_their_steps():
    def episode(*roles, **fields):
        return Episode("t", "", "", steps=[Step("a", "o", role=role) for role in roles], **fields)

    episodes = [episode(Role.DECISIVE, None), episode(Role.REGRESSION, outcome="masked"), episode(Role.REGRESSION)]
    fit = fit_constants_to_episodes(episodes, [[1.0, 0.0], [9.0], [-1.0]])
    assert fit == fit_constants(["D", None, "R"], [1.0, 0.0, -1.0]) or math.isnan(fit.standard_errors[Role.DECISIVE])
    assert (fit.unlabelled, fit.constants[Role.REGRESSION]) == (1, -1.0)
    with pytest.raises(ValueError, match=r"residuals\[0\] must have shape \(2,\), got \(1,\)"):
        fit_constants_to_episodes(episodes, [[1.0], [9.0], [-1.0]])
    with pytest.raises(ValueError, match="one array an episode, 3, got 1"):
        fit_constants_to_episodes(episodes, [[1.0, 0.0]])


@pytest.mark.parametrize(
    ("roles", "residuals", "message"),
    [
        (["D"], [1.0, 2.0], r"residuals must have shape \(1,\)"),
        ([], [], "at least one"),
        (["X"], [1.0], "a role must be one of D, E, N, R or None"),
        (["D"], [math.nan], "residuals must be finite, got nan"),
    ],
)
def test_bad_input_is_one_clear_error(roles, residuals, message):
    with pytest.raises(ValueError, match=message):
        fit_constants(roles, residuals)


def test_example_in_the_docstring():
    assert doctest.testmod(role_theory).failed == 0
