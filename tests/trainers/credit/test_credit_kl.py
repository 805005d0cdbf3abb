import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_gym.trainers.credit import kl

ANY = st.floats(allow_nan=False, allow_infinity=False)


def test_values():
    logp, reference, mask = [-1.0, -2.0, np.nan], [-1.5, -1.0, np.nan], [1, 1, 0]
    assert kl.token_kl(logp, reference, mask, kind="k1").tolist() == [0.5, -1.0, 0.0]
    assert kl.token_kl(logp, reference, mask, kind="k2").tolist() == [0.125, 0.5, 0.0]
    k3 = [math.exp(-0.5) + 0.5 - 1, math.exp(1.0) - 1.0 - 1, 0.0]
    assert kl.token_kl(logp, reference, mask) == pytest.approx(k3)
    assert kl.token_kl(logp, reference, mask, kind="k3+") == pytest.approx(k3)


@pytest.mark.parametrize("kind", ["k1", "k3"])
def test_k1_and_k3_estimate_the_divergence_without_bias(kind):
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])
    estimate = (p * kl.token_kl(np.log(p), np.log(q), np.ones(3), kind=kind)).sum()
    assert estimate == pytest.approx((p * np.log(p / q)).sum())


def test_the_gradient_of_k2_is_that_of_the_divergence():
    """E_p[k2'(d) grad log p] = grad KL(p || q); k1 as a loss has none, which is the trap."""
    logits, q = np.array([0.3, -0.2, 0.9]), np.array([0.2, 0.3, 0.5])

    def softmax(z):
        return np.exp(z) / np.exp(z).sum()

    def divergence(z):
        return (softmax(z) * np.log(softmax(z) / q)).sum()

    true = [(divergence(logits + h) - divergence(logits - h)) / 2e-6 for h in 1e-6 * np.eye(3)]
    p = softmax(logits)
    scores = np.eye(3) - p  # d log p(a) / d logits, one row per action

    def expected(kind):
        return (p * kl.token_kl_gradient(np.log(p), np.log(q), np.ones(3), kind=kind)) @ scores

    assert expected("k2") == pytest.approx(true, abs=1e-6)
    assert expected("k3+") == pytest.approx(true, abs=1e-6)
    assert expected("k1") == pytest.approx([0, 0, 0], abs=1e-12)


@given(st.floats(-30, 2), st.floats(-30, 0), st.sampled_from(["k1", "k2", "k3"]))
def test_gradient_is_the_slope(logp, reference, kind):
    def f(x):
        return kl.token_kl([x], [reference], [1], kind=kind)[0]

    d = logp - reference
    if min(abs(abs(d) - 20), abs(math.exp(min(-d, 30)) + d - 1 - 10)) > 0.05:  # away from the clamps' kinks
        slope = (f(logp + 1e-6) - f(logp - 1e-6)) / 2e-6
        assert kl.token_kl_gradient([logp], [reference], [1], kind=kind)[0] == pytest.approx(slope, rel=1e-3, abs=1e-4)


@given(st.lists(st.tuples(ANY, ANY, st.booleans()), max_size=20), st.sampled_from(kl.KINDS))
def test_finite_and_zero_where_masked(rows, kind):
    a, b, mask = (np.array([row[i] for row in rows]) for i in range(3))
    for function in (kl.token_kl, kl.token_kl_gradient):
        result = function(a, b, mask.astype(bool), kind=kind)
        assert np.isfinite(result).all()
        assert (result[~mask.astype(bool)] == 0).all()


def test_unknown_kind():
    with pytest.raises(ValueError, match="kind must be one of 'k1', 'k2', 'k3', 'k3\\+', got 'k4'"):
        kl.token_kl([0.0], [0.0], [1], kind="k4")
