"""TextEnv: the base class of every environment. A subclass writes two methods.

Seeding, task choice, parsing, running tools, counting, limits, outcomes and ``info`` are done here once. The contract, in short:

- ``terminated`` only when the task itself ended, ``truncated`` only for a limit; success is a key of ``info``;
- an invalid action costs the turn and nothing else, and the next observation says what was wrong;
- a tool that *raised* is feedback, a tool that is *unavailable* masks the episode;
- all randomness comes from ``self.np_random``.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypedDict

import gymnasium as gym
from gymnasium.error import ResetNeeded

from agentic_gym.actions import Grammar, ParsedAction, RefusedCall
from agentic_gym.episodes import ToolEvent
from agentic_gym.roles import OnlineJudge
from agentic_gym.spaces import UnicodeText
from agentic_gym.tasks import Task, TaskSet
from agentic_gym.tools.toolbox import Tool

__all__ = ["StepInfo", "TextEnv", "Transition", "clipped"]

MAX_ACTION_CHARS = 1 << 20
MAX_OBSERVATION_CHARS = 65_536
NOTE_CHARS = 512
"""Room left in every observation for what wrappers write below it."""


class StepInfo(TypedDict, total=False):
    """The keys of ``info``, the same in every environment."""

    instructions: str
    """reset: the system prompt."""
    task_id: str
    """reset."""
    level: int | str | None
    """reset: the task's difficulty level where it is known."""
    action: ParsedAction
    """step: the action as it was understood."""
    tool: ToolEvent | None
    """step: the attempt to use a tool, if there was one."""
    tool_calls: int
    """reset and step: calls executed so far."""
    turns_left: int
    """reset and step: how many more actions the turn limit allows."""
    admissible_actions: list[str]
    """reset and step, where the environment has such a list."""
    success: bool
    """reset and step."""
    outcome: str
    """last step: solved, failed, budget, turn_limit, context_limit or masked."""
    score: float
    """last step: graded value in [0, 1]."""


class _Level(int):
    """A level of a task set that mixes numbers with words or None.

    Vector environments put plain numbers of ``info`` into an integer array, in which the others have no place.
    """


@dataclass(frozen=True)
class Transition:
    """What an action did, as a subclass reports it."""

    observation: str
    reward: float = 0.0
    terminated: bool = False
    success: bool = False
    score: float | None = None
    """Graded value in [0, 1]; None means 1 on success, else 0."""
    info: Mapping[str, Any] = field(default_factory=dict)
    """Further keys for ``info``."""


class TextEnv(gym.Env[str, str], ABC):
    """A Gymnasium environment whose observations and actions are texts.

    Args:
        tasks: what ``reset`` chooses from, at least one.
        tools: the tools of the agent; each has a tag of its own in the grammar.
        answer: whether ``<answer>`` is an action.
        commands: whether plain text is an action (text games, shops).
        max_turns: actions until truncation, at least 1.
        instructions: the system prompt; None takes the class's own.
        render_mode: None, "ansi" (``render`` returns the transcript) or "human" (printed as it happens).

    A subclass implements ``_begin`` and ``_act``::

        class Riddles(TextEnv):
            def _begin(self, task):
                return task.prompt

            def _act(self, action):
                right = action.argument.strip().lower() == self.task.answer
                return Transition("Right." if right else "Wrong.", reward=float(right), terminated=True, success=right)
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi", "human"], "render_fps": 4}  # type: ignore[misc]

    blocking: ClassVar[bool] = False
    """Whether a step may wait for something outside the process; rollouts then step several at once in threads."""

    def __init__(
        self,
        tasks: TaskSet,
        *,
        tools: Sequence[Tool] = (),
        answer: bool = True,
        commands: bool = False,
        max_turns: int = 8,
        instructions: str | None = None,
        render_mode: str | None = None,
    ) -> None:
        if len(tasks) == 0:
            raise ValueError(f"{type(self).__name__} needs at least one task; {tasks!r} is empty")
        if max_turns < 1:
            raise ValueError(f"max_turns must be at least 1, got {max_turns}")
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise ValueError(f"render_mode must be None or one of {self.metadata['render_modes']}, got {render_mode!r}")
        self.tasks = tasks
        self.tools: dict[str, Tool] = {}
        for tool in tools:
            if tool.name in self.tools:
                raise ValueError(f"the name {tool.name!r} twice among the tools: each needs a tag of its own")
            self.tools[tool.name] = tool
        self.grammar = Grammar(tuple(self.tools), answer=answer, commands=commands)
        self.max_turns = max_turns
        self.instructions = self._default_instructions() if instructions is None else instructions
        self.render_mode = render_mode
        self.observation_space = UnicodeText(MAX_OBSERVATION_CHARS)
        self.action_space = UnicodeText(MAX_ACTION_CHARS)
        self.task: Task = tasks[0]
        self._mixed_levels = len({type(task.level) for task in tasks}) > 1
        self._turn = 0
        self._tool_calls = 0
        self._running = False
        self._transcript: list[str] = []

    # What a subclass writes.

    @abstractmethod
    def _begin(self, task: Task) -> str:
        """Start ``task`` (also at hand as ``self.task``) and return the first observation."""

    @abstractmethod
    def _act(self, action: ParsedAction) -> Transition:
        """Carry out one answer or command (tool calls and malformed actions never come here)."""

    def _default_instructions(self) -> str:
        """The system prompt: the tools and the form of an action."""
        lines = [
            "Solve the task. You may think first, inside <think>...</think>; then write exactly one action and stop."
        ]
        lines += [f"<{tool.name}>...</{tool.name}>: {tool.description}" for tool in self.tools.values()]
        if self.tools:
            lines.append(
                "What a tool returns comes back inside <result>...</result>. Only use a tool when you need it."
            )
        if self.grammar.answer:
            lines.append("<answer>...</answer>: your final answer, which ends the task.")
        return "\n".join(lines)

    def _after_tool(self, event: ToolEvent, reply: str) -> Mapping[str, Any]:
        """Further ``info`` keys after an executed call."""
        return {}

    def _admissible(self) -> list[str] | None:
        """The commands that make sense now, or None where there is no such list."""
        return None

    def oracle(self) -> OnlineJudge | None:
        """A judge of step roles that knows this environment's hidden state, or None."""
        return None

    # Gymnasium's interface.

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start an episode of ``options["task"]`` (an index or id), or of a task drawn from ``self.np_random``.

        Raises ValueError for an unknown option, KeyError or IndexError for an unknown task.
        """
        super().reset(seed=seed)
        options = dict(options or {})
        chosen = options.pop("task", None)
        if options:
            raise ValueError(f"unknown reset option {next(iter(options))!r}: this environment knows 'task'")
        self.task = self.tasks.sample(self.np_random) if chosen is None else self.tasks[chosen]
        self._turn = self._tool_calls = 0
        self._running = False
        self._transcript = []
        observation = clipped(self._begin(self.task), MAX_OBSERVATION_CHARS - NOTE_CHARS)
        self._running = True
        level = self.task.level
        info: dict[str, Any] = {
            "instructions": self.instructions,
            "task_id": self.task.id,
            "level": _Level(level) if self._mixed_levels and isinstance(level, int) else level,
            "success": False,
        }
        self._note(observation)
        return observation, self._counted(info)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Carry out one action text. Raises ResetNeeded after the end and TypeError for anything but a string."""
        if not isinstance(action, str):
            raise TypeError(f"an action is a text, got {type(action).__name__}: {action!r:.80}")
        if not self._running:
            raise ResetNeeded("the episode is over (or has not begun): call reset() before step()")
        self._turn += 1
        parsed = self.grammar.parse(action)
        self._note(action, agent=True)
        event: ToolEvent | None = None
        masked = False
        if parsed.kind == "tool":
            event, result = self._run_tool(parsed, action)
            masked = event.status == "unavailable"
        elif parsed.kind == "malformed":
            result = Transition(f"Invalid action: {parsed.problem}")
        else:
            result = self._act(parsed)
        truncated = masked or (not result.terminated and self._turn >= self.max_turns)
        info: dict[str, Any] = {"action": parsed, "tool": event, "success": result.success, **result.info}
        if result.terminated or truncated:
            self._running = False
            info["score"] = float(result.success) if result.score is None else float(result.score)
            info["outcome"] = (
                "masked" if masked else "turn_limit" if truncated else "solved" if result.success else "failed"
            )
        observation = clipped(result.observation, MAX_OBSERVATION_CHARS - NOTE_CHARS)
        self._note(observation)
        return observation, float(result.reward), result.terminated, truncated, self._counted(info)

    def render(self) -> str | None:
        """The transcript so far in mode "ansi"; in mode "human" it is printed while it happens."""
        return "\n".join(self._transcript) if self.render_mode == "ansi" else None

    # Shared steps.

    def _run_tool(self, call: ParsedAction, action: str) -> tuple[ToolEvent, Transition]:
        if isinstance(action, RefusedCall):
            return ToolEvent(call.name, call.argument, "refused"), Transition(action.reason)
        reply = self.tools[call.name].run(call.argument)
        status = reply.status
        if status == "unavailable":
            return ToolEvent(call.name, call.argument, "unavailable", reply.seconds), Transition(
                f"The tool {call.name} is unavailable; this episode does not count."
            )
        event = ToolEvent(call.name, call.argument, "ok" if status == "ok" else "raised", reply.seconds)
        self._tool_calls += 1
        text = self.grammar.neutralize(reply.text)
        return event, Transition(f"<result>{text}</result>", info=self._after_tool(event, text))

    def _counted(self, info: dict[str, Any]) -> dict[str, Any]:
        info["tool_calls"] = self._tool_calls
        info["turns_left"] = self.max_turns - self._turn
        admissible = self._admissible()
        if admissible is not None:
            info["admissible_actions"] = admissible
        return info

    def _note(self, text: str, *, agent: bool = False) -> None:
        if self.render_mode is None:
            return
        line = f"> {text}" if agent else text
        self._transcript.append(line)
        if self.render_mode == "human":
            sys.stdout.write(line + "\n")
            sys.stdout.flush()


def clipped(observation: str, limit: int) -> str:
    """``observation`` in at most ``limit`` characters: the middle of a huge text gives way to a note of how much is missing.

    >>> print(clipped("a" * 500 + "b" * 500, 90))
    aaaaa
    [... 990 characters left out ...]
    bbbbb
    """
    if len(observation) <= limit:
        return observation
    half = limit // 2 - 40
    if half < 1:  # no room for a note
        return observation[: max(0, limit)]
    return f"{observation[:half]}\n[... {len(observation) - 2 * half} characters left out ...]\n{observation[-half:]}"
