import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from agentic_gym.trainers.credit import tokens


@given(arrays(float, 5, elements=st.floats(-9, 9)), arrays(int, 20, elements=st.integers(0, 4)), arrays(bool, 20))
def test_every_trained_token_gets_its_rows_value_and_others_zero(values, ids, mask):
    got = tokens.spread(values, np.where(mask, ids, -1), mask)
    assert got.tolist() == np.where(mask, values[ids], 0.0).tolist()


def test_errors_name_the_range():
    with pytest.raises(ValueError, match=r"must lie in 0\.\.1, got 2\.\.2"):
        tokens.spread([1, 2], [2], [1])
    with pytest.raises(ValueError, match=r"must lie in 0\.\.1, got -1\.\.-1"):
        tokens.spread([1, 2], [-1], [1])
    with pytest.raises(ValueError, match="mask must hold booleans"):
        tokens.spread([1, 2], [0], [0.5])
    assert tokens.spread([], [-1, -1], [0, 0]).tolist() == [0.0, 0.0]
