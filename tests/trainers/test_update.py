"""One update: schedule, clipping, what stops it, and the prompts of tool-free rows."""

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from agentic_gym.policies.base import Sampling
from agentic_gym.trainers.algorithm import BatchCredit, LossVariant
from agentic_gym.trainers.config import OptimizerConfig
from agentic_gym.trainers.rollout import EnvPool, group_requests, rollout
from agentic_gym.trainers.update import TrainingError, Updater, clipped_step, schedule_factor, training_rows
from tests.policies.tiny_models import build
from tests.trainers.rows import random_rows


def test_schedules():
    flat, linear, cosine = (OptimizerConfig(schedule=s, warmup=3) for s in ("constant", "linear", "cosine"))
    assert [schedule_factor(flat, i, 10) for i in range(5)] == [0.25, 0.5, 0.75, 1.0, 1.0]
    for config in (linear, cosine):
        factors = [schedule_factor(config, i, 13) for i in range(14)]
        assert factors[:4] == [0.25, 0.5, 0.75, 1.0]
        assert factors[3:] == sorted(factors[3:], reverse=True)
        assert factors[13] == pytest.approx(0.0, abs=1e-12)
    assert schedule_factor(linear, 8, 13) == 0.5
    assert schedule_factor(cosine, 99, 13) == pytest.approx(0.0, abs=1e-12)


def test_the_gradient_is_clipped_before_the_step():
    weight = torch.nn.Parameter(torch.zeros(4))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    weight.grad = torch.full((4,), 3.0)
    assert clipped_step(optimizer, OptimizerConfig(lr=0.5, grad_clip=1.0), 0, 1) == pytest.approx(6.0)
    assert float(weight.detach().norm()) == pytest.approx(0.5, rel=1e-4)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_gradient_that_is_not_finite_takes_no_step(bad):
    weight = torch.nn.Parameter(torch.zeros(4))
    weight.grad = torch.tensor([0.0, bad, 0.0, 0.0])
    with pytest.raises(TrainingError, match=r"gradient norm is (nan|inf): no step was taken"):
        clipped_step(torch.optim.SGD([weight], lr=1.0), OptimizerConfig(), 0, 1)
    assert (weight == 0).all()


def test_a_loss_that_is_not_finite_takes_no_step(policy):
    rows = random_rows(4)
    rows[2] = replace(rows[2], advantages=np.full(len(rows[2].token_ids), np.nan))
    before = {k: v.clone() for k, v in policy.model.state_dict().items()}
    updater = Updater(policy.lm, LossVariant(), OptimizerConfig(lr=1.0, tokens_per_micro_batch=1), total_updates=1)
    with pytest.raises(TrainingError, match=r"the loss is nan: no step was taken.*model being the last checkpoint"):
        updater.update(rows, np.random.default_rng(0))
    assert all(torch.equal(v, before[k]) for k, v in policy.model.state_dict().items())
    assert updater.updates == 0


def test_rows_without_a_trained_token_are_left_out(policy):
    rows = random_rows(4)
    silent = replace(rows[0], loss_mask=np.zeros(len(rows[0].token_ids), bool))
    results = []
    for chosen in (rows[1:], [silent, *rows[1:]]):
        updater = Updater(policy.lm, LossVariant(), OptimizerConfig(lr=0.0), total_updates=1)
        results.append(updater.update(chosen, np.random.default_rng(0))["update/loss"])
    assert results[0] == pytest.approx(results[1])
    assert Updater(policy.lm, LossVariant(), OptimizerConfig(), total_updates=1).update([silent], None) == {}


def test_dropout_is_off_and_no_global_random_number_is_drawn(tokenizer):
    from agentic_gym.policies.causal_lm import CausalLM

    model = build("gpt2", len(tokenizer), attn_pdrop=0.5, resid_pdrop=0.5, embd_pdrop=0.5)
    state = torch.random.get_rng_state()
    losses = []
    for _ in range(2):
        updater = Updater(CausalLM(model.train()), LossVariant(), OptimizerConfig(lr=0.0), total_updates=1)
        losses.append(updater.update(random_rows(5), np.random.default_rng(0))["update/loss"])
    assert losses[0] == losses[1]
    assert torch.equal(state, torch.random.get_rng_state())


def test_mini_batches_and_epochs_are_counted(policy):
    config = OptimizerConfig(lr=1e-4, mini_batches=3, epochs=2)
    updater = Updater(policy.lm, LossVariant(), config, total_updates=6)
    figures = updater.update(random_rows(7), np.random.default_rng(0))
    assert updater.updates == 6
    assert figures["update/trained_tokens"] == sum(int(r.loss_mask[1:].sum()) for r in random_rows(7))
    assert set(figures) >= {f"update/{n}" for n in ("loss", "grad_norm", "entropy", "clip_share", "lr", "padding")}


def test_the_state_is_restored(policy):
    def new():
        return Updater(policy.lm, LossVariant(), OptimizerConfig(lr=1e-3, schedule="linear"), total_updates=4)

    start = {k: v.clone() for k, v in policy.model.state_dict().items()}
    straight = new()
    for seed in range(4):
        straight.update(random_rows(4, seed=seed), np.random.default_rng(seed))
    expected = {k: v.clone() for k, v in policy.model.state_dict().items()}
    policy.model.load_state_dict(start)
    first = new()
    for seed in range(2):
        first.update(random_rows(4, seed=seed), np.random.default_rng(seed))
    second = new()
    second.load_state_dict(first.state_dict())
    for seed in range(2, 4):
        second.update(random_rows(4, seed=seed), np.random.default_rng(seed))
    assert all(torch.equal(v, expected[k]) for k, v in policy.model.state_dict().items())


def test_rows_are_the_traces_under_either_prompt(policy, make_env, tasks):
    with EnvPool(make_env) as pool:
        requests = group_requests([task.id for task in tasks][:2], group_size=2, tool_free=1)
        episodes = rollout(policy, pool, requests, Sampling(max_tokens=16))
    credit = BatchCredit(episodes, [np.array(e.trace.loss_mask, float) for e in episodes], np.zeros(len(episodes)))
    sampled, normal = (training_rows(credit, policy, tool_free_prompt=p) for p in ("sampled", "normal"))
    for episode, as_sampled, as_normal in zip(episodes, sampled, normal):
        trace = episode.trace
        assert as_sampled.token_ids.tolist() == trace.token_ids
        assert as_sampled.loss_mask.tolist() == [bool(m) for m in trace.loss_mask]
        if not episode.tool_free:
            assert as_normal.token_ids.tolist() == trace.token_ids
            continue
        prompt = policy.format.prompt_ids("", episode.observation)
        assert as_normal.token_ids.tolist() == prompt + trace.token_ids[trace.spans[0].end :]
        assert len(as_normal.token_ids) < len(trace)
        written = np.flatnonzero(as_normal.loss_mask)
        ids = torch.tensor(as_normal.token_ids)[None]
        with torch.no_grad():
            now = policy.model(input_ids=ids).logits[0].log_softmax(-1)
        expected = now[written - 1].gather(1, ids[0, written, None])[:, 0].numpy()
        np.testing.assert_allclose(as_normal.old_logprobs[written], expected, atol=1e-4)
        np.testing.assert_array_equal(as_normal.advantages, as_normal.loss_mask.astype(float))
