"""The Gymnasium ids of this package, in one table."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import load_env_creator

from agentic_gym.tasks import near

__all__ = ["ENVIRONMENTS", "check_arguments", "register_all"]

ENVIRONMENTS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "agentic_gym/MathTools-v0": (
            "agentic_gym.envs.math_tools:MathTools",
            "arithmetic to number theory, GSM8K, MATH, AIME: think, call Python, answer",
        ),
        "agentic_gym/SearchQA-v0": (
            "agentic_gym.envs.search_qa:SearchQA",
            "a fictional encyclopedia, or NQ, HotpotQA, MuSiQue and others over any corpus: think, search, read, answer",
        ),
        "agentic_gym/WebShop-v0": (
            "agentic_gym.envs.webshop.env:WebShop",
            "search a simulated shop, choose options, buy what the instruction asks for",
        ),
        "agentic_gym/ALFWorld-v0": (
            "agentic_gym.envs.alfworld.env:ALFWorld",
            "household tasks in text: find, heat, cool, clean, light up and put things away",
        ),
    }
)
"""id -> (entry point, what it is in a line)."""


def register_all() -> None:
    """Register every id with Gymnasium; a second call changes nothing."""
    for env_id, (entry_point, _) in ENVIRONMENTS.items():
        if env_id not in gym.registry:
            gym.register(env_id, entry_point=entry_point)


def check_arguments(env_id: str, names: Iterable[str]) -> None:
    """Raise ValueError, with the nearest right name, for the first of ``names`` that ``env_id``'s constructor does not take.

    What a constructor takes is not known of ids that are not registered, or that take any name: those pass.
    """
    if env_id not in gym.registry:
        return
    entry_point: Any = gym.registry[env_id].entry_point
    creator = load_env_creator(entry_point) if isinstance(entry_point, str) else entry_point
    parameters = inspect.signature(creator).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return
    known = [parameter.name for parameter in parameters]
    for name in names:
        if name not in known:
            hint = near(name, known, 1) or f" It takes {', '.join(known)}."
            raise ValueError(f"{env_id} takes no argument {name!r}.{hint}")
