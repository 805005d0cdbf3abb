import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from agentic_gym.trainers.credit import value

ANY = st.floats(allow_nan=False, allow_infinity=False)


def test_both_forms():
    assert value.segment_advantages(1.0, [0.25, 0.75]).tolist() == [0.75, 0.25]
    got = value.segment_advantages(1.0, [0.25, 0.75], form="progress", advantage=0.5, lam=0.2)
    assert got == pytest.approx([0.6, 0.55])
    with pytest.raises(ValueError, match="form must be one of 'baseline', 'progress', got 'x'"):
        value.segment_advantages(1.0, [0.0], form="x")


def test_value_loss_takes_the_larger_of_clipped_and_unclipped():
    loss = value.value_loss([2.0, 0.4], [0.0, 0.0], 0.0)
    assert loss.tolist() == [2.0, pytest.approx(0.08)]
    moved_past = value.value_loss([1.0], [0.0], 1.0)  # already at the target, but 0.5 beyond the clip range
    assert moved_past.tolist() == [0.125]
    assert value.value_loss([1.0], [0.0], 1.0, clip=np.inf).tolist() == [0.0]


@given(
    arrays(float, 12, elements=st.floats(-2, 2)),
    arrays(float, 12, elements=st.floats(-2, 2)),
    arrays(bool, 12),
    st.sampled_from([1.0, 0.9]),
    st.sampled_from([1.0, 0.5, 0.0]),
)
def test_gae_steps_over_masked_tokens(rewards, values, mask, gamma, lam):
    got = value.gae(np.where(mask, rewards, 0.0), np.where(mask, values, np.nan), mask, gamma=gamma, lam=lam)
    r, v = rewards[mask], np.append(values[mask], 0.0)
    delta = r + gamma * v[1:] - v[:-1]
    expected = [sum((gamma * lam) ** (k - t) * delta[k] for k in range(t, r.size)) for t in range(r.size)]
    assert got[mask] == pytest.approx(expected, abs=1e-9)
    assert (got[~mask] == 0).all()


def test_a_reward_on_a_tool_result_reaches_the_token_before_it():
    assert value.gae([0, 0, 1.0], [0.2, 9.0, 9.0], [1, 0, 0], gamma=0.5).tolist() == [0.8, 0.0, 0.0]


@given(st.lists(st.tuples(ANY, ANY, ANY), min_size=1, max_size=20))
def test_never_nan(rows):
    a, b, c = map(np.array, zip(*rows))
    assert np.isfinite(value.gae(a, b, np.ones(a.size))).all()
    assert np.isfinite(value.value_loss(a, b, c)).all()
    for form in value.FORMS:
        assert np.isfinite(value.segment_advantages(a[0], b, form=form, advantage=c[0])).all()
