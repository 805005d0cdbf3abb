import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_gym.trainers.credit import grpo, sampling


def test_silent_groups_go_and_the_share_is_reported():
    result = sampling.informative([0, 1, 1, 1, 0, 0, 3], ["a", "a", "b", "b", "c", "c", "d"])
    assert result.keep.tolist() == [True, True, False, False, False, False, True]
    assert (result.dropped_groups, result.groups, result.dropped_share) == (2, 4, 0.5)


def test_tolerance_and_nothing_at_all():
    assert not sampling.informative([0.0, 0.01], [1, 1], tolerance=0.1).keep.any()
    assert sampling.informative([], []).dropped_share == 0.0
    with pytest.raises(ValueError, match=r"groups must have shape \(2,\), got \(1,\)"):
        sampling.informative([1, 2], [1])


@given(st.lists(st.tuples(st.integers(-2, 2), st.integers(0, 4)), min_size=1, max_size=30))
def test_what_goes_is_exactly_what_teaches_grpo_nothing(rows):
    returns, groups = (np.array(x) for x in zip(*rows))
    keep = sampling.informative(returns, groups).keep
    for group in np.unique(groups):
        members = groups == group
        advantages = grpo.group_advantages(returns[members])
        assert keep[members].all() == (members.sum() == 1 or bool(np.any(advantages != 0)))
