"""RoleLabels: the role of every step, from an oracle or a judge."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from agentic_gym.roles import HindsightJudge, JudgedStep, OnlineJudge, RoleJudge
from agentic_gym.text_env import TextEnv

__all__ = ["RoleLabels"]


class RoleLabels(gym.Wrapper[str, str, str, str], gym.utils.RecordConstructorArgs):
    """Put a role on each step: ``info["role"]`` at once, or ``info["roles"]`` at the end.

    An ``OnlineJudge`` (an oracle that knows the simulator) labels at once. A ``HindsightJudge`` (a language model that may look
    at later steps) labels when the episode ends; it is given actions and observations, never a reward or an outcome.

    Args:
        env: the environment.
        judge: who labels; None takes the environment's own oracle.

    Example:
        >>> import gymnasium as gym, agentic_gym
        >>> env = RoleLabels(gym.make("agentic_gym/MathTools-v0", levels=[0]))
        >>> _ = env.reset(seed=0)
        >>> env.step("<answer>1000</answer>")[4]["role"].name
        'REGRESSION'
    """

    def __init__(self, env: gym.Env[str, str], judge: RoleJudge | None = None) -> None:
        # A judge may hold a client or a model: it is shared, not copied.
        gym.utils.RecordConstructorArgs.__init__(self, _disable_deepcopy=True, judge=judge)
        gym.Wrapper.__init__(self, env)
        if judge is None and isinstance(env.unwrapped, TextEnv):
            judge = env.unwrapped.oracle()
        if not isinstance(judge, (OnlineJudge, HindsightJudge)):
            raise TypeError(
                f"{type(env.unwrapped).__name__} has no oracle of its own: pass judge=, an object with "
                f"begin() and label(), or with label_episode(); got {judge!r}"
            )
        self.judge: RoleJudge = judge
        self._task = ""
        self._steps: list[JudgedStep] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """As the environment's."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._task, self._steps = observation, []
        if isinstance(self.judge, OnlineJudge):
            self.judge.begin(self.env, observation, info)
        return observation, info

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Step and label."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        if isinstance(self.judge, OnlineJudge):
            info = {**info, "role": self.judge.label(self.env, action, observation, info)}
        else:
            ended = terminated or truncated
            # The text after the final action may tell the outcome ("Right."), so the judge does not see it.
            self._steps.append(JudgedStep(action, "" if ended else observation))
            if ended:
                info = {**info, "roles": self._hindsight(self.judge)}
        return observation, float(reward), terminated, truncated, info

    def _hindsight(self, judge: HindsightJudge) -> list[Any]:
        roles = judge.label_episode(self._task, tuple(self._steps))
        if len(roles) != len(self._steps):
            raise ValueError(f"the judge gave {len(roles)} labels for {len(self._steps)} steps")
        return list(roles)
