"""The torch objective against its numpy reference, variant by variant."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from agentic_gym.trainers.algorithm import LossVariant
from agentic_gym.trainers.credit import kl, losses
from agentic_gym.trainers.objective import AGGREGATIONS, divergence, loss_weights, policy_loss

VARIANTS = [
    LossVariant(),
    LossVariant(clip_high=0.28),
    LossVariant(dual_clip=None),
    LossVariant(keep_clipped_gradient=True),
    LossVariant(keep_clipped_gradient=True, clip_high=0.3, dual_clip=None),
]


def draw(seed: int, size: int = 400):
    rng = np.random.default_rng(seed)
    old = -rng.exponential(1.0, size)
    new = old + rng.normal(0, 0.7, size)
    new[:4] = old[:4] + np.array([25.0, -25.0, 21.0, -21.0])
    return new, old, rng.normal(0, 2, size)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("seed", range(3))
def test_loss_and_gradient_equal_the_reference(variant, seed):
    new, old, advantages = draw(seed)
    logprobs = torch.tensor(new, requires_grad=True)
    loss, clipped = policy_loss(logprobs, torch.tensor(old), torch.tensor(advantages), variant)
    loss.sum().backward()
    expected, slope = losses.policy_loss(
        new,
        old,
        advantages,
        np.ones(new.size),
        low=variant.clip_low,
        high=variant.clip_high,
        dual=variant.dual_clip,
        keep_clipped_gradient=variant.keep_clipped_gradient,
    )
    assert loss.detach().numpy() == pytest.approx(expected)
    assert logprobs.grad is not None
    assert logprobs.grad.numpy() == pytest.approx(slope)
    assert clipped.dtype == torch.bool


def test_aepo_keeps_the_gradient_that_the_clip_throws_away():
    logprobs = torch.tensor([np.log(1.5)], requires_grad=True)
    zero, two = torch.zeros(1, dtype=torch.double), torch.full((1,), 2.0, dtype=torch.double)
    for keep, slope in ((False, 0.0), (True, -2.4)):
        logprobs.grad = None
        loss, _ = policy_loss(logprobs, zero, two, LossVariant(keep_clipped_gradient=keep))
        loss.sum().backward()
        assert loss.item() == pytest.approx(-2.4)
        assert logprobs.grad is not None
        assert logprobs.grad.item() == pytest.approx(slope)


def test_sequence_ratio_is_one_number_a_row():
    new, old = np.log([0.8, 0.2, 0.5, 0.9]), np.log([0.4, 0.1, 0.25, 0.3])
    rows = torch.tensor([0, 0, 0, 1])
    variant = LossVariant(ratio="sequence", clip_high=9.0)
    logprobs = torch.tensor(new, requires_grad=True)
    advantages = torch.tensor([1.0, 1.0, 1.0, -1.0], dtype=torch.double)
    loss, _ = policy_loss(logprobs, torch.tensor(old), advantages, variant, rows)
    table_new, table_old = np.array([new[:3], [new[3], 0, 0]]), np.array([old[:3], [old[3], 0, 0]])
    ratios = losses.sequence_ratios(table_new, table_old, [[1, 1, 1], [1, 0, 0]])
    assert loss.detach().numpy() == pytest.approx(-advantages.numpy() * ratios[rows.numpy()])
    loss[:3].sum().backward()
    assert logprobs.grad is not None
    assert logprobs.grad.numpy() == pytest.approx([-2.0, -2.0, -2.0, 0.0])  # -A s for each token of the row
    with pytest.raises(ValueError, match="which row each token belongs to"):
        policy_loss(logprobs, torch.tensor(old), advantages, variant)


@pytest.mark.parametrize("kind", kl.KINDS)
def test_divergence_and_its_gradient_equal_the_reference(kind):
    new, reference, _ = draw(7)
    logprobs = torch.tensor(new, requires_grad=True)
    value = divergence(logprobs, torch.tensor(reference), kind)
    value.sum().backward()
    mask = np.ones(new.size)
    assert value.detach().numpy() == pytest.approx(kl.token_kl(new, reference, mask, kind=kind))
    assert logprobs.grad is not None
    assert logprobs.grad.numpy() == pytest.approx(kl.token_kl_gradient(new, reference, mask, kind=kind))


def test_unknown_divergence():
    with pytest.raises(ValueError, match="kl_kind must be one of"):
        divergence(torch.zeros(1), torch.zeros(1), "k4")


@pytest.mark.parametrize("mode", AGGREGATIONS)
def test_row_weights_equal_the_aggregate(mode):
    rng = np.random.default_rng(0)
    mask = np.arange(6)[None] < np.array([[6], [3], [0], [1]])
    table = rng.normal(size=mask.shape)
    weights = loss_weights(torch.tensor(mask.sum(axis=1)), mode, length=10)
    summed = float((table * mask * weights.numpy()[:, None]).sum())
    assert summed == pytest.approx(losses.aggregate(table, mask, mode=mode, length=10.0), rel=1e-6)
