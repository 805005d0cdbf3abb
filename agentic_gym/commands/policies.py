"""The policy that a command line names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import gymnasium as gym

from agentic_gym.policies import Policy, RandomPolicy, ScriptedMathPolicy

__all__ = ["load_policy"]

EXPERTS: Mapping[str, Callable[[Any, int], Policy]] = {
    "MathTools": lambda env, seed: ScriptedMathPolicy(env.tasks, seed=seed),
}
"""The scripted expert of an environment, by the name of its class."""


def load_policy(name: str, env: gym.Env[str, str], *, seed: int = 0, model: str = "") -> Policy:
    """``random``, ``scripted``, a model (a directory, a .gguf file or a hub id), or the URL of a server.

    Args:
        name: which policy.
        env: the environment it will play.
        seed: of the random and scripted ones.
        model: the model's name at the server.

    Raises:
        ValueError: ``scripted`` for an environment that has no expert, or a path that is not there.
    """
    if name.startswith(("http://", "https://")):
        from agentic_gym.policies.openai_server import OpenAIServerPolicy

        if not model:
            raise ValueError(f"say which model the server at {name} shall use: --model NAME")
        return OpenAIServerPolicy(name, model)
    if name == "random":
        return RandomPolicy(seed)
    if name == "scripted":
        kind = type(env.unwrapped).__name__
        if kind not in EXPERTS:
            raise ValueError(f"{kind} has no scripted expert; there is one for {', '.join(EXPERTS)}")
        return EXPERTS[kind](env.unwrapped, seed)
    if name.startswith((".", "/", "~")) and not Path(name).expanduser().exists():
        raise ValueError(f"there is no model at {name}")
    try:
        from agentic_gym.policies.transformers import TransformersPolicy
    except ImportError as error:
        raise ImportError(
            f"a model as policy needs torch and transformers: pip install 'agentic-gym[train]' ({error})"
        ) from error
    return TransformersPolicy.from_pretrained(Path(name).expanduser() if Path(name).expanduser().exists() else name)
