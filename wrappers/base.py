"""What the wrappers that refuse tool calls share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import gymnasium as gym

from agentic_gym.actions import ParsedAction, RefusedCall
from agentic_gym.episodes import ToolEvent
from agentic_gym.text_env import TextEnv

__all__ = ["Parse", "Refuser", "find_parser", "refusers"]

Parse = Callable[[str], ParsedAction]
StepResult = tuple[str, float, bool, bool, dict[str, Any]]


def find_parser(env: gym.Env[Any, Any], parse: Parse | None) -> Parse:
    """The parser of actions: the given one, else the environment's own grammar.

    Raises TypeError when there is neither (a foreign environment).
    """
    if parse is not None:
        return parse
    if isinstance(env.unwrapped, TextEnv):
        return env.unwrapped.grammar.parse
    raise TypeError(
        f"{type(env.unwrapped).__name__} is not a TextEnv, so its actions have no known grammar: "
        "pass parse=Grammar(tools=('python',)).parse or a function of your own"
    )


class Refuser(gym.Wrapper[str, str, str, str]):
    """A wrapper that can turn a tool call down. Not to be used alone.

    A ``TextEnv`` charges the turn itself. A foreign environment is not stepped: the agent reads the reason, and after
    ``max_refusals`` in one episode it is truncated so that nothing loops for ever.
    """

    max_refusals = 8

    tools_forbidden = False
    """Whether the present episode has to do without tools; ``ToolFree`` tells those below it."""

    def __init__(self, env: gym.Env[str, str], parse: Parse | None) -> None:
        super().__init__(env)
        self._parse = find_parser(env, parse)
        self._foreign = not isinstance(env.unwrapped, TextEnv)
        self._refusals = 0
        self._foreign_calls = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """As the environment's."""
        self._refusals = self._foreign_calls = 0
        return self.env.reset(seed=seed, options=options)

    def step_inside(self, action: str, parsed: ParsedAction) -> StepResult:
        """Step the environment; where it is foreign, count the executed calls for it."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        if self._foreign and "tool_calls" not in info:
            self._foreign_calls += parsed.kind == "tool"
            info = {**info, "tool_calls": self._foreign_calls}
        return observation, float(reward), terminated, truncated, info

    def refuse(self, action: str, parsed: ParsedAction, reason: str) -> StepResult:
        """Refuse the call ``parsed`` in ``action``: nothing is executed, the agent reads ``reason``."""
        self._refusals += 1
        if not self._foreign:
            observation, reward, terminated, truncated, info = self.env.step(RefusedCall(action, reason))
            return observation, float(reward), terminated, truncated, info
        event = ToolEvent(parsed.name, parsed.argument, "refused")
        info = {"action": parsed, "tool": event, "tool_calls": self._foreign_calls, "success": False}
        truncated = self._refusals >= self.max_refusals
        if truncated:
            info.update(outcome="turn_limit", score=0.0)
        return reason, 0.0, False, truncated, info


def refusers(env: gym.Env[Any, Any]) -> Iterator[Refuser]:
    """The wrappers of this kind in the stack ``env``, from the outermost."""
    while isinstance(env, gym.Wrapper):
        if isinstance(env, Refuser):
            yield env
        env = env.env
