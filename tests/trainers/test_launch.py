"""What a configuration is turned into."""

import re
from contextlib import nullcontext
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from agentic_gym.benchmarks.experiments import tiny
from agentic_gym.policies.transformers import TransformersPolicy
from agentic_gym.text_env import TextEnv
from agentic_gym.trainers.algorithms import make_algorithm
from agentic_gym.trainers.config import EnvConfig, OptimizerConfig, TrainConfig
from agentic_gym.trainers.launch import check_together, load_policy, make_env
from agentic_gym.trainers.update import clipped_step, make_optimizer
from tests.trainers.conftest import new_policy


def share_moved(policy: TransformersPolicy) -> float:
    """The share of weights that one step of the default size changes."""
    before = [p.detach().clone() for p in policy.model.parameters()]
    config = OptimizerConfig()
    optimizer = make_optimizer(policy.model, config)
    ids = torch.tensor([policy.tokenizer.encode("Q: 12+34=?A: <think>2+4=6 1+3=4</think><answer>46</answer>")])
    policy.model(input_ids=ids, labels=ids).loss.backward()
    clipped_step(optimizer, config, 0, 1)
    return sum(int((a != b).sum()) for a, b in zip(before, policy.model.parameters())) / sum(p.numel() for p in before)


def test_a_step_of_the_default_size_moves_the_weights(tmp_path):
    torch.set_num_threads(1)
    new_policy(tiny.build_tokenizer()).save_pretrained(tmp_path)
    auto, coarse = (load_policy(TrainConfig(str(tmp_path), device="cpu", dtype=d)) for d in ("auto", "bfloat16"))
    assert auto.model.dtype == torch.float32
    assert share_moved(auto) > 0.9 > 0.2 > share_moved(coarse)


def test_a_gpu_takes_the_same_weights(tmp_path, monkeypatch):
    asked = {}

    def record(source, **arguments):
        asked.update(arguments)
        return new_policy(tiny.build_tokenizer())

    monkeypatch.setattr(TransformersPolicy, "from_pretrained", record)
    load_policy(TrainConfig("m", device="cuda"))
    assert asked == {"dtype": "float32", "device": "cuda"}


@pytest.mark.parametrize(
    ("name", "parameters", "settings", "message"),
    [
        ("triage", {}, {}, "set env.roles to true"),
        ("eapo+triage", {}, {}, "set env.roles to true"),
        ("eapo", {}, {"id": "agentic_gym/WebShop-v0"}, "agentic_gym/WebShop-v0 has none: set tool_free=0"),
        ("otc", {"limit": 3}, {"tool_budget": 5}, "at most limit=3 calls an episode, and env.tool_budget allows 5"),
        ("triage", {}, {"roles": True}, None),
        ("eapo", {"tool_free": 0}, {"id": "agentic_gym/WebShop-v0"}, None),
        ("otc", {"limit": 3}, {"tool_budget": 3}, None),
        ("grpo", {}, {"tool_budget": 5}, None),
    ],
)
def test_an_algorithm_and_an_environment_that_do_not_fit(
    name: str, parameters: dict[str, object], settings: dict[str, Any], message: str | None
) -> None:
    config = EnvConfig(**settings)
    env = make_env(config)
    try:
        base = env.unwrapped
        assert isinstance(base, TextEnv)
        refused = nullcontext() if message is None else pytest.raises(ValueError, match=re.escape(message))
        with refused:
            check_together(make_algorithm(name, **parameters), config, base)
    finally:
        env.close()
