"""The cold start: what is shown, what is learned, what is refused."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from agentic_gym.benchmarks.experiments import tiny
from agentic_gym.episodes import Episode, TokenTrace
from agentic_gym.policies.base import Sampling
from agentic_gym.policies.formats import ChatFormat, encode
from agentic_gym.policies.transformers import TransformersPolicy
from agentic_gym.trainers.config import OptimizerConfig
from agentic_gym.trainers.rollout import EnvPool, group_requests, rollout
from agentic_gym.trainers.sft import demonstration_trace, supervised
from agentic_gym.trainers.update import TrainingError
from tests.policies.tiny_models import build, byte_tokenizer

CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def test_a_demonstration_reads_as_the_episode_would_have(policy, make_env, tasks):
    """Tokens of a played episode, forgotten and made again from its texts."""
    with EnvPool(make_env) as pool:
        requests = group_requests([t.id for t in tasks][::12], group_size=2)
        played = rollout(policy, pool, requests, Sampling(max_tokens=16))
    for episode in played:
        remade = demonstration_trace(episode, policy)
        assert policy.tokenizer.decode(remade.token_ids) == policy.tokenizer.decode(episode.trace.token_ids)
        canonical = all(
            encode(policy.tokenizer, policy.spell(ids)[0]) == ids
            for ids in [written(episode.trace, step) for step in range(len(episode.steps))]
        )
        if canonical:  # the model may spell a word with other tokens
            assert remade.token_ids == episode.trace.token_ids
            assert remade.loss_mask == episode.trace.loss_mask


def written(trace: TokenTrace, step: int) -> list[int]:
    spans = [s for s in trace.spans if s.step == step and s.kind not in ("prompt", "observation")]
    return [token for s in spans for token in trace.token_ids[s.start : s.end]]


def test_spans_name_thoughts_calls_and_answers(policy):
    [episode] = [e for e in tiny.demonstrations(tiny.tiny_tasks("train"), 200) if e.tool_calls == 0][:1]
    episode = next(e for e in tiny.demonstrations(tiny.tiny_tasks("train"), 200) if len(e.steps) == 3)
    trace = demonstration_trace(episode, policy)
    assert [s.kind for s in trace.spans] == [
        "prompt", "thought", "call", "observation", "thought", "call", "observation", "thought", "answer",
    ]  # fmt: skip
    text = policy.tokenizer.decode
    calls = [text(trace.token_ids[s.start : s.end]) for s in trace.spans if s.kind == "call"]
    assert calls[0].startswith("<python>")
    assert calls[0].endswith("</python>")


def test_chat_demonstrations_end_each_turn():
    tokenizer = byte_tokenizer(["<|im_start|>", "<|im_end|>"], eos="<|im_end|>", template=CHATML)
    policy = TransformersPolicy(build("qwen2", len(tokenizer)), tokenizer)
    assert isinstance(policy.format, ChatFormat)
    episode = tiny.demonstrations(tiny.tiny_tasks("train"), 1, tool_share=(1, 1, 1), twice=1.0)[0]
    trace = demonstration_trace(episode, policy)
    messages = [{"role": "user", "content": episode.observation}]
    for step in episode.steps:
        messages += [{"role": "assistant", "content": step.action}, {"role": "user", "content": step.observation}]
    expected = tokenizer.apply_chat_template(messages[:-1], tokenize=False).removesuffix("\n")
    assert tokenizer.decode(trace.token_ids) == expected
    end = tokenizer.eos_token_id
    assert [trace.loss_mask[i] for i, t in enumerate(trace.token_ids) if t == end].count(1) == len(episode.steps)


def test_the_agents_tokens_are_learned_and_only_they(policy):
    rng = np.random.default_rng(0)
    traces = []
    for _ in range(32):
        trace = TokenTrace()
        trace.append_context(0, rng.integers(3, 150, 6).tolist())  # noise: cannot be learned
        trace._extend(0, "answer", [160, 161, 162], 1, [0.0] * 3, [0.0] * 3)
        traces.append(trace)
    losses: list[float] = []
    config = OptimizerConfig(lr=1e-2, tokens_per_micro_batch=100)
    final = supervised(policy, traces, config, steps=60, batch=8, on_step=lambda _, loss: losses.append(loss))
    assert losses[0] > 1.0
    assert final < 0.1
    assert len(losses) == 60


def test_the_same_seed_gives_the_same_weights(policy, tasks):
    traces = [demonstration_trace(e, policy) for e in tiny.demonstrations(tasks, 20)]
    start = {k: v.clone() for k, v in policy.model.state_dict().items()}
    results = []
    for seed in (0, 0, 1):
        policy.model.load_state_dict(start)
        supervised(policy, traces, OptimizerConfig(lr=1e-3), steps=6, batch=8, seed=seed)
        results.append(torch.cat([p.detach().flatten() for p in policy.model.parameters()]))
    assert torch.equal(results[0], results[1])
    assert not torch.equal(results[0], results[2])


def test_nothing_to_learn_from_is_an_error(policy):
    with pytest.raises(ValueError, match="no demonstration to learn from"):
        supervised(policy, [], OptimizerConfig(), steps=1, batch=1)


def test_a_diverged_cold_start_stops(policy, tasks):
    traces = [demonstration_trace(e, policy) for e in tiny.demonstrations(tasks, 8)]
    with torch.no_grad():
        policy.model.get_output_embeddings().weight[5] = float("nan")
    with pytest.raises(TrainingError, match="cold start's loss is nan at step 0: lower the learning rate"):
        supervised(policy, traces, OptimizerConfig(), steps=3, batch=4)


def test_an_episode_without_steps_has_an_empty_trace(policy):
    assert len(demonstration_trace(Episode("t", "", "1+1"), policy)) == 0
