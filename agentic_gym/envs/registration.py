"""The Gymnasium ids of this package, in one table."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import gymnasium as gym

__all__ = ["ENVIRONMENTS", "register_all"]

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
