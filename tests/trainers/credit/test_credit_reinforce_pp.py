import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from agentic_gym.trainers.credit import reinforce_pp

ANY = st.floats(allow_nan=False, allow_infinity=False)
PAIRS = st.lists(st.tuples(ANY, st.floats(0, 1e6)), min_size=1, max_size=40)


def test_whitening_has_weighted_mean_zero_and_variance_one():
    rng = np.random.default_rng(0)
    x, w = rng.normal(3.0, 5.0, (8, 50)), rng.integers(0, 4, (8, 50)).astype(float)
    y = reinforce_pp.whiten(x, w)
    assert y.shape == x.shape
    assert np.average(y, weights=w) == pytest.approx(0.0, abs=1e-12)
    assert np.average(y**2, weights=w) == pytest.approx(1.0, rel=1e-6)


def test_weights_are_counts_of_tokens():
    values, counts = np.array([0.3, -1.0, 2.0]), np.array([5, 1, 3])
    repeated = np.repeat(values, counts)
    for ddof in (0, 1):
        expected = (repeated - repeated.mean()) / np.sqrt(repeated.var(ddof=ddof) + 1e-8)
        got = reinforce_pp.whiten(values, counts, ddof=ddof)
        assert np.repeat(got, counts) == pytest.approx(expected, rel=1e-9)


@given(PAIRS, st.sampled_from([0, 1]), st.sampled_from([0.0, 1e-8]), st.randoms(use_true_random=False))
def test_whiten_is_finite_and_does_not_depend_on_order(pairs, ddof, eps, random):
    x, w = map(np.array, zip(*pairs))
    y = reinforce_pp.whiten(x, w, ddof=ddof, eps=eps)
    assert np.isfinite(y).all()
    assert (y[w == 0] == 0).all()
    order = list(range(x.size))
    random.shuffle(order)
    assert reinforce_pp.whiten(x[order], w[order], ddof=ddof, eps=eps).tolist() == y[order].tolist()


@given(arrays(float, 12, elements=st.floats(-9, 9)), arrays(bool, 12))
def test_masked_values_are_not_read(values, mask):
    poisoned = np.where(mask, values, np.nan)
    assert reinforce_pp.whiten(poisoned, mask).tolist() == reinforce_pp.whiten(values, mask).tolist()


def test_one_token_and_no_token():
    assert reinforce_pp.whiten([5.0], [1]).tolist() == [0.0]
    assert reinforce_pp.whiten([5.0], [1], ddof=1).tolist() == [0.0]
    assert reinforce_pp.whiten([5.0, np.nan], [0, 0]).tolist() == [0.0, 0.0]
    assert reinforce_pp.whiten(np.zeros((0, 3)), np.zeros((0, 3))).shape == (0, 3)


@given(arrays(float, 15, elements=st.floats(-3, 3)), arrays(bool, 15), st.sampled_from([1.0, 0.9, 0.0]))
def test_the_return_walks_over_tool_results(rewards, mask, gamma):
    rewards = np.where(mask, rewards, 0.0)
    got = reinforce_pp.returns_to_go(rewards, mask, gamma=gamma)
    short = rewards[mask]
    expected = [sum(gamma ** (k - t) * short[k] for k in range(t, short.size)) for t in range(short.size)]
    assert got[mask] == pytest.approx(expected, abs=1e-9)
    assert (got[~mask] == 0).all()


def test_a_terminal_reward_on_a_masked_token_is_not_lost():
    assert reinforce_pp.returns_to_go([0, 0, 0, 1.0], [1, 0, 1, 0]).tolist() == [1.0, 0.0, 1.0, 0.0]
    assert reinforce_pp.returns_to_go([0, 0, 0, 1.0], [1, 0, 1, 0], gamma=0.5).tolist() == [0.5, 0.0, 1.0, 0.0]


@given(st.lists(ANY, max_size=20), st.sampled_from([1.0, 0.5]))
def test_returns_of_any_finite_reward_are_numbers(rewards, gamma):
    assert np.isfinite(reinforce_pp.returns_to_go(rewards, [True] * len(rewards), gamma=gamma)).all()


def test_advantage_is_reward_minus_the_kl_still_to_come():
    kl, mask = np.array([0.1, np.nan, 0.2, 0.4, np.nan]), np.array([1, 0, 1, 1, 0], bool)
    rewards = reinforce_pp.token_rewards(1.0, kl, mask, beta=0.5)
    got = reinforce_pp.returns_to_go(rewards, mask)
    assert got == pytest.approx([1 - 0.5 * 0.7, 0, 1 - 0.5 * 0.6, 1 - 0.5 * 0.4, 0])
    assert reinforce_pp.token_rewards(1.0, [9.0], [0], beta=0.5).tolist() == [0.0]


def test_batch_advantages_with_and_without_group_baseline():
    returns, tokens, groups = [1.0, 0.0, 1.0, 1.0, 5.0], [10, 20, 30, 0, 40], ["a", "a", "b", "b", "c"]
    plain = reinforce_pp.batch_advantages(returns, tokens)
    assert np.average(plain, weights=tokens) == pytest.approx(0.0, abs=1e-12)
    assert plain[3] == 0.0
    centred = np.array([0.5, -0.5, 0.0, 0.0, 5.0])
    mean = np.average(centred, weights=tokens)
    std = np.sqrt(np.average((centred - mean) ** 2, weights=tokens))
    got = reinforce_pp.batch_advantages(returns, tokens, groups=groups)
    assert got[[0, 1, 2, 4]] == pytest.approx(((centred - mean) / std)[[0, 1, 2, 4]], rel=1e-6)


def test_errors_name_the_shapes():
    with pytest.raises(ValueError, match=r"weights must have the shape of values \(2,\), got \(3,\)"):
        reinforce_pp.whiten([1, 2], [1, 2, 3])
    with pytest.raises(ValueError, match=r"must not be negative, got -1\.0"):
        reinforce_pp.whiten([1, 2], [1, -1])
    with pytest.raises(ValueError, match=r"mask must have shape \(2,\), got \(1,\)"):
        reinforce_pp.returns_to_go([1, 2], [1])
    with pytest.raises(ValueError, match=r"groups must have shape \(2,\)"):
        reinforce_pp.batch_advantages([1, 2], [1, 1], groups=["a"])
    with pytest.raises(ValueError, match="gamma"):
        reinforce_pp.returns_to_go([1, 2], [1, 1], gamma=1.5)
