import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_gym.trainers.credit import grpo

FINITE = st.floats(allow_nan=False, allow_infinity=False)
RETURNS = st.lists(FINITE, min_size=1, max_size=24)
RULES = [
    grpo.group_advantages,
    lambda r: grpo.group_advantages(r, ddof=0, eps=0.0),
    grpo.dr_grpo_advantages,
    grpo.rloo_advantages,
]


@pytest.mark.parametrize(
    ("returns", "ddof", "expected"),
    [
        ([1, 0, 0, 1], 1, [0.8660, -0.8660, -0.8660, 0.8660]),
        ([1, 0, 0, 1], 0, [1.0, -1.0, -1.0, 1.0]),
        ([1, 0, 0, 0], 1, [1.5, -0.5, -0.5, -0.5]),
        ([0.567668, 1, 0, 0], 1, [0.3618, 1.2518, -0.8068, -0.8068]),
    ],
)
def test_vectors_of_the_specification(returns, ddof, expected):
    assert grpo.group_advantages(returns, ddof=ddof) == pytest.approx(expected, abs=1e-4)


def test_dr_grpo_does_not_divide_and_rloo_leaves_the_row_itself_out():
    returns = [3.0, 1.0, 0.0, 0.0]
    assert grpo.dr_grpo_advantages(returns).tolist() == [2.0, 0.0, -1.0, -1.0]
    left_out = [r - np.mean(returns[:i] + returns[i + 1 :]) for i, r in enumerate(returns)]
    assert grpo.rloo_advantages(returns) == pytest.approx(left_out)


@pytest.mark.parametrize("rule", RULES)
def test_a_group_of_one_has_no_baseline(rule):
    assert rule([0.7]).tolist() == [0.7]
    assert rule([]).shape == (0,)


@pytest.mark.parametrize("rule", RULES)
@given(value=FINITE, size=st.integers(2, 20))
def test_equal_returns_give_exactly_zero(rule, value, size):
    assert rule([value] * size).tolist() == [0.0] * size


@pytest.mark.parametrize("rule", RULES)
@given(returns=RETURNS, order=st.randoms(use_true_random=False))
def test_finite_and_independent_of_the_order_of_rows(rule, returns, order):
    rows = list(range(len(returns)))
    order.shuffle(rows)
    straight, shuffled = rule(returns), rule([returns[i] for i in rows])
    assert np.isfinite(straight).all()
    assert shuffled.tolist() == straight[rows].tolist()


@pytest.mark.parametrize("rule", RULES)
@given(returns=st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=24))
def test_mean_is_zero(rule, returns):
    advantages = rule(returns)
    assert abs(advantages.mean()) <= 1e-9 * max(1.0, np.abs(advantages).max(), *map(abs, returns))


@given(returns=st.lists(st.integers(-5, 5), min_size=2, max_size=16), scale=st.floats(0.5, 50), shift=st.floats(-9, 9))
def test_standardised_advantages_ignore_scale_and_shift(returns, scale, shift):
    moved = grpo.group_advantages(scale * np.array(returns) + shift)
    assert moved == pytest.approx(grpo.group_advantages(returns), abs=1e-4)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ([[1.0, 2.0]], {}, r"shape \(N,\), got \(1, 2\)"),
        ([1.0, np.nan], {}, "returns must be finite, got nan at index 1"),
        (["a"], {}, "flat sequence of numbers"),
        ([1.0], {"ddof": 2}, "ddof must be one of 0, 1, got 2"),
        ([1.0], {"eps": -1.0}, "eps must not be negative"),
    ],
)
def test_bad_input_is_one_clear_error(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        grpo.group_advantages(arguments, **options)
