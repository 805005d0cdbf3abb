import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_gym.trainers.credit import mismatch

TRAINER = np.log([[0.5, 0.9, 0.3], [0.5, 0.5, 0.5]])
SAMPLER = np.log([[0.1, 0.9, 0.3], [0.5, 0.4, 0.5]])
MASK = np.array([[1, 1, 0], [1, 1, 1]])


def test_token_weights_are_truncated():
    got = mismatch.token_truncated(TRAINER, SAMPLER, MASK)
    assert got == pytest.approx(np.array([[2.0, 1.0, 0.0], [1.0, 1.25, 1.0]]))


def test_a_sequence_beyond_the_cap_is_dropped_whole():
    got = mismatch.sequence_masked(TRAINER, SAMPLER, MASK)
    assert got == pytest.approx(np.array([[0.0, 0.0, 0.0], [1.25, 1.25, 1.25]]))
    assert mismatch.sequence_masked(TRAINER, SAMPLER, MASK, cap=5.0)[0] == pytest.approx([5.0, 5.0, 0.0])


@pytest.mark.parametrize("rule", [mismatch.token_truncated, mismatch.sequence_masked])
def test_equal_policies_need_no_correction(rule):
    assert rule(TRAINER, TRAINER, MASK).tolist() == MASK.tolist()


@pytest.mark.parametrize("rule", [mismatch.token_truncated, mismatch.sequence_masked])
@given(
    st.lists(
        st.tuples(st.floats(allow_nan=False, allow_infinity=False), st.floats(-5, 5), st.booleans()),
        min_size=1,
        max_size=8,
    )
)
def test_finite_capped_and_zero_where_masked(rule, tokens):
    new, old, mask = (np.array([[t[i] for t in tokens]]) for i in range(3))
    got = rule(new, old, mask)
    assert ((got >= 0) & (got <= 2.0)).all()
    assert (got[~mask] == 0).all()
    poisoned = rule(np.where(mask, new, np.nan), old, mask)
    assert poisoned.tolist() == got.tolist()


def test_a_cap_below_one_is_refused():
    with pytest.raises(ValueError, match=r"cap must be at least 1, got 0\.5"):
        mismatch.token_truncated(TRAINER, SAMPLER, MASK, cap=0.5)
