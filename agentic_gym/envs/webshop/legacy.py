"""The original's interface: ``reset(session)`` and steps of four values, for agents that were written against it.

    from agentic_gym.envs.webshop.legacy import WebAgentTextEnv

takes the place of the original's class of that name. Like there, nothing ends by itself, a finished session can go on, a step
returns ``(state, reward, done, None)``, and a session keeps its goal when it is reset.
"""

from __future__ import annotations

import bisect
import itertools
import os
from types import SimpleNamespace
from typing import Any

import numpy as np

from agentic_gym.envs.webshop.catalogue import GoalKind, load_catalogue
from agentic_gym.envs.webshop.goals import Goal
from agentic_gym.envs.webshop.reward import require_rapidfuzz
from agentic_gym.envs.webshop.visit import OBSERVATION_MODES, Rules, Visit

__all__ = ["WebAgentTextEnv"]

_SESSION_LETTERS = tuple("abcdefghijklmnopqrstuvwxyz")


class WebAgentTextEnv:
    """WebShop behind the original's methods and attributes.

    Args:
        observation_mode: "html" (the original's default), "text", "text_rich" or "url".
        file_path: a products file, or a folder with the official files; None as for `load_catalogue`.
        human_goals: written instructions instead of synthetic ones.
        num_products: the first products of the file.
        num_prev_obs: how many earlier observations a state begins with.
        num_prev_actions: how many earlier actions a state begins with.
        session_prefix: put before every session's name.
        show_attrs: whether item pages have a button to the product's attributes.
        seed: of prices, price caps and of the goals of sessions without a number.

    ``server.goals`` is the list of goals (dictionaries in the original's form), ``server.user_sessions`` the sessions by name.

    Example:
        >>> env = WebAgentTextEnv("text", num_products=100)
        >>> state, _ = env.reset(session=3)
        >>> state, reward, done, _ = env.step("search[bars]")
        >>> env.get_available_actions()["has_search_bar"], done
        (False, False)
    """

    def __init__(
        self,
        observation_mode: str = "html",
        *,
        file_path: str | os.PathLike[str] | None = None,
        human_goals: bool = False,
        num_products: int | None = None,
        num_prev_obs: int = 0,
        num_prev_actions: int = 0,
        session_prefix: str | None = None,
        show_attrs: bool = False,
        seed: int = 0,
    ) -> None:
        if observation_mode not in OBSERVATION_MODES:
            raise ValueError(f"observation_mode must be one of {OBSERVATION_MODES}, got {observation_mode!r}")
        require_rapidfuzz()
        kind: GoalKind = "human" if human_goals else "synthetic"
        self.catalogue = load_catalogue(file_path, goals=kind, seed=seed, products=num_products)
        self.observation_mode = observation_mode
        self.session: str | None = None
        self._rules = Rules(show_attributes=show_attrs)
        self._rng = np.random.default_rng(seed)
        self._history = (num_prev_obs, num_prev_actions)
        self._prefix = session_prefix or ""
        self._weights = tuple(itertools.accumulate(goal.weight for goal in self.catalogue.goals))
        self._goals: dict[str, Goal] = {}
        sessions: dict[str, dict[str, Any]] = {}
        self.server = SimpleNamespace(goals=[goal.as_dict() for goal in self.catalogue.goals], user_sessions=sessions)
        self.reset()

    def reset(self, session: int | str | None = None, instruction_text: str | None = None) -> tuple[str, None]:
        """Start a session: a number takes that goal, a name a goal at random, None a new random name.

        A session that was begun before keeps its goal. ``instruction_text`` replaces what `instruction_text` reads, not the page.
        """
        name = self._random_name() if session is None else str(session)
        self.session = self._prefix + name
        if self.session not in self._goals:
            number = session if isinstance(session, int) else self._draw()
            self._goals[self.session] = self.catalogue.goals[number]
        goal = self._goals[self.session]
        self._visit = Visit(self.catalogue, goal, self.session, self._rules, self._rng)
        self.instruction_text = (
            f"Instruction: {goal.instruction_text}" if instruction_text is None else instruction_text
        )
        self._record(done=False)
        self.prev_obs, self.prev_actions = [self.observation], list[str]()
        return self.observation, None

    def step(self, action: str) -> tuple[str, float, bool, None]:
        """Carry out an action; the reward is 0 until a purchase, and ``done`` is true for the purchase alone."""
        reward, bought, _ = self._visit.act(action)
        self._record(done=bought)
        self.prev_actions.append(action)
        state = self._with_history(self.observation)
        self.prev_obs.append(self.observation)
        return state, reward, bought, None

    def get_available_actions(self) -> dict[str, Any]:
        """``{"has_search_bar": bool, "clickables": [label, ...]}`` of the page."""
        return {"has_search_bar": self._visit.has_search_bar, "clickables": list(self._visit.clickables)}

    def get_instruction_text(self) -> str:
        """The goal's text as the pages show it."""
        return f"Instruction: {self._visit.instruction}"

    @property
    def observation(self) -> str:
        """The page in the chosen mode."""
        return self._visit.observation(self.observation_mode)

    @property
    def state(self) -> dict[str, str]:
        """Address, HTML and instruction of the page."""
        return {
            "url": self._visit.url,
            "html": self._visit.observation("html"),
            "instruction_text": self.instruction_text,
        }

    def render(self, mode: str = "human") -> str:
        """The page in the chosen mode."""
        return self.observation

    def close(self) -> None:
        """Nothing is held open."""

    def _with_history(self, observation: str) -> str:
        """``observation`` behind the last earlier actions and observations, oldest first."""
        observations, actions = self._history
        parts = [observation]
        for back in range(1, 1 + max(self._history)):
            if back <= min(actions, len(self.prev_actions)):
                parts.append(self.prev_actions[-back])
            if back <= min(observations, len(self.prev_obs)):
                parts.append(self.prev_obs[-back])
        return " [SEP] ".join(reversed(parts))

    def _record(self, *, done: bool) -> None:
        visit = self._visit
        self.server.user_sessions[visit.session] = {
            "goal": visit.goal.as_dict(),
            "done": done or bool(visit.purchase),
            "keywords": list(visit.keywords) or None,
            "page": visit.page,
            "asin": visit.asin,
            "asins": visit.seen,
            "options": visit.options,
            "verbose_info": visit.purchase,
        }

    def _random_name(self) -> str:
        return "".join(self._rng.choice(_SESSION_LETTERS, size=10))

    def _draw(self) -> int:
        """A goal by weight, shifted by one like the original's draw."""
        position = self._rng.uniform(0, self._weights[-1])
        return min(bisect.bisect(self._weights, position) + 1, len(self._weights) - 1)
