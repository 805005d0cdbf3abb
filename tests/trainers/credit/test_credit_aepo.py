import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_gym.trainers.credit import aepo

ANY = st.floats(allow_nan=False, allow_infinity=False)


@given(st.integers(1, 64), st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
def test_initial_rollouts_stay_in_the_budget(budget, root, tool):
    assert 1 <= aepo.initial_rollouts(budget, root, tool) <= budget


def test_initial_rollouts_follow_the_sigmoid():
    assert aepo.initial_rollouts(16, 1.0, 1.0) == 9
    for jump in (-3.0, -0.4, 0.8, 5.0):
        expected = int(16 / (1 + math.exp(-0.5 * jump))) + 1
        assert aepo.initial_rollouts(16, jump, 0.0) == min(16, expected)
    with pytest.raises(ValueError, match="budget"):
        aepo.initial_rollouts(0, 1.0, 1.0)


def test_branch_probability_is_the_rate_of_the_sampled_rule():
    u = np.random.default_rng(0).random(200_000)
    for jump in (-2.0, 0.0, 0.9):
        for made in (0, 1, 5, 12, 25):
            rule = np.clip((u + 0.2 * jump) * max(0, 1 - 0.05 * made), 0, 1) >= 0.5
            assert rule.mean() == pytest.approx(aepo.branch_probability(1 + jump, 1.0, made), abs=5e-3)


def test_branch_probability_edges():
    assert aepo.branch_probability(1.0, 1.0, 0) == pytest.approx(0.5)
    assert aepo.branch_probability(1.0, 1.0, 20) == 0.0
    assert aepo.branch_probability(1.0, 1.0, 99, base=0.0) == 1.0
    with pytest.raises(ValueError, match="consecutive must not be negative"):
        aepo.branch_probability(1.0, 1.0, -1)


def test_entropy_scaling_is_one_plus_alpha_z():
    rng = np.random.default_rng(1)
    a, h, mask = rng.normal(size=50), rng.random(50), rng.random(50) < 0.7
    z = (h - h[mask].mean()) / h[mask].std()
    assert aepo.entropy_scaled(a, h, mask) == pytest.approx(np.where(mask, a * (1 + 0.2 * z), 0.0))
    sample = (h - h[mask].mean()) / h[mask].std(ddof=1)
    assert aepo.entropy_scaled(a, h, mask, ddof=1) == pytest.approx(np.where(mask, a * (1 + 0.2 * sample), 0.0))


def test_equal_entropies_change_nothing():
    assert aepo.entropy_scaled([1.0, -2.0], [0.3, 0.3], [1, 1]).tolist() == [1.0, -2.0]
    assert aepo.entropy_scaled([1.0, -2.0], [0.3, 0.9], [1, 0]).tolist() == [1.0, 0.0]


def test_the_factor_never_turns_the_sign():
    entropies = [0.0] + [1.0] * 99
    scaled = aepo.entropy_scaled([1.0] * 100, entropies, [True] * 100)
    assert scaled[0] == 0.0  # z = -9.95, so 1 + 0.2 z would be -0.99
    assert (scaled >= 0).all()


@given(st.lists(st.tuples(ANY, ANY, st.booleans()), min_size=1, max_size=20))
def test_finite_and_masked_tokens_are_not_read(rows):
    a, h, mask = map(np.array, zip(*rows))
    scaled = aepo.entropy_scaled(a, h, mask)
    assert np.isfinite(scaled).all()
    assert (scaled[~mask] == 0).all()
    poisoned = aepo.entropy_scaled(np.where(mask, a, np.nan), np.where(mask, h, np.nan), mask)
    assert poisoned.tolist() == scaled.tolist()


def test_shapes_are_checked():
    with pytest.raises(ValueError, match=r"entropies must have shape \(2,\), got \(1,\)"):
        aepo.entropy_scaled([1, 2], [1], [1, 1])
