"""The torch objective against its numpy reference, whatever the cut, the padding and the chunks."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from agentic_gym.benchmarks.experiments import tiny
from agentic_gym.policies.causal_lm import CausalLM
from agentic_gym.trainers import objective
from agentic_gym.trainers.algorithm import LossVariant
from agentic_gym.trainers.batching import micro_batches
from agentic_gym.trainers.config import OptimizerConfig
from agentic_gym.trainers.credit import kl, losses
from agentic_gym.trainers.objective import AGGREGATIONS, divergence, loss_weights, policy_loss, token_logprobs
from agentic_gym.trainers.update import Updater
from tests.trainers.rows import random_rows

CPU = torch.device("cpu")
VARIANTS = {
    "plain": LossVariant(),
    "clip higher, no dual": LossVariant(clip_high=0.5, dual_clip=None),
    "kept gradient": LossVariant(keep_clipped_gradient=True),
}


@pytest.fixture(scope="module")
def tokenizer():
    return tiny.build_tokenizer()


@pytest.fixture
def lm(tokenizer):
    torch.set_num_threads(1)
    model = tiny.build_model(tokenizer, width=32, layers=1)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 2:
                parameter.mul_(8)
    return CausalLM(model.eval())


def near_rows(lm, n, seed=0):
    """Rows whose old log-probabilities lie near the present ones, so that some ratios are clipped and some are not."""
    rng = np.random.default_rng(seed)
    rows = random_rows(n, seed=seed)
    result = []
    for row in rows:
        ids = torch.tensor(row.token_ids)[None]
        with torch.no_grad():
            now = lm.model(input_ids=ids).logits[0, :-1].log_softmax(-1).gather(1, ids[0, 1:, None])[:, 0].numpy()
        old = np.concatenate([[0.0], now + rng.normal(0, 0.4, len(now))])
        result.append(replace(row, old_logprobs=np.where(row.loss_mask, old, 0.0)))
    return result


def reference(lm, rows, variant):
    """The loss by numpy, from whole forward passes of single rows."""
    width = max(len(row.token_ids) for row in rows)
    table, mask = np.zeros((len(rows), width)), np.zeros((len(rows), width), bool)
    for b, row in enumerate(rows):
        ids = torch.tensor(row.token_ids)[None]
        with torch.no_grad():
            logprobs = lm.model(input_ids=ids).logits[0, :-1].double().log_softmax(-1)
        now = np.concatenate([[0.0], logprobs.gather(1, ids[0, 1:, None])[:, 0].numpy()])
        n = len(row.token_ids)
        mask[b, 1:n] = row.loss_mask[1:]
        table[b, :n] = losses.policy_loss(
            now, row.old_logprobs, row.advantages, mask[b, :n], low=variant.clip_low, high=variant.clip_high,
            dual=variant.dual_clip, keep_clipped_gradient=variant.keep_clipped_gradient,
        )[0]  # fmt: skip
    return losses.aggregate(table, mask, mode=variant.aggregation, length=float(mask.sum(1).max()))


def update(lm, rows, variant, budget):
    """Loss and gradients of one update that moves nothing."""
    config = OptimizerConfig(lr=0.0, grad_clip=1e9, tokens_per_micro_batch=budget)
    figures = Updater(lm, variant, config, total_updates=1).update(rows, np.random.default_rng(0))
    return figures, [p.grad.clone() for p in lm.model.parameters()]


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
@pytest.mark.parametrize("name", VARIANTS)
def test_the_loss_is_the_reference_however_it_is_cut(lm, aggregation, name):
    variant = replace(VARIANTS[name], aggregation=aggregation)
    rows = near_rows(lm, 7)
    expected = reference(lm, rows, variant)
    gradients = []
    for budget in (1, 70, 10_000):
        figures, gradient = update(lm, rows, variant, budget)
        assert figures["update/loss"] == pytest.approx(expected, rel=1e-4, abs=1e-6)
        gradients.append(gradient)
    assert figures["update/clip_share"] > 0
    largest = max(float(g.abs().max()) for g in gradients[0])
    for other in gradients[1:]:
        for a, b in zip(gradients[0], other):
            torch.testing.assert_close(a, b, atol=1e-5 * largest, rtol=1e-4)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(list(VARIANTS.values())), st.floats(0.01, 30))
def test_loss_and_gradient_of_a_token(seed, variant, spread):
    rng = np.random.default_rng(seed)
    new, old, advantages = rng.normal(0, spread, (3, 8))
    logprobs = torch.tensor(new, requires_grad=True)
    value, _ = policy_loss(logprobs, torch.tensor(old), torch.tensor(advantages), variant)
    value.sum().backward()
    expected, slope = losses.policy_loss(
        new, old, advantages, np.ones(8, bool), low=variant.clip_low, high=variant.clip_high, dual=variant.dual_clip,
        keep_clipped_gradient=variant.keep_clipped_gradient,
    )  # fmt: skip
    np.testing.assert_allclose(value.detach(), expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(logprobs.grad, slope, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", ["k1", "k2", "k3"])
def test_divergence_is_the_reference(kind):
    rng = np.random.default_rng(1)
    new, old = rng.normal(0, 2, (2, 50))
    ours = divergence(torch.tensor(new), torch.tensor(old), kind).numpy()
    expected = kl.token_kl(new, old, np.ones(50, bool), kind=kind)
    np.testing.assert_allclose(ours, expected, rtol=1e-9)


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match=r"token-mean, seq-mean.*got 'mean'"):
        loss_weights(torch.tensor([1]), "mean")
    with pytest.raises(ValueError, match="kl_kind must be one of"):
        divergence(torch.zeros(1), torch.zeros(1), "k9")


def gradient_of_states(lm, rows):
    """d loss / d hidden states of the one micro-batch, and the batch."""
    [batch] = micro_batches(rows, 10_000, CPU)
    states = lm.hidden(batch.token_ids)
    states.retain_grad()
    logprobs, _ = token_logprobs(lm, batch, states=states[batch.index])
    policy_loss(logprobs, batch.old_logprobs, batch.advantages, LossVariant())[0].sum().backward()
    return states.grad, batch


def test_logits_of_tokens_that_are_not_trained_have_no_gradient(lm):
    gradient, batch = gradient_of_states(lm, near_rows(lm, 5))
    trained = torch.zeros(batch.token_ids.shape, dtype=torch.bool)
    trained[batch.index] = True
    assert float(gradient[~trained].abs().max()) == 0.0
    assert float(gradient[trained].abs().sum(-1).max()) > 0.0


def test_untrained_advantages_and_logprobs_are_not_read(lm):
    rows = near_rows(lm, 5)
    poisoned = [
        replace(
            row,
            advantages=np.where(row.loss_mask, row.advantages, np.nan),
            old_logprobs=np.where(row.loss_mask, row.old_logprobs, np.inf),
        )
        for row in rows
    ]
    clean, gradients = update(lm, rows, LossVariant(), 10_000)
    other, same = update(lm, poisoned, LossVariant(), 10_000)
    assert clean == other
    assert all(torch.equal(a, b) for a, b in zip(gradients, same))


def test_padding_changes_nothing(lm):
    rows = near_rows(lm, 5)
    [batch] = micro_batches(rows, 10_000, CPU)
    ids = batch.token_ids.clone()
    for place, index in enumerate(batch.source):
        ids[place, len(rows[index].token_ids) :] = 17
    wider = torch.cat([ids, torch.full((len(ids), 9), 23)], dim=1)
    expected, entropy = token_logprobs(lm, batch)
    for tokens in (ids, wider):
        logprobs, entropies = token_logprobs(lm, replace(batch, token_ids=tokens))
        torch.testing.assert_close(logprobs, expected, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(entropies, entropy, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("tokens", [1, 7, 1000])
def test_a_head_in_chunks_is_the_whole_head(lm, tokenizer, monkeypatch, tokens):
    rows = near_rows(lm, 5)
    whole, gradients = update(lm, rows, LossVariant(), 10_000)
    monkeypatch.setattr(objective, "_CHUNK_ELEMENTS", tokens * len(tokenizer))
    chunked, same = update(lm, rows, LossVariant(), 10_000)
    assert chunked == pytest.approx(whole, rel=1e-5)
    for a, b in zip(gradients, same):
        torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-4)


def test_temperature_divides_the_logits(lm):
    [batch] = micro_batches(near_rows(lm, 3), 10_000, CPU)
    with torch.no_grad():
        logits = lm.model(input_ids=batch.token_ids).logits[batch.index] / 0.7
        expected = logits.log_softmax(-1).gather(1, batch.targets[:, None])[:, 0]
        torch.testing.assert_close(token_logprobs(lm, batch, temperature=0.7)[0], expected, atol=1e-4, rtol=1e-4)
