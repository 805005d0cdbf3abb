"""MathTools-v0: think, call Python, read the result, answer."""

from __future__ import annotations

import importlib.util
from collections.abc import Collection
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from agentic_gym.actions import ParsedAction
from agentic_gym.answers import extract_boxed, grade_math
from agentic_gym.envs.math_oracle import MathOracle
from agentic_gym.envs.math_tasks import generate_arithmetic
from agentic_gym.roles import OnlineJudge
from agentic_gym.task_sources import load_tasks
from agentic_gym.tasks import Task, TaskSet
from agentic_gym.text_env import TextEnv, Transition
from agentic_gym.tools.python import PythonTool
from agentic_gym.tools.sandbox import Sandbox

__all__ = ["MathTools"]

_DEFAULT_TASKS_PER_LEVEL = 100


def _needs_symbolic(tasks: TaskSet) -> bool:
    """Whether answers that are not plain numbers go to math-verify.

    Without the extra they cannot, which is refused here, once, if any task asks for more than a number.
    """
    if importlib.util.find_spec("math_verify") is not None:
        return True
    for task in tasks:
        if not grade_math(str(task.answer), task.answer, symbolic=False).correct:
            raise ImportError(
                f"task {task.id!r} asks for more than a number ({task.answer!r}): grading it needs "
                "pip install 'agentic-gym[math]'"
            )
    return False


@lru_cache(maxsize=16)
def _shared_tool(timeout: float, cache: bool) -> PythonTool:
    """One tool for all environments of the process with the same settings, so that they share its cache."""
    return PythonTool(timeout=timeout, cache=cache)


class MathTools(TextEnv):
    r"""Mathematical problems with a Python interpreter as the tool.

    The agent may call ``<python>code</python>`` and reads ``<result>...</result>``; ``<answer>\boxed{...}</answer>`` ends the
    episode (the box may be left out). Reward and score are 1 for a right answer, else 0.

    Args:
        tasks: a ``TaskSet``, a name (``"arithmetic"``, ``"gsm8k"``, ``"math500"``, ``"math"``, ``"aime24"``, ``"aime25"``) or a
            file of tasks; None is the embedded generator.
        levels: keep only tasks of these levels.
        sandbox: where code runs; None shares one sandbox among all environments of the process.
        cache: answer identical code from memory. Right for training, wrong where code draws random numbers or reads the clock.
        timeout: seconds that a call may take.
        max_turns, instructions, render_mode: see ``TextEnv``.

    Example:
        >>> import gymnasium as gym, agentic_gym
        >>> env = gym.make("agentic_gym/MathTools-v0", levels=[0])
        >>> observation, info = env.reset(seed=0)
        >>> info["level"], info["tool_calls"]
        (0, 0)
    """

    blocking: ClassVar[bool] = True

    def __init__(
        self,
        tasks: TaskSet | str | Path | None = None,
        *,
        levels: Collection[int | str] | None = None,
        sandbox: Sandbox | None = None,
        cache: bool = False,
        timeout: float = 5.0,
        max_turns: int = 6,
        instructions: str | None = None,
        render_mode: str | None = None,
    ) -> None:
        if tasks is None:
            chosen = generate_arithmetic(_DEFAULT_TASKS_PER_LEVEL)
        else:
            chosen = tasks if isinstance(tasks, TaskSet) else load_tasks(tasks)
        if levels is not None:
            chosen = chosen.filter(levels=levels)
        if sandbox is None:
            python = _shared_tool(timeout, cache)
        else:
            python = PythonTool(sandbox=sandbox, timeout=timeout, cache=cache)
        self._symbolic = _needs_symbolic(chosen)
        super().__init__(
            chosen, tools=[python], max_turns=max_turns, instructions=instructions, render_mode=render_mode
        )

    def _begin(self, task: Task) -> str:
        return task.prompt

    def _act(self, action: ParsedAction) -> Transition:
        boxed = extract_boxed(action.argument)
        answer = action.argument if boxed is None else boxed
        grade = grade_math(answer, self.task.answer, symbolic=self._symbolic)
        info: dict[str, Any] = {"grade": grade.status}
        text = "Right." if grade.correct else "Wrong."
        return Transition(text, float(grade.correct), terminated=True, success=grade.correct, info=info)

    def _default_instructions(self) -> str:
        return super()._default_instructions() + " Put its value in \\boxed{...}."

    def oracle(self) -> OnlineJudge:
        """Roles from the known answer."""
        return MathOracle()

    def close(self) -> None:
        """Nothing to release here: the sandbox is shared and ends with the process."""
