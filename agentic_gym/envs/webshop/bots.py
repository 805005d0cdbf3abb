"""Scripted customers: a random one, the rule of the paper, and an oracle.

Each is a function ``bot(observation, info) -> action``, so ``policies.as_policy`` takes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import gymnasium as gym
import numpy as np

from agentic_gym.envs.webshop.env import WebShop
from agentic_gym.envs.webshop.goals import Goal
from agentic_gym.envs.webshop.pages import RESULTS_PER_PAGE, SUB_PAGES
from agentic_gym.envs.webshop.reward import wishes_met
from agentic_gym.envs.webshop.visit import Visit

__all__ = ["OracleBot", "RandomBot", "rule_bot", "short_queries"]

_LONGEST_QUERY = 8
_BUTTON_LABELS = frozenset({*SUB_PAGES, "back to search", "< prev", "buy now"})
_NO_BRACKETS = str.maketrans("[]", "  ")


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
    """Knows the target: finds it by a short query, chooses the wanted options and buys.

    It continues from any state of the episode.

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
        visit = self._env.visit
        if visit.has_search_bar:
            return f"search[{self._query(visit)}]"
        if visit.asin is not None:
            return self._on_item(visit)
        if visit.goal.asin.lower() in visit.clickables:
            return f"click[{visit.goal.asin.lower()}]"
        results = visit.shop.search(" ".join(visit.keywords), visit.rng) if visit.keywords else ()
        ahead = any(product.asin == visit.goal.asin for product in results[visit.page * RESULTS_PER_PAGE :])
        return "click[next >]" if ahead else "click[back to search]"

    @staticmethod
    def _on_item(visit: Visit) -> str:
        if visit.asin != visit.goal.asin:
            return "click[back to search]"
        if "buy now" not in visit.clickables:
            return "click[< prev]"
        return f"click[{label}]" if (label := _missing_option(visit)) is not None else "click[buy now]"

    @staticmethod
    def _query(visit: Visit) -> str:
        """The first short query that finds the target, else the title's first words."""
        queries = list(short_queries(visit.goal))
        for query in queries:
            if any(product.asin == visit.goal.asin for product in visit.shop.search(query, visit.rng)):
                return query
        return queries[-1]


def _missing_option(visit: Visit) -> str | None:
    """The label of a wanted option that is not chosen yet and that a click can choose."""
    wanted = visit.goal.goal_options
    pair_options = visit.rules.pair_options
    met = wishes_met(visit.options, visit.goal, pair_options=pair_options)
    for label, node in visit.clickables.items():
        if node.kind != "option" or label in _BUTTON_LABELS or visit.options.get(node.group) == label:
            continue
        if isinstance(wanted, Mapping):
            # Exactly the goal's value, since others may satisfy the fuzzy comparison too.
            if wanted.get(node.group) == label:
                return label
        elif wishes_met({**visit.options, node.group: label}, visit.goal, pair_options=pair_options) > met:
            return label
    return None


def short_queries(goal: Goal) -> Iterator[str]:
    """Queries of at most eight words: from the goal's attributes and kind, last from the target's title."""
    options = goal.goal_options.values() if isinstance(goal.goal_options, Mapping) else goal.goal_options
    attributes = " ".join(goal.attributes)
    for words in (
        f"{goal.query} {attributes}",
        f"{goal.query} {' '.join(options)} {attributes}",
        goal.query,
        goal.name,
    ):
        yield " ".join(words.translate(_NO_BRACKETS).split()[:_LONGEST_QUERY]).lower()
