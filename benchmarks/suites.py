"""What a benchmark plays: named suites of task sets, each with its environment.

- ``Track``: one row of a table: an environment and a task set in it.
- ``SUITES``: name -> tracks. Tracks whose data is not at hand are left out of a run, with the reason in the report.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import gymnasium as gym

from agentic_gym.envs.math_tasks import generate_arithmetic
from agentic_gym.task_sources import load_tasks
from agentic_gym.tasks import TaskSet

__all__ = ["SUITES", "Track"]


@dataclass(frozen=True)
class Track:
    """One task set in one environment."""

    name: str
    """The row of the table, and the name of its data."""
    env_id: str = "agentic_gym/MathTools-v0"
    """A Gymnasium id whose environment takes ``tasks``."""
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of ``gym.make``."""

    def tasks(self) -> TaskSet:
        """The test split. Raises the loader's error where the data is not at hand."""
        if self.name == "arithmetic":
            return generate_arithmetic(40, split="test")
        return load_tasks(self.name)

    def make(self, tasks: TaskSet) -> gym.Env[str, str]:
        """One environment on ``tasks``."""
        env: gym.Env[str, str] = gym.make(self.env_id, tasks=tasks, **self.kwargs)
        return env


SUITES: Mapping[str, tuple[Track, ...]] = MappingProxyType(
    {
        "arithmetic": (Track("arithmetic"),),
        "math": tuple(Track(name) for name in ("arithmetic", "gsm8k", "math500", "math", "aime24", "aime25")),
    }
)
"""name -> tracks, in the order of the table."""
