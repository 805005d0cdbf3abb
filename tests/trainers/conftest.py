"""A tiny policy and a small arithmetic environment for the trainer's tests."""

import gymnasium as gym
import pytest

import agentic_gym  # noqa: F401  (registers the environments)
from agentic_gym.benchmarks.experiments import tiny
from agentic_gym.policies.formats import InlineFormat
from agentic_gym.wrappers import RoleLabels, ToolFree

torch = pytest.importorskip("torch")


@pytest.fixture(scope="session")
def tokenizer():
    return tiny.build_tokenizer()


@pytest.fixture(scope="session")
def tasks():
    return tiny.tiny_tasks("train", per_level=20)


def new_policy(tokenizer):
    from agentic_gym.policies.transformers import TransformersPolicy

    model = tiny.build_model(tokenizer, width=32, layers=1)
    return TransformersPolicy(model, tokenizer, format=InlineFormat(tokenizer, tiny.TEMPLATE))


@pytest.fixture(scope="session")
def warm_weights(tokenizer, tasks):
    """Weights after a short cold start: most actions are well formed, few answers are right."""
    from agentic_gym.trainers.config import OptimizerConfig
    from agentic_gym.trainers.sft import demonstration_trace, supervised

    torch.set_num_threads(1)
    policy = new_policy(tokenizer)
    traces = [demonstration_trace(episode, policy) for episode in tiny.demonstrations(tasks, 400)]
    supervised(policy, traces, OptimizerConfig(lr=1e-2, warmup=5), steps=60, batch=32)
    return {name: value.clone() for name, value in policy.model.state_dict().items()}


@pytest.fixture
def policy(tokenizer, warm_weights):
    torch.set_num_threads(1)
    policy = new_policy(tokenizer)
    policy.model.load_state_dict(warm_weights)
    return policy


@pytest.fixture
def make_env(tasks):
    def make():
        env = gym.make("agentic_gym/MathTools-v0", tasks=tasks, max_turns=3, instructions="", cache=True)
        return RoleLabels(ToolFree(env, notice=tiny.NOTICE))

    return make
