"""Small environments and tools for the tests of the core."""

from __future__ import annotations

from typing import Any, NamedTuple

import gymnasium as gym

from agentic_gym.actions import ParsedAction
from agentic_gym.roles import OnlineJudge, Role
from agentic_gym.spaces import UnicodeText
from agentic_gym.tasks import Task, TaskSet
from agentic_gym.text_env import TextEnv, Transition

SUMS = TaskSet([Task(f"sum-{i}", f"What is {i} + {i}?", str(2 * i), level=i % 2) for i in range(6)], name="sums")


class Reply(NamedTuple):
    status: str
    text: str
    seconds: float = 0.0


class Echo:
    """A tool that returns its argument, raises on "bad" and is out of order on "down"."""

    name = "python"
    description = "returns what it is given."

    def __init__(self) -> None:
        self.calls: list[str] = []

    def run(self, argument: str) -> Reply:
        self.calls.append(argument)
        status = {"bad": "raised", "down": "unavailable"}.get(argument.strip(), "ok")
        return Reply(status, argument)


class Search(Echo):
    name = "search"


class KnowingOracle:
    """Labels answers by the environment's answer, calls as exploration."""

    def begin(self, env: Any, observation: str, info: Any) -> None:
        self.started = observation

    def label(self, env: Any, action: str, observation: str, info: Any) -> Role | None:
        if info["action"].kind != "answer":
            return Role.EXPLORATION
        return Role.DECISIVE if env.unwrapped.task.answer == info["action"].argument else Role.REGRESSION


class Sums(TextEnv):
    """Answers to sums, with echo tools."""

    def __init__(self, tasks: TaskSet = SUMS, **kwargs: Any) -> None:
        kwargs.setdefault("tools", [Echo(), Search()])
        super().__init__(tasks, **kwargs)

    def _begin(self, task: Task) -> str:
        return task.prompt

    def _act(self, action: ParsedAction) -> Transition:
        right = action.argument == self.task.answer
        return Transition("Right." if right else "Wrong.", float(right), terminated=True, success=right)

    def oracle(self) -> OnlineJudge:
        return KnowingOracle()


class Corridor(TextEnv):
    """A text game: walk right three times. The start is drawn from ``np_random``."""

    def __init__(self, **kwargs: Any) -> None:
        tasks = TaskSet([Task(f"corridor-{i}", "Walk to the door.") for i in range(3)], name="corridors")
        super().__init__(tasks, answer=False, commands=True, max_turns=10, **kwargs)
        self.place = 0

    def _begin(self, task: Task) -> str:
        self.place = int(self.np_random.integers(3))
        return f"{task.prompt} You are at {self.place}."

    def _admissible(self) -> list[str]:
        return ["left", "right"] if self.place else ["right"]

    def _act(self, action: ParsedAction) -> Transition:
        if action.argument not in self._admissible():
            return Transition(f"You cannot do that. Possible: {', '.join(self._admissible())}.")
        self.place += 1 if action.argument == "right" else -1
        won = self.place >= 3
        return Transition(f"You are at {self.place}.", float(won), terminated=won, success=won)


class Foreign(gym.Env[str, str]):
    """A Gymnasium text environment that knows nothing of this library: ends on "stop", has no limit."""

    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(self) -> None:
        self.observation_space = UnicodeText(1000)
        self.action_space = UnicodeText(1000)
        self.received: list[str] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.received = []
        return "hello", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.received.append(action)
        return f"you said {action}", 0.5, "stop" in action, False, {}


if "toys/Sums-v0" not in gym.registry:
    gym.register("toys/Sums-v0", entry_point="tests.toys:Sums")
    gym.register("toys/Corridor-v0", entry_point="tests.toys:Corridor")
    gym.register("toys/Foreign-v0", entry_point="tests.toys:Foreign", disable_env_checker=True)
    gym.register("toys/MixedLevels-v0", entry_point="tests.toys:mixed_levels")


def mixed_levels(**kwargs: Any) -> Sums:
    """Sums with a level that is a number, a word, or unknown."""
    levels: list[int | str | None] = [0, None, "hard"]
    return Sums(TaskSet([Task(f"sum-{i}", "?", "1", level=level) for i, level in enumerate(levels)]), **kwargs)
