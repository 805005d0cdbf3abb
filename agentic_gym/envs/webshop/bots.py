"""Scripted customers: a random one, the rule of the paper, and an oracle.

Each is a function ``bot(observation, info) -> action``, so ``policies.as_policy`` takes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np

from agentic_gym.envs.webshop.env import WebShop
from agentic_gym.envs.webshop.expert import next_action

__all__ = ["OracleBot", "RandomBot", "rule_bot"]


class RandomBot:
    """Any admissible action, with equal probability."""

    def __init__(self, seed: int = 0) -> None:
        self._rng = np.random.default_rng(seed)

    def __call__(self, observation: str, info: Mapping[str, Any]) -> str:
        """The next action."""
        actions = info["admissible_actions"]
        # The page after the purchase has none; anything will do there.
        return str(actions[self._rng.integers(len(actions))]) if actions else "click[back to search]"


def rule_bot(observation: str, info: Mapping[str, Any]) -> str:
    """Search for the instruction, open the first product, buy it as it is."""
    clickables = info["clickables"]
    if info["has_search_bar"]:
        return str(info["admissible_actions"][0])
    if "buy now" in clickables:
        return "click[buy now]"
    product = next((label for label in clickables if label not in ("back to search", "next >", "< prev")), None)
    return "click[back to search]" if product is None else f"click[{product}]"


class OracleBot:
    """The expert of `expert.next_action` bound to one environment; it continues from any state of the episode.

    Example:
        >>> import gymnasium as gym, agentic_gym
        >>> env = gym.make("agentic_gym/WebShop-v0", products=100)
        >>> bot, (page, info), done = OracleBot(env), env.reset(options={"task": 5}), False
        >>> while not done:
        ...     page, reward, done, _, info = env.step(bot(page, info))
        >>> reward
        1.0
    """

    def __init__(self, env: gym.Env[str, str]) -> None:
        if not isinstance(env.unwrapped, WebShop):
            raise TypeError(f"OracleBot plays WebShop, got {type(env.unwrapped).__name__}")
        self._env: WebShop = env.unwrapped

    def __call__(self, observation: str, info: Mapping[str, Any]) -> str:
        """The next action."""
        return next_action(self._env.visit)
