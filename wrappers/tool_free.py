"""ToolFree: episodes in which the agent has to do without tools."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from agentic_gym.wrappers.base import Parse, Refuser, StepResult, refusers

__all__ = ["ToolFree"]

NOTICE = "In this episode tools are forbidden. Do not call any; think and answer directly."
REFUSAL = "Refused: tools are forbidden in this episode. Answer directly."


class ToolFree(Refuser, gym.utils.RecordConstructorArgs):
    """Forced tool-free episodes, EAPO's rollout quota: the instructions forbid tools and every call is refused.

    Which episodes are forced is said at ``reset(options={"tool_free": True})``; without the option ``active`` decides.
    ``info["tool_free"]`` tells, and ``info["base_instructions"]`` holds what they would be otherwise.

    Args:
        env: a ``TextEnv`` (wrapped or not), or any text environment with ``parse``.
        active: force episodes that do not say otherwise.
        notice: what is added to the instructions.
        parse: how to read actions of a foreign environment.

    Example:
        >>> import gymnasium as gym, agentic_gym
        >>> env = ToolFree(gym.make("agentic_gym/MathTools-v0"))
        >>> _, info = env.reset(seed=0, options={"tool_free": True})
        >>> info["instructions"].splitlines()[-1]
        'In this episode tools are forbidden. Do not call any; think and answer directly.'
        >>> env.step("<python>print(1)</python>")[0]
        'Refused: tools are forbidden in this episode. Answer directly.'
    """

    def __init__(
        self, env: gym.Env[str, str], active: bool = False, *, notice: str = NOTICE, parse: Parse | None = None
    ) -> None:
        gym.utils.RecordConstructorArgs.__init__(self, active=active, notice=notice, parse=parse)
        Refuser.__init__(self, env, parse)
        self.active = active
        self.notice = notice
        self._forced = active

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """As the environment's, with the option ``tool_free``."""
        options = dict(options or {})
        self._forced = bool(options.pop("tool_free", self.active))
        for wrapper in refusers(self.env):
            wrapper.tools_forbidden = self._forced
        observation, info = super().reset(seed=seed, options=options)
        info = {**info, "tool_free": self._forced}
        if self._forced:
            shown = info.get("instructions", "")
            info.setdefault("base_instructions", shown)  # a budget below has put its own line there
            info["instructions"] = "\n".join(filter(None, (shown, self.notice)))
        return observation, info

    def step(self, action: str) -> StepResult:
        """Step, or refuse the call of a forced episode."""
        parsed = self._parse(action)
        if self._forced and parsed.kind == "tool":
            return self.refuse(action, parsed, REFUSAL)
        return self.step_inside(action, parsed)
