"""ToolBudget: at most so many tool calls an episode."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import gymnasium as gym

from agentic_gym.text_env import TextEnv, clipped
from agentic_gym.wrappers.base import Parse, Refuser, StepResult

__all__ = ["ToolBudget"]

LAST_TURN = "This is your last turn: tools are closed, answer now."


class ToolBudget(Refuser, gym.utils.RecordConstructorArgs):
    """Limit the tool calls of an episode. A surplus call is refused, not executed, and never graded as an answer.

    Not the right tool for episodes that must do without tools altogether and know it from the start: see ``ToolFree``. In
    such an episode nothing is announced, whichever of the two wrappers is outside.

    Args:
        env: a ``TextEnv`` (wrapped or not), or any text environment with ``parse``.
        limit: executed calls allowed in an episode, at least 0.
        per_tool: further limits by tool name.
        announce: tell the agent the budget in the instructions and what is left after each call.
        force_answer: on the last turn (where the environment tells ``turns_left``) every call is refused, and the agent is told
            beforehand.
        parse: how to read actions of a foreign environment.

    When the episode runs out of turns on a refused call its ``outcome`` is ``budget``.

    Example:
        >>> import gymnasium as gym, agentic_gym
        >>> env = ToolBudget(gym.make("agentic_gym/MathTools-v0"), limit=0)
        >>> _ = env.reset(seed=0)
        >>> observation, reward, terminated, truncated, info = env.step("<python>print(1)</python>")
        >>> info["tool"].status, info["tool_calls"], terminated
        ('refused', 0, False)
    """

    def __init__(
        self,
        env: gym.Env[str, str],
        limit: int,
        *,
        per_tool: Mapping[str, int] | None = None,
        announce: bool = True,
        force_answer: bool = True,
        parse: Parse | None = None,
    ) -> None:
        limits = {"limit": limit, **dict(per_tool or {})}
        for name, value in limits.items():
            if not isinstance(value, int) or value < 0:
                raise ValueError(f"{name} must be a whole number of calls, 0 or more; got {value!r}")
        gym.utils.RecordConstructorArgs.__init__(
            self, limit=limit, per_tool=per_tool, announce=announce, force_answer=force_answer, parse=parse
        )
        Refuser.__init__(self, env, parse)
        if isinstance(env.unwrapped, TextEnv):
            _check_names(env.unwrapped, per_tool or {})
        self.limit = limit
        self.per_tool = dict(per_tool or {})
        self.announce = announce
        self.force_answer = force_answer
        base = env.unwrapped
        self._has_tools = bool(base.tools) if isinstance(base, TextEnv) else True
        self._used: dict[str, int] = {}
        self._turns_left: int | None = None
        self._silent = False

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """As the environment's; the instructions tell the budget."""
        observation, info = super().reset(seed=seed, options=options)
        self._used = {}
        self._turns_left = info.get("turns_left")
        self._silent = self.tools_forbidden or bool(info.get("tool_free", False))
        if self.announce:
            limits = [f"{name}: {value}" for name, value in self.per_tool.items()]
            detail = f" ({', '.join(limits)})" if limits else ""
            note = f"You may call tools at most {self.limit} times{detail}."
            shown = info.get("instructions", "")
            if self._silent:  # what another episode would read has the budget, what this one reads has not
                key, text = "base_instructions", info.get("base_instructions", shown)
            else:
                key, text = "instructions", shown
            info = {**info, key: "\n".join(filter(None, (text, note)))}
        return self._warned(observation), info

    def step(self, action: str) -> StepResult:
        """Step, or refuse a call over the budget."""
        parsed = self._parse(action)
        reason = self._objection(parsed.name) if parsed.kind == "tool" else None
        if reason is not None:
            observation, reward, terminated, truncated, info = self.refuse(action, parsed, reason)
            if truncated and info.get("outcome") == "turn_limit":
                info = {**info, "outcome": "budget"}
        else:
            observation, reward, terminated, truncated, info = self.step_inside(action, parsed)
            event = info.get("tool")
            if parsed.kind == "tool" and (event is None or event.executed):
                self._used[parsed.name] = self._used.get(parsed.name, 0) + 1
                if self.announce and not (terminated or truncated):
                    left = self.limit - sum(self._used.values())
                    observation = self._with_note(observation, f"[tool calls left: {left}]")
        self._turns_left = info.get("turns_left", self._turns_left)
        if not (terminated or truncated):
            observation = self._warned(observation)
        return observation, reward, terminated, truncated, info

    def _objection(self, tool: str) -> str | None:
        """Why a call of ``tool`` is refused now, or None."""
        if self.force_answer and self._turns_left == 1:
            return "Refused: this was the last turn, and tools are closed on it."
        if sum(self._used.values()) >= self.limit:
            return f"Refused: the budget of {self.limit} tool calls is used up. Answer without tools."
        if self._used.get(tool, 0) >= self.per_tool.get(tool, self.limit):
            return f"Refused: the budget of {self.per_tool[tool]} calls of {tool} is used up."
        return None

    def _warned(self, observation: str) -> str:
        if self.force_answer and self._turns_left == 1 and self._has_tools and not self._silent:
            return self._with_note(observation, LAST_TURN)
        return observation

    def _with_note(self, observation: str, note: str) -> str:
        """``note`` below ``observation``, which is cut where both together would not fit into the space."""
        longest = getattr(self.observation_space, "max_length", None)
        if longest is not None:
            observation = clipped(observation, longest - len(note) - 1)
        return f"{observation}\n{note}"


def _check_names(env: TextEnv, names: Iterable[str]) -> None:
    for name in names:
        if name not in env.tools:
            raise ValueError(f"{name!r} is no tool of {type(env).__name__}: it has {', '.join(env.tools) or 'none'}")
