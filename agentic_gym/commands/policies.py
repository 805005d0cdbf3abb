"""The policy that a command line names."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gymnasium as gym

from agentic_gym.envs.alfworld.expert import noisy
from agentic_gym.envs.search_qa_expert import SearchExpert
from agentic_gym.envs.webshop.expert import ShopExpert
from agentic_gym.policies import Policy, RandomPolicy, ScriptedMathPolicy, as_policy
from agentic_gym.tasks import near

__all__ = ["open_policy"]

EXPERTS: Mapping[str, Callable[[Any, int], Policy]] = {
    "MathTools": lambda env, seed: ScriptedMathPolicy(env.tasks, seed=seed),
    "SearchQA": lambda env, seed: SearchExpert(env.tasks),
    "WebShop": lambda env, seed: ShopExpert(env, seed=seed),
    "ALFWorld": lambda env, seed: as_policy(noisy(seed=seed)),
}
"""The scripted expert of an environment, by the name of its class."""


@contextmanager
def open_policy(
    name: str, env: gym.Env[str, str], *, seed: int = 0, url: str = "http://localhost:8000/v1", model: str | None = None
) -> Iterator[Policy]:
    """``random``, ``scripted``, ``server`` (OpenAI-compatible, with ``url`` and ``model``), or a model: a directory, a .gguf file
    or a hub id.

    Raises:
        ValueError: ``scripted`` for an environment that has no expert, or ``server`` without a model.
        FileNotFoundError: a path that is not there.
        ImportError: a model without torch and transformers.
    """
    if name == "random":
        yield RandomPolicy(seed)
    elif name == "scripted":
        yield _expert(env, seed)
    elif name == "server":
        if model is None:
            raise ValueError(f"which model of the server at {url}? Add --model NAME")
        from agentic_gym.policies.openai_server import OpenAIServerPolicy

        with OpenAIServerPolicy(url, model, api_key=os.environ.get("OPENAI_API_KEY") or None) as policy:
            yield policy
    else:
        hint = near(name, ("random", "scripted", "server"), 1)
        if hint and not Path(name).expanduser().exists():
            raise ValueError(f"there is no policy {name!r}.{hint}")
        yield _local_model(name)


def _expert(env: gym.Env[str, str], seed: int) -> Policy:
    kind = type(env.unwrapped).__name__
    if kind not in EXPERTS:
        raise ValueError(f"{kind} has no scripted expert; there is one for {', '.join(EXPERTS)}")
    return EXPERTS[kind](env.unwrapped, seed)


def _local_model(name: str) -> Policy:
    try:
        from agentic_gym.policies.transformers import TransformersPolicy
    except ImportError as error:
        raise ImportError(
            f"a model as policy needs torch and transformers: pip install 'agentic-gym[train]' ({error})"
        ) from error
    return TransformersPolicy.from_pretrained(name)
