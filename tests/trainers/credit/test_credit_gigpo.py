import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_gym.trainers.credit import gigpo

RETURNS = [0.9025, 0.95, 1.0, 0.0, 0.0]
ANCHORS = ["s0", "s1", "s0", "s0", "s2"]
ANY = st.floats(allow_nan=False, allow_infinity=False)


def test_discounted_returns():
    assert gigpo.discounted_returns([0, 0, 1]) == pytest.approx(RETURNS[:3])
    assert gigpo.discounted_returns([0, 0]).tolist() == [0, 0]


@pytest.mark.parametrize(
    ("norm", "expected"), [("none", [0.2683, 0, 0.3658, -0.6342, 0]), ("std", [0.4867, 0, 0.6635, -1.1502, 0])]
)
def test_step_advantages_of_the_specification(norm, expected):
    got = gigpo.step_advantages(RETURNS, ANCHORS, norm=norm)
    assert got == pytest.approx(expected, abs=1e-4)
    ragged = gigpo.step_advantages([RETURNS[:3], RETURNS[3:]], [ANCHORS[:3], ANCHORS[3:]], norm=norm)
    assert [row.tolist() for row in ragged] == [got[:3].tolist(), got[3:].tolist()]


def test_episode_advantages_of_the_specification():
    assert gigpo.episode_advantages([1, 0], norm="none").tolist() == [0.5, -0.5]
    assert gigpo.episode_advantages([1, 0]) == pytest.approx([0.7071, -0.7071], abs=1e-4)
    weighted = gigpo.episode_advantages([1, 0], [3, 2], norm="none", weighting="step")
    assert weighted == pytest.approx([0.4, -0.6])
    rows = np.array([1, 1, 1, 0, 0.0])
    std = gigpo.episode_advantages([1, 0], [3, 2], weighting="step")
    assert std == pytest.approx([0.4 / rows.std(ddof=1), -0.6 / rows.std(ddof=1)], rel=1e-5)


def test_groups_of_one_differ_between_the_two_levels():
    assert gigpo.episode_advantages([0.7]).tolist() == [0.7]
    assert gigpo.step_advantages([0.7], ["s"]).tolist() == [0.0]


@given(st.lists(st.tuples(ANY, st.integers(0, 3)), min_size=1, max_size=30), st.randoms(use_true_random=False))
def test_step_advantages_are_finite_and_independent_of_order(steps, random):
    values, anchors = [r for r, _ in steps], [a for _, a in steps]
    got = gigpo.step_advantages(values, anchors)
    assert np.isfinite(got).all()
    assert all(got[i] == 0 for i in range(len(steps)) if anchors.count(anchors[i]) == 1)
    order = list(range(len(steps)))
    random.shuffle(order)
    again = gigpo.step_advantages([values[i] for i in order], [anchors[i] for i in order])
    assert again.tolist() == got[order].tolist()


@given(st.lists(st.tuples(st.floats(-10, 10), st.integers(0, 2)), min_size=1, max_size=30))
def test_every_anchor_group_has_mean_zero(steps):
    anchors = np.array([a for _, a in steps])
    got = gigpo.step_advantages([r for r, _ in steps], anchors.tolist(), norm="none")
    assert all(abs(got[anchors == a].sum()) < 1e-9 for a in np.unique(anchors))


@given(st.lists(ANY, max_size=20))
def test_returns_stay_finite(rewards):
    assert np.isfinite(gigpo.discounted_returns(rewards, gamma=1.0)).all()


def test_similar_anchors_compare_with_the_first_member():
    texts = ["you see a drawer 1", "you see a drawer 2", "you see a fridge", "you see a drawer 1"]
    assert gigpo.similar_anchors(texts, threshold=0.9) == [0, 0, 1, 0]
    assert gigpo.similar_anchors(texts, threshold=1.0) == [0, 1, 2, 0]
    assert gigpo.similar_anchors(texts, threshold=0.0) == [0, 0, 0, 0]


def test_combination_and_penalty():
    assert gigpo.combined(0.5, [1.0, -1.0], omega=0.5).tolist() == [1.0, 0.0]
    assert gigpo.combined([0.5, 1.0], [1.0, -1.0]).tolist() == [1.5, 0.0]
    assert gigpo.penalise_invalid([0.0, 1.0], [False, True]).tolist() == [-0.1, 1.0]


def test_errors_say_what_does_not_fit():
    with pytest.raises(ValueError, match="anchors must hold one anchor a step, 2, got 1"):
        gigpo.step_advantages([1, 2], ["a"])
    with pytest.raises(ValueError, match="arranged like step_returns"):
        gigpo.step_advantages([[1, 2]], [["a"]])
    with pytest.raises(ValueError, match="norm must be one of 'std', 'none', got 'mean'"):
        gigpo.step_advantages([1], ["a"], norm="mean")
    with pytest.raises(ValueError, match="needs steps"):
        gigpo.episode_advantages([1, 2], weighting="step")
