import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_gym.roles import Role
from agentic_gym.trainers.credit import scalar, triage

ANY = st.floats(allow_nan=False, allow_infinity=False)
ROLES = st.sampled_from([*Role, None])


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [(0.8660, [1.0660, 0.9660, 0.8460, 0.7660]), (-0.8660, [-0.6660, -0.7660, -0.8860, -0.9660])],
)
def test_vectors_of_the_specification(outcome, expected):
    assert triage.segment_advantages(outcome, list("DENR"), lam=0.2) == pytest.approx(expected)
    assert triage.segment_advantages([outcome] * 4, list(Role), lam=0.2) == pytest.approx(expected)


def test_a_missing_label_adds_nothing_and_constants_can_be_replaced():
    assert triage.segment_advantages(0.5, [None, "D"], lam=0.2).tolist() == [0.5, 0.7]
    own = {Role.DECISIVE: 2.0, Role.EXPLORATION: 0.0, Role.NO_PROGRESS: 0.0, Role.REGRESSION: 0.0}
    assert triage.segment_advantages(0.5, ["D", "R"], lam=1.0, constants=own).tolist() == [2.5, 0.5]
    assert triage.segment_advantages(0.5, [], lam=0.2).shape == (0,)


def test_a_silent_group_is_trained_by_its_roles_alone():
    whitened = triage.batch_advantages([0.0] * 4, list("DENR"), lam=0.2)
    assert whitened.mean() == pytest.approx(0.0, abs=1e-12)
    assert (np.diff(whitened) < 0).all()
    assert whitened[2] < 0 < whitened[1]  # whitening makes "no progress" clearly negative


def test_whitening_is_a_population_z_score_per_segment_or_per_token():
    a = np.array([1.0, 2.0, 6.0])
    assert triage.whiten_segments(a) == pytest.approx((a - a.mean()) / a.std())
    w = np.array([1, 1, 4])
    mean = np.average(a, weights=w)
    expected = (a - mean) / np.sqrt(np.average((a - mean) ** 2, weights=w))
    assert triage.whiten_segments(a, weights=w) == pytest.approx(expected)
    assert triage.whiten_segments([3.0, 3.0]).tolist() == [0.0, 0.0]


@given(st.lists(st.sampled_from(list(Role)), min_size=1, max_size=8), st.integers(1, 5))
def test_a_missing_label_stays_neutral_through_whitening(roles, missing):
    """With equal outcomes the only signal is the role, so a segment without one must end at exactly the mean."""
    got = triage.batch_advantages([0.3] * (len(roles) + missing), [*roles, *[None] * missing], lam=0.2)
    assert got[len(roles) :] == pytest.approx([0.0] * missing, abs=1e-9)


@given(st.lists(st.tuples(ANY, ROLES), min_size=1, max_size=20), st.floats(0, 100), st.booleans())
def test_finite_and_independent_of_order(rows, lam, whitened):
    outcome, roles = map(list, zip(*rows))
    got = triage.batch_advantages(outcome, roles, lam=lam, whitened=whitened)
    assert np.isfinite(got).all()
    again = triage.batch_advantages(outcome[::-1], roles[::-1], lam=lam, whitened=whitened)
    assert again == pytest.approx(got[::-1], rel=1e-9, abs=1e-9 * np.abs(got).max())


def test_lambda_zero_without_whitening_is_grpo():
    outcome = [0.3, -0.2, 0.9]
    assert triage.batch_advantages(outcome, list("DRN"), lam=0.0, whitened=False).tolist() == outcome


def test_scalar_credit_is_clipped_and_neutral_where_missing():
    got = scalar.segment_advantages(0.5, [0.5, 9.0, -9.0, None, np.nan], lam=0.2)
    assert got == pytest.approx([0.6, 0.7, 0.3, 0.5, 0.5])
    whitened = scalar.batch_advantages([0.0, 0.0, 0.0], [1.0, None, -1.0], lam=0.2)
    assert whitened[1] == 0.0
    assert whitened[0] == -whitened[2] > 0


def test_errors_name_the_value():
    with pytest.raises(ValueError, match="a role must be one of D, E, N, R or None, got 'X'"):
        triage.segment_advantages(0.0, ["D", "X"], lam=0.2)
    with pytest.raises(ValueError, match=r"got \['D'\]"):
        triage.segment_advantages(0.0, [["D"]], lam=0.2)
    with pytest.raises(ValueError, match=r"advantage must have shape \(2,\), got \(3,\)"):
        triage.segment_advantages([1, 2, 3], ["D", "E"], lam=0.2)
    with pytest.raises(ValueError, match="lam must be a finite number of at least 0, got -1"):
        triage.segment_advantages(0.0, ["D"], lam=-1)
