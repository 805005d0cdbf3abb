"""Policies without a model: a random one, and an expert for MathTools.

What they draw for a turn depends on their seed, the episode's seed, its task and the turn alone, so an episode never depends
on its neighbours.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence

import numpy as np

from agentic_gym.episodes import Episode, Response
from agentic_gym.policies.base import Sampling
from agentic_gym.tasks import TaskSet

__all__ = ["RandomPolicy", "ScriptedMathPolicy"]

_OFFERED = re.compile(r"<([a-z][a-z0-9_]*)>\.\.\.</\1>")
_WORDS = ("capital", "river", "author", "film", "year", "war", "born", "city", "band", "planet")


class RandomPolicy:
    """Random admissible actions; where there is no such list, random well-formed blocks of the kinds that the instructions offer.

    A baseline and a test of environments, never an opponent.

    Args:
        seed: of all draws.

    Example:
        >>> agent = RandomPolicy(seed=0)
        >>> episode = Episode("t", "", "You are at a desk.", info={"admissible_actions": ["look"]})
        >>> agent.respond([episode], Sampling())[0].text
        'look'
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def respond(self, episodes: Sequence[Episode], sampling: Sampling) -> list[Response]:
        """One random action an episode; ``sampling`` is ignored."""
        return [Response(self._act(episode)) for episode in episodes]

    def _act(self, episode: Episode) -> str:
        rng = _generator(self.seed, episode)
        admissible = episode.info.get("admissible_actions")
        if admissible:
            return str(admissible[int(rng.integers(len(admissible)))])
        offered = [
            name for name in dict.fromkeys(_OFFERED.findall(episode.instructions)) if name not in ("think", "result")
        ]
        name = offered[int(rng.integers(len(offered)))] if offered else "answer"
        a, b = rng.integers(0, 100, size=2)
        content = {"python": f"print({a} * {b})", "search": f"{_WORDS[a % 10]} {_WORDS[b % 10]}"}.get(name, str(a))
        return f"<{name}>{content}</{name}>"


class ScriptedMathPolicy:
    """An expert for MathTools: runs the task's program with ``<python>`` and answers what it printed.

    It never looks at a task's answer. Tasks must carry a ``program`` or ``expression`` in their ``info``, as the arithmetic
    generator's do. In a tool-free episode it can only guess.

    Args:
        tasks: where the programs are looked up, by ``episode.task_id``.
        mistake_rate: chance, 0 to 1, that a turn goes wrong: a block that is not closed, a program that prints another number
            last, or a wrong answer.
        thoughts: begin each turn with a line of thought.
        seed: of the mistakes.
    """

    def __init__(self, tasks: TaskSet, *, mistake_rate: float = 0.0, thoughts: bool = True, seed: int = 0) -> None:
        if not 0 <= mistake_rate <= 1:
            raise ValueError(f"mistake_rate is a chance from 0 to 1, got {mistake_rate}")
        self.tasks = tasks
        self.mistake_rate = mistake_rate
        self.thoughts = thoughts
        self.seed = seed

    def respond(self, episodes: Sequence[Episode], sampling: Sampling) -> list[Response]:
        """One action an episode; ``sampling`` is ignored. Raises ValueError for a task without a program."""
        return [Response(self._act(episode)) for episode in episodes]

    def _act(self, episode: Episode) -> str:
        rng = _generator(self.seed, episode)
        mistaken = bool(rng.random() < self.mistake_rate)
        value = self._printed(episode)
        if value is None and not episode.tool_free:
            block, thought = self._call(episode, rng if mistaken else None), "I will compute this."
        else:
            number = "0" if value is None else value
            if mistaken:
                number += str(rng.integers(10))
            block, thought = rf"<answer>\boxed{{{number}}}</answer>", "The result is there."
        return f"<think>{thought}</think>{block}" if self.thoughts else block

    def _call(self, episode: Episode, mistake: np.random.Generator | None) -> str:
        program = self._program(episode.task_id)
        if mistake is None:
            return f"<python>{program}</python>"
        if mistake.random() < 0.5:
            return f"<python>{program}"
        return f"<python>{program}\nprint({mistake.integers(1000)})</python>"

    def _program(self, task_id: str) -> str:
        info = self.tasks[task_id].info
        if "program" in info:
            return str(info["program"])
        if "expression" in info:
            return f"print({info['expression']})"
        raise ValueError(
            f"task {task_id!r} has neither a program nor an expression in its info, so it cannot be scripted: "
            "use tasks of generate_arithmetic"
        )

    @staticmethod
    def _printed(episode: Episode) -> str | None:
        """The last line that the last executed call printed."""
        for step in reversed(episode.steps):
            if step.tool is not None and step.tool.status == "ok":
                body = step.observation.split("</result>")[0].removeprefix("<result>").strip()
                return body.splitlines()[-1] if body else None
        return None


def _generator(seed: int, episode: Episode) -> np.random.Generator:
    return np.random.default_rng([seed, episode.seed, zlib.crc32(episode.task_id.encode()), len(episode.steps)])
