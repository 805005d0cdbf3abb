"""WebShop-v0: search a shop, open products, choose options, buy what the instruction asks for."""

from __future__ import annotations

import bisect
import os
from typing import Any, Literal

import gymnasium as gym

from agentic_gym.actions import ParsedAction
from agentic_gym.envs.webshop.catalogue import GoalKind, load_catalogue
from agentic_gym.envs.webshop.goals import Goal
from agentic_gym.envs.webshop.oracle import WebShopOracle
from agentic_gym.envs.webshop.reward import require_rapidfuzz
from agentic_gym.envs.webshop.splits import Split
from agentic_gym.envs.webshop.visit import OBSERVATION_MODES, Rules, Visit, parse_action
from agentic_gym.roles import OnlineJudge
from agentic_gym.tasks import Task
from agentic_gym.text_env import TextEnv, Transition

__all__ = ["GoalDraw", "WebShop", "as_written"]

GoalDraw = Literal["original", "weighted", "uniform"]

_INSTRUCTIONS = """You are shopping in a web shop. Find a product that meets the instruction, choose its options, and buy it.
You may think first, inside <think>...</think>; then write exactly one action and stop:
search[keywords] searches the shop;
click[label] follows a button, a product code or an option of the page, by its text in lower case.
click[buy now] ends the task: you are paid for the product's kind, its attributes, the chosen options and its price."""

_NO_BRACKETS = str.maketrans("[]\n", "   ")


def as_written(text: str, argument: str) -> str:
    """The command in an action text whose parsed argument is ``argument``.

    A plain action counts with its leading blanks, which make it invalid in the original; a thought or a tag takes them away.
    """
    return text if text.strip() == argument else argument


class WebShop(TextEnv):
    """The WebShop of Yao et al. (2022), state for state, without Java.

    Args:
        data: a folder with the official files; None takes ``$WEBSHOP_DATA``, and without that the generated shop.
        goals: "synthetic" (one for each combination of options) or "human" (written instructions).
        observation_mode: "text", "text_rich", "html" or "url".
        catalogue_seed: of prices and price caps; None draws them anew for this environment, as the original does.
        split: "train", "eval", "test", or None for all goals. Task 0 is then the split's first goal; ids stay.
        products: how many products; None takes the whole file, or 1000 generated ones.
        goal_draw: how ``reset`` without a task draws: "original" (weighted and shifted by one: goal i is drawn with the weight
            of goal i - 1, and goal 0 never), "weighted" or "uniform".
        pair_options: compare a synthetic goal's option as the text of its (group, value) pair, not by its value alone.
        search_anywhere: whether a search works on every page.
        endless_pages: whether the last result page has a next page, too.
        show_attributes: whether item pages have a button to the product's attributes.
        max_turns: actions until truncation.
        instructions: the system prompt; None takes the class's own.
        render_mode: None, "ansi" or "human".

    An invalid action repeats the page, as in the original; ``info["invalid"]`` says what was wrong. Further keys of ``info``:
    ``clickables`` and ``has_search_bar`` always, ``goal`` (its number) at reset, ``reward_info`` (the components of the reward)
    after the purchase.

    Example:
        >>> import gymnasium as gym, agentic_gym
        >>> env = gym.make("agentic_gym/WebShop-v0", products=100)
        >>> page, info = env.reset(options={"task": 0})
        >>> page.split(" [SEP] ")[0], info["clickables"]
        ('WebShop', ['search'])
    """

    def __init__(
        self,
        data: str | os.PathLike[str] | None = None,
        goals: GoalKind = "synthetic",
        observation_mode: str = "text",
        catalogue_seed: int | None = 0,
        *,
        split: Split | None = None,
        products: int | None = None,
        goal_draw: GoalDraw = "original",
        pair_options: bool = True,
        search_anywhere: bool = True,
        endless_pages: bool = True,
        show_attributes: bool = False,
        max_turns: int = 15,
        instructions: str | None = None,
        render_mode: str | None = None,
    ) -> None:
        if observation_mode not in OBSERVATION_MODES:
            raise ValueError(f"observation_mode must be one of {OBSERVATION_MODES}, got {observation_mode!r}")
        if goal_draw not in ("original", "weighted", "uniform"):
            raise ValueError(f"goal_draw must be 'original', 'weighted' or 'uniform', got {goal_draw!r}")
        require_rapidfuzz()
        self.catalogue = load_catalogue(data, goals=goals, seed=catalogue_seed, products=products)
        self.observation_mode = observation_mode
        self.split = split
        self.goal_draw = goal_draw
        self.rules = Rules(pair_options, search_anywhere, endless_pages, show_attributes)
        super().__init__(
            self.catalogue.split_tasks(split),
            answer=False,
            commands=True,
            max_turns=max_turns,
            instructions=instructions,
            render_mode=render_mode,
        )
        self._action_text = ""

    # TextEnv's interface.

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start a visit for ``options["task"]`` (index or id), or for a goal drawn as ``goal_draw`` says."""
        options = dict(options or {})
        if options.get("task") is None and self.goal_draw != "uniform":
            gym.Env.reset(self, seed=seed)
            options["task"], seed = self._draw(), None
        observation, info = super().reset(seed=seed, options=options)
        return observation, info | self._page_info() | {"goal": self.task.info["goal"]}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """As `TextEnv.step`. A plain action counts as it is written: with a leading blank it is invalid, as in the original."""
        self._action_text = action
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward, terminated, truncated, info | self._page_info()

    def _begin(self, task: Task) -> str:
        number = task.info["goal"]
        self.visit = Visit(self.catalogue, self.catalogue.goals[number], str(number), self.rules, self.np_random)
        return self.visit.observation(self.observation_mode)

    def _act(self, action: ParsedAction) -> Transition:
        command = as_written(self._action_text, action.argument)
        reward, bought, valid = self.visit.act(command)
        info: dict[str, Any] = {}
        if bought:
            info["reward_info"] = self.visit.purchase
        if not valid:
            info["invalid"] = self._complaint(command)
        observation = self.visit.observation(self.observation_mode)
        return Transition(observation, reward, bought, bought and reward == 1.0, reward if bought else None, info)

    def _default_instructions(self) -> str:
        return _INSTRUCTIONS

    def _admissible(self) -> list[str]:
        """A click on every label that the grammar can express; on the start page a search for the instruction's words."""
        if self.visit.has_search_bar:
            words = self.visit.instruction.lower().translate(_NO_BRACKETS)
            return [f"search[{words}]"]
        return [f"click[{label}]" for label in self.visit.clickables if label and "[" not in label]

    def oracle(self) -> OnlineJudge:
        """A judge of step roles that knows the target."""
        return WebShopOracle()

    # WebShop's own.

    @property
    def goal(self) -> Goal:
        """The goal of the running episode."""
        return self.visit.goal

    def _page_info(self) -> dict[str, Any]:
        return {"clickables": list(self.visit.clickables), "has_search_bar": self.visit.has_search_bar}

    def _draw(self) -> int:
        """The position of a goal, drawn by weight from this environment's generator."""
        cumulative = self.catalogue.split_weights(self.split)
        position = self.np_random.uniform(0, cumulative[-1])
        shift = 1 if self.goal_draw == "original" else 0
        return min(bisect.bisect(cumulative, position) + shift, len(cumulative) - 1)

    def _complaint(self, command: str) -> str:
        """Why a command did nothing."""
        name, argument = parse_action(command)
        if argument is None or name not in ("search", "click"):
            return f"{command[:80]!r} is no action: write search[keywords] or click[label]"
        if name == "search":
            return "there is no search bar on this page: click[back to search] first"
        return f"nothing on this page is called {argument[:80]!r}: see the clickables"
