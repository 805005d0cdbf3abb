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


@pytest.fixture
def policy(tokenizer):
    from agentic_gym.policies.transformers import TransformersPolicy

    torch.set_num_threads(1)
    model = tiny.build_model(tokenizer, width=32, layers=1)
    return TransformersPolicy(model, tokenizer, format=InlineFormat(tokenizer, tiny.TEMPLATE))


@pytest.fixture(scope="session")
def tasks():
    return tiny.tiny_tasks("train", per_level=20)


@pytest.fixture
def make_env(tasks):
    def make():
        env = gym.make("agentic_gym/MathTools-v0", tasks=tasks, max_turns=3, instructions="", cache=True)
        return RoleLabels(ToolFree(env, notice=tiny.NOTICE))

    return make
