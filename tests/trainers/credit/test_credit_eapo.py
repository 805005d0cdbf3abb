import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_gym.trainers.credit import eapo, grpo

ANY = st.floats(allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize(
    ("correct", "calls", "rewards", "shaped", "advantages"),
    [
        ([1, 1, 0, 0], [3, 1, 2, 0], [1, 1, 0, 0], [0.567668, 1, 0, 0], [0.3618, 1.2518, -0.8068, -0.8068]),
        (
            [1, 1, 1, 1],
            [0, 1, 2, 3],
            [1, 1, 1, 1],
            [1, 0.367879, 0.135335, 0.049787],
            [1.4246, -0.0474, -0.5890, -0.7882],
        ),
        ([0, 0, 0, 0], [1, 2, 3, 0], [0, 0, -1, 0], [0, 0, -1, 0], [0.5, 0.5, -1.5, 0.5]),
        ([1, 1, 1, 0], [1, 1, 1, 4], [1, 1, 1, -1], [1, 1, 1, -0.287340], [0.5, 0.5, 0.5, -1.5]),
    ],
)
def test_vectors_of_the_specification(correct, calls, rewards, shaped, advantages):
    got = eapo.shape_rewards(rewards, calls, correct, shape_negative=True)
    assert got == pytest.approx(shaped, abs=1e-6)
    assert grpo.group_advantages(got) == pytest.approx(advantages, abs=1e-4)


def test_parts_of_the_first_vector():
    correct, calls = [1, 1, 0, 0], [3, 1, 2, 0]
    assert eapo.difficulty(correct) == 0.5
    assert eapo.efficiency(calls, correct) == pytest.approx([0.135335, 1, 0.367879, 1], abs=1e-6)


def test_negative_rewards_stay_as_they_are_by_default():
    assert eapo.shape_rewards([1, 1, 1, -1], [1, 1, 1, 4], [1, 1, 1, 0]).tolist() == [1, 1, 1, -1]


def test_a_cheap_wrong_answer_is_not_raised():
    arguments = ([1.0, 0.4], [3, 1], [True, False])
    assert eapo.shape_rewards(*arguments)[1] == 0.4
    literal = eapo.shape_rewards(*arguments, clamp=False)[1]
    assert literal == pytest.approx(0.4 * (0.5 + 0.5 * np.exp(2)))
    assert eapo.efficiency([3, 0], [True, False], clamp=False).tolist() == [1.0, 1.0]  # the tool-free rule comes first


def test_three_rules_of_efficiency():
    assert eapo.efficiency([2, 1], [False, False]) == pytest.approx(np.exp([-2, -1]))  # nobody correct: c_min = 0
    assert eapo.efficiency([0, 0], [False, False]).tolist() == [1, 1]
    assert eapo.efficiency([5, 2, 0], [True, True, False], beta=0.5) == pytest.approx([np.exp(-1.5), 1, 1])
    assert eapo.efficiency([5, 2], [True, True], beta=0.0).tolist() == [1, 1]


@given(st.lists(st.tuples(ANY, st.integers(0, 10**6), st.booleans()), min_size=1, max_size=20), st.floats(0, 1e9))
def test_shaping_is_finite_bounded_and_independent_of_order(rows, beta):
    rewards, calls, correct = map(list, zip(*rows))
    eps = eapo.efficiency(calls, correct, beta=beta)
    assert ((eps >= 0) & (eps <= 1)).all()
    shaped = eapo.shape_rewards(rewards, calls, correct, beta=beta)
    assert np.isfinite(shaped).all()
    assert (np.abs(shaped) <= np.abs(rewards)).all()
    assert eapo.shape_rewards(rewards[::-1], calls[::-1], correct[::-1], beta=beta).tolist() == shaped[::-1].tolist()
    for clamp in (True, False):
        assert np.isfinite(
            eapo.shape_rewards(rewards, calls, correct, beta=beta, clamp=clamp, shape_negative=True)
        ).all()


def test_correctness_threshold_and_base_reward():
    assert eapo.is_correct([0, 0.3, 0.5, 1]).tolist() == [False, False, True, True]
    assert eapo.is_correct([0.3, 0.99, 1], threshold=1.0).tolist() == [False, False, True]
    assert eapo.base_rewards([0.3, 1.0], [True, False]).tolist() == [0.3, -1.0]


def test_tool_free_rows_are_exactly_the_quota():
    assert eapo.tool_free_rows(4, 1).tolist() == [False, False, False, True]
    assert eapo.tool_free_rows(16).sum() == 2
    with pytest.raises(ValueError, match=r"quota must lie in 0\.\.4"):
        eapo.tool_free_rows(4, 5)


def weights_by_definition(logprobs, turns, thought, correct, used_tool, rho, w_pos, w_neg):
    """The rule token by token, with numpy's interpolating quantile."""
    weights = np.ones(len(logprobs))
    for t, c in enumerate(logprobs):
        if thought[t] and used_tool[t]:
            turn = [logprobs[i] for i in range(len(logprobs)) if thought[i] and used_tool[i] and turns[i] == turns[t]]
            if correct[t] and c <= np.quantile(turn, rho):
                weights[t] = w_pos
            if not correct[t] and c >= np.quantile(turn, 1 - rho):
                weights[t] = w_neg
    return weights


TOKEN = st.tuples(st.integers(-20, 0), st.integers(0, 3), st.booleans())


@given(
    st.lists(TOKEN, min_size=1, max_size=40),
    st.booleans(),
    st.booleans(),
    st.sampled_from([0.0, 0.1, 0.2, 0.25, 0.3, 0.5, 0.7, 1.0]),
)
def test_token_weights_follow_the_definition(tokens, correct, used_tool, rho):
    logprobs, turns, thought = (np.array(x) for x in zip(*tokens))
    logprobs = logprobs / 8  # exact in binary, so interpolation cannot round onto a token
    got = eapo.token_weights(
        logprobs, turns, thought, correct=correct, used_tool=used_tool, rho=rho, w_pos=1.5, w_neg=0.5
    )
    same = [correct] * len(turns), [used_tool] * len(turns)
    assert got.tolist() == weights_by_definition(logprobs, turns, thought, *same, rho, 1.5, 0.5).tolist()


def test_a_batch_in_one_call_equals_episodes_one_by_one():
    rng = np.random.default_rng(0)
    parts, batch = [], []
    for episode in range(20):
        n = int(rng.integers(1, 30))
        logprobs, turns, thought = -rng.random(n), np.sort(rng.integers(0, 4, n)), rng.random(n) < 0.7
        correct, used = bool(rng.random() < 0.5), bool(rng.random() < 0.7)
        parts.append(eapo.token_weights(logprobs, turns, thought, correct=correct, used_tool=used))
        batch.append((logprobs, turns + 10 * episode, thought, np.full(n, correct), np.full(n, used)))
    logprobs, turns, thought, correct, used = (np.concatenate(x) for x in zip(*batch))
    together = eapo.token_weights(logprobs, turns, thought, correct=correct, used_tool=used)
    assert together.tolist() == np.concatenate(parts).tolist()


def test_selection_is_by_turn_and_by_correctness():
    logprobs = [-5.0, -0.1, -0.2, -0.3, -0.4, -0.5]
    turns, thought = [0, 0, 1, 1, 1, 1], [True] * 6
    options = {"rho": 0.2, "w_pos": 2.0, "w_neg": 3.0}
    right = eapo.token_weights(logprobs, turns, thought, correct=True, used_tool=True, **options)
    wrong = eapo.token_weights(logprobs, turns, thought, correct=False, used_tool=True, **options)
    assert right.tolist() == [2, 1, 1, 1, 1, 2]  # the least sure of each turn
    assert wrong.tolist() == [1, 3, 3, 1, 1, 1]  # the surest of each turn
    assert eapo.token_weights(logprobs, turns, thought, correct=True, used_tool=False).tolist() == [1] * 6


def test_one_token_no_token_and_ties():
    def weights(logprobs, thought):
        return eapo.token_weights(logprobs, [0] * len(logprobs), thought, correct=True, used_tool=True).tolist()

    assert weights([-1.0], [True]) == [1.5]
    assert weights([-1.0, -2.0], [False, False]) == [1, 1]
    assert weights([], []) == []
    assert weights([-1.0] * 5, [True] * 5) == [1.5] * 5


def test_tool_tokens_and_results_are_not_read():
    got = eapo.token_weights([-1.0, np.nan, -2.0], [0, 0, 0], [1, 0, 1], correct=True, used_tool=True)
    assert got.tolist() == [1.0, 1.0, 1.5]
    with pytest.raises(ValueError, match="logprobs of thought tokens must be finite"):
        eapo.token_weights([np.nan], [0], [1], correct=True, used_tool=True)


def test_errors_name_the_argument():
    with pytest.raises(ValueError, match=r"turn_ids must have shape \(2,\), got \(1,\)"):
        eapo.token_weights([0.0, 0.0], [0], [1, 1], correct=True, used_tool=True)
    with pytest.raises(ValueError, match=r"correct must have shape \(2,\), got \(3,\)"):
        eapo.token_weights([0.0, 0.0], [0, 0], [1, 1], correct=[True] * 3, used_tool=True)
    with pytest.raises(ValueError, match="rho must lie in"):
        eapo.token_weights([0.0], [0], [1], correct=True, used_tool=True, rho=1.2)
    with pytest.raises(ValueError, match="calls must be at least 0, got -1"):
        eapo.efficiency([-1], [True])
    with pytest.raises(ValueError, match="beta must be a finite number of at least 0"):
        eapo.efficiency([1], [True], beta=-1.0)
    with pytest.raises(ValueError, match=r"correct must have shape \(2,\)"):
        eapo.shape_rewards([1, 1], [0, 0], [True])
    with pytest.raises(ValueError, match="at least one episode"):
        eapo.difficulty([])
