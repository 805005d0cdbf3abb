"""The scripted expert of WebShop: it knows the target, finds it by a short query, chooses the wanted options and buys.

- ``next_action``: what to do next in a visit, from any state of it.
- ``ShopExpert``: the same as a policy for many episodes, with mistakes if asked for.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence

import gymnasium as gym
import numpy as np

from agentic_gym.actions import Grammar
from agentic_gym.envs.webshop.env import WebShop, as_written
from agentic_gym.envs.webshop.goals import Goal
from agentic_gym.envs.webshop.pages import RESULTS_PER_PAGE, SUB_PAGES
from agentic_gym.envs.webshop.reward import wishes_met
from agentic_gym.envs.webshop.visit import Visit
from agentic_gym.episodes import Episode, Response

__all__ = ["ShopExpert", "next_action", "short_queries"]

_LONGEST_QUERY = 8
_BUTTON_LABELS = frozenset({*SUB_PAGES, "back to search", "< prev", "buy now"})
_NO_BRACKETS = str.maketrans("[]", "  ")
_GRAMMAR = Grammar(answer=False, commands=True)


class ShopExpert:
    """Plays WebShop with knowledge of the targets, from whatever an episode has done so far.

    It depends on the episodes alone: it follows their actions in visits of its own.

    Args:
        env: whose catalogue and rules the episodes have.
        mistake_rate: chance, 0 to 1, that a turn is any admissible action instead.
        thoughts: begin each turn with a line of thought.
        seed: of the mistakes; they depend also on the episode's seed, its task and the turn, so neighbours do not matter.

    Example:
        >>> import agentic_gym
        >>> env = gym.make("agentic_gym/WebShop-v0", products=100)
        >>> page, info = env.reset(options={"task": 5})
        >>> expert = ShopExpert(env, thoughts=False)
        >>> expert.respond([Episode(info["task_id"], info["instructions"], page, info=info)])[0].text[:7]
        'search['
    """

    def __init__(
        self, env: gym.Env[str, str], *, mistake_rate: float = 0.0, thoughts: bool = True, seed: int = 0
    ) -> None:
        if not 0 <= mistake_rate <= 1:
            raise ValueError(f"mistake_rate is a chance from 0 to 1, got {mistake_rate}")
        shop = env.unwrapped
        if not isinstance(shop, WebShop):
            raise TypeError(f"ShopExpert plays WebShop, got {type(shop).__name__}")
        self._catalogue, self._rules = shop.catalogue, shop.rules
        self.mistake_rate = mistake_rate
        self.thoughts = thoughts
        self.seed = seed

    def respond(self, episodes: Sequence[Episode], sampling: object = None) -> list[Response]:
        """The next action of each episode; ``sampling`` is ignored. Raises KeyError for a task of another shop."""
        return [Response(self._act(episode)) for episode in episodes]

    def _act(self, episode: Episode) -> str:
        key = (self.seed, episode.seed, zlib.crc32(episode.task_id.encode()), len(episode.steps))
        rng = np.random.default_rng(key)
        admissible = episode.info.get("admissible_actions")
        if admissible and rng.random() < self.mistake_rate:
            return str(admissible[int(rng.integers(len(admissible)))])
        action = next_action(self._visit(episode, rng))
        return f"<think>{_thought(action)}</think>{action}" if self.thoughts else action

    def _visit(self, episode: Episode, rng: np.random.Generator) -> Visit:
        number = self._catalogue.tasks[episode.task_id].info["goal"]
        visit = Visit(self._catalogue, self._catalogue.goals[number], str(number), self._rules, rng)
        for step in episode.steps:
            visit.act(as_written(step.action, _GRAMMAR.parse(step.action).argument))
        return visit


def _thought(action: str) -> str:
    if action.startswith("search"):
        return "I search for what is asked."
    if action == "click[buy now]":
        return "All that is asked for is chosen, so I buy."
    if action in ("click[next >]", "click[back to search]", "click[< prev]"):
        return "What I need is not here."
    return "This is what is asked for."


def next_action(visit: Visit) -> str:
    """The expert's action in a visit, from any state of it."""
    if visit.has_search_bar:
        return f"search[{_query(visit)}]"
    if visit.asin is not None:
        return _on_item(visit)
    if visit.goal.asin.lower() in visit.clickables:
        return f"click[{visit.goal.asin.lower()}]"
    results = visit.shop.search(" ".join(visit.keywords), visit.rng)
    ahead = any(product.asin == visit.goal.asin for product in results[visit.page * RESULTS_PER_PAGE :])
    return "click[next >]" if ahead else "click[back to search]"


def _on_item(visit: Visit) -> str:
    if visit.asin != visit.goal.asin:
        return "click[back to search]"
    if "buy now" not in visit.clickables:
        return "click[< prev]"
    label = _missing_option(visit)
    return "click[buy now]" if label is None else f"click[{label}]"


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
