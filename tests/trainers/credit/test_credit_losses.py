import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_gym.trainers.credit import losses

ANY = st.floats(allow_nan=False, allow_infinity=False)


def one(ratio, advantage, **options):
    loss, slope = losses.policy_loss([math.log(ratio)], [0.0], [advantage], [1], **options)
    return loss[0], slope[0]


@pytest.mark.parametrize(
    ("ratio", "advantage", "options", "loss", "slope"),
    [
        (1.0, 2.0, {}, -2.0, -2.0),
        (1.1, 2.0, {}, -2.2, -2.2),
        (1.5, 2.0, {}, -2.4, 0.0),  # clipped above
        (0.5, 2.0, {}, -1.0, -1.0),  # the pessimistic side is not clipped
        (0.5, -2.0, {}, 1.6, 0.0),  # clipped below
        (1.5, -2.0, {}, 3.0, 3.0),
        (5.0, -2.0, {}, 6.0, 0.0),  # dual clip
        (5.0, -2.0, {"dual": None}, 10.0, 10.0),
        (1.25, 2.0, {"high": 0.28}, -2.5, -2.5),  # clip-higher
        (1.5, 2.0, {"keep_clipped_gradient": True}, -2.4, -2.4),  # AEPO: -(1 + high) A
        (1.5, -2.0, {"keep_clipped_gradient": True}, 3.0, 3.0),
        (0.5, -2.0, {"keep_clipped_gradient": True}, 1.6, 0.0),
    ],
)
def test_loss_and_slope(ratio, advantage, options, loss, slope):
    assert one(ratio, advantage, **options) == (pytest.approx(loss), pytest.approx(slope))


@given(st.floats(-2, 2), st.floats(-3, 3), st.sampled_from([None, 3.0]))
def test_slope_is_the_derivative(log_ratio, advantage, dual):
    kinks = [math.log(0.8), math.log(1.2), math.log(3.0)]
    if min(abs(log_ratio - k) for k in kinks) > 1e-3:
        up, down = (one(math.exp(log_ratio + h), advantage, dual=dual)[0] for h in (1e-6, -1e-6))
        slope = one(math.exp(log_ratio), advantage, dual=dual)[1]
        assert slope == pytest.approx((up - down) / 2e-6, rel=1e-4, abs=1e-4)


@given(st.lists(st.tuples(ANY, ANY, ANY, st.booleans()), max_size=20), st.booleans())
def test_finite_and_masked_tokens_are_exactly_zero(rows, keep):
    new, old, a, mask = (np.array([row[i] for row in rows], dtype=float) for i in range(4))
    mask = mask.astype(bool)
    for result in losses.policy_loss(new, old, a, mask, keep_clipped_gradient=keep):
        assert np.isfinite(result).all()
        assert (result[~mask] == 0).all()
    poisoned = losses.policy_loss(*(np.where(mask, x, np.nan) for x in (new, old, a)), mask)
    assert poisoned[0].tolist() == losses.policy_loss(new, old, a, mask)[0].tolist()


TABLE = np.array([[1.0, 2.0, 3.0, np.nan], [5.0, np.nan, np.nan, np.nan], [np.nan] * 4])
MASK = np.array([[1, 1, 1, 0], [1, 0, 0, 0], [0, 0, 0, 0]])


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("token-mean", 11 / 4),
        ("seq-mean-token-sum", (6 + 5) / 2),
        ("seq-mean-token-mean", (2 + 5) / 2),
        ("seq-mean-token-sum-norm", (6 + 5) / 2 / 4),
    ],
)
def test_aggregation_modes_leave_masked_rows_out(mode, expected):
    assert losses.aggregate(TABLE, MASK, mode=mode) == pytest.approx(expected)
    assert losses.aggregate(TABLE[2:], MASK[2:], mode=mode) == 0.0


def test_the_constant_of_dr_grpo():
    assert losses.aggregate(TABLE, MASK, mode="seq-mean-token-sum-norm", length=11.0) == pytest.approx(0.5)


@pytest.mark.parametrize("mode", losses.AGGREGATIONS)
@given(st.lists(st.lists(ANY, min_size=3, max_size=3), min_size=1, max_size=5))
def test_aggregation_is_finite(mode, rows):
    assert np.isfinite(losses.aggregate(rows, np.ones((len(rows), 3)), mode=mode))


def test_gspo_ratio_is_the_geometric_mean():
    new = np.log([[2.0, 8.0, 1.0], [1.0, 1.0, 1.0]])
    got = losses.sequence_ratios(new, np.zeros((2, 3)), [[1, 1, 0], [0, 0, 0]])
    assert got == pytest.approx([4.0, 1.0])


def test_errors_say_what_does_not_fit():
    with pytest.raises(ValueError, match="mode must be one of"):
        losses.aggregate(TABLE, MASK, mode="mean")
    with pytest.raises(ValueError, match=r"losses must have the shape of mask \(3, 4\), got \(2,\)"):
        losses.aggregate([1, 2], MASK)
    with pytest.raises(ValueError, match=r"mask must have shape \(B, T\), got \(4,\)"):
        losses.aggregate(TABLE[0], MASK[0])
    with pytest.raises(ValueError, match="dual must be greater than 1"):
        one(1.0, 1.0, dual=0.5)
    with pytest.raises(ValueError, match="clip range"):
        one(1.0, 1.0, low=2.0)
    with pytest.raises(ValueError, match="length must be positive"):
        losses.aggregate(TABLE, MASK, mode="seq-mean-token-sum-norm", length=0.0)
