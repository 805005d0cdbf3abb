import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_gym.trainers.credit import otc

COUNT = st.integers(0, 10**6)


@pytest.mark.parametrize(
    ("calls", "optimal", "limit", "expected"),
    [
        (0, 0, 3, 1.0),
        (1, 0, 3, 0.809017),
        (2, 0, 3, 0.623490),
        (3, 0, 3, 0.5),
        (1, 0, 4, 0.866025),
        (4, 0, 4, 0.5),
        (0, 2, 4, 0.0),
        (1, 2, 4, 0.866025),
        (2, 2, 4, 1.0),
        (3, 2, 4, 0.951057),
        (4, 2, 4, 0.866025),
        (2, 1, 4, 0.866025),
        (3, 1, 4, 0.707107),
        (0, None, 3, 1.0),
        (3, None, 3, 0.5),
        (1, 0, 0, 0.0),
    ],
)
def test_vectors_of_the_specification(calls, optimal, limit, expected):
    assert otc.coefficient(calls, optimal, limit) == pytest.approx(expected, abs=1e-6)


@given(COUNT, st.one_of(st.none(), COUNT), COUNT)
def test_coefficient_is_a_share_and_full_at_the_optimum(calls, optimal, limit):
    value = otc.coefficient(calls, optimal, limit)
    assert 0.0 <= value <= 1.0
    if optimal:
        f = 2 * optimal * calls / (calls + optimal)
        assert value == pytest.approx(max(0.0, math.sin(f * math.pi / (2 * optimal))), abs=1e-12)
        assert otc.coefficient(optimal, optimal, limit) == pytest.approx(1.0)


def test_ppo_form_falls_with_every_call():
    values = [otc.coefficient(m, None, 4) for m in range(8)]
    assert values == sorted(values, reverse=True)


def test_only_positive_rewards_are_shaped():
    got = otc.shape_rewards([1.0, 0.0, -1.0, 1.0], [2, 1, 3, 4], optimal=2, limit=4, alpha=2.0)
    assert got == pytest.approx([2.0, 0.0, -1.0, 2 * 0.866025], abs=1e-6)


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=30))
def test_optimal_only_falls_and_ignores_wrong_episodes(history):
    optimal: dict[str, int] = {"other": 4}
    seen = []
    for calls, correct in history:
        before = optimal
        optimal = otc.lowered(optimal, "task", [calls], [correct])
        seen += [calls] if correct else []
        assert optimal.get("task", math.inf) <= before.get("task", math.inf)
    assert optimal == ({"other": 4, "task": min(seen)} if seen else {"other": 4})


def test_lowering_first_keeps_a_correct_toolless_episode_at_full_reward():
    optimal = otc.lowered({"q": 2}, "q", calls=[0, 2], correct=[True, True])
    assert otc.shape_rewards([1, 1], [0, 2], optimal=optimal["q"], limit=4)[0] == 1.0


@pytest.mark.parametrize("arguments", [(-1, 1, 3), (1, -1, 3), (1, 1, -3), (1, 1, math.nan)])
def test_impossible_counts_are_refused(arguments):
    with pytest.raises(ValueError, match="at least 0"):
        otc.coefficient(*arguments)
    with pytest.raises(ValueError, match="whole numbers"):
        otc.shape_rewards([1.0], np.array([0.5]), optimal=1, limit=3)
