"""Scripted policies for SearchQA.

- ``SearchExpert``: knows the task's chain of facts, looks each fact up, answers; does not search for what is common knowledge.
- ``NoisySearchExpert``: the same with mistakes at a known rate: groups of mixed outcomes and all four roles.

Both are policies (``respond``) without state: what to do next depends on the episode alone.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from agentic_gym.episodes import Episode, Response
from agentic_gym.tasks import Task, TaskSet
from agentic_gym.tools.retrieval import Corpus

__all__ = ["NoisySearchExpert", "SearchExpert"]

_UNKNOWN = "unknown"


class _Lookup(NamedTuple):
    """One planned search: what is asked, what it is for, and what is known once it is done."""

    query: str
    purpose: str
    finding: str


class SearchExpert:
    """Decomposes a question by its gold chain: one search per fact, then the answer.

    It never says more than it has looked up: out of turns, or forbidden to search, it gives its last finding, or "unknown".
    Questions of the easy band it answers at once.

    Args:
        tasks: the tasks that episodes may be of.
        corpus: where tasks know gold passages but no chain (HotpotQA and the like): to look up their titles.

    Example:
        >>> from agentic_gym.envs.search_world import shared_world
        >>> world = shared_world()
        >>> tasks = world.tasks("test", levels=[1], per_level=5)
        >>> expert = SearchExpert(tasks)
        >>> expert.respond([Episode(tasks[0].id, "", tasks[0].prompt)])[0].text.endswith("</search>")
        True
    """

    def __init__(self, tasks: TaskSet, *, corpus: Corpus | None = None) -> None:
        self.tasks = tasks
        self.corpus = corpus

    def respond(self, episodes: Sequence[Episode], sampling: object = None) -> list[Response]:
        """The next action of each episode. Raises KeyError for an episode of another task."""
        return [Response(self._act(episode, self.tasks[episode.task_id])) for episode in episodes]

    def _act(self, episode: Episode, task: Task) -> str:
        plan = self._plan(task)
        if task.info.get("band") == "easy":
            return _answer("I know this.", plan[-1].finding)
        done = {step.tool.argument for step in episode.steps if step.tool is not None and step.tool.executed}
        left = [lookup for lookup in plan if lookup.query not in done]
        if not left:
            return _answer("I have found the answer.", plan[-1].finding)
        if episode.tool_free or episode.info.get("turns_left", 2) <= 1:
            known = [lookup.finding for lookup in plan if lookup.query in done]
            return _answer("I cannot search any further.", known[-1] if known else _UNKNOWN)
        return f"<think>{left[0].purpose}</think><search>{left[0].query}</search>"

    def _plan(self, task: Task) -> list[_Lookup]:
        chain = task.info.get("chain")
        if chain:
            return [
                _Lookup(
                    fact["query"],
                    f"I need to find: {fact['subject']}, {fact['relation'].replace('_', ' ')}.",
                    fact["object"],
                )
                for fact in chain
            ]
        answer = str(task.answer[0] if isinstance(task.answer, tuple) else task.answer)
        queries = [task.prompt, *task.info.get("gold_titles", ())]
        if self.corpus is not None:
            queries += [self.corpus[self.corpus.position(passage)].title for passage in task.info.get("gold", ())]
        return [_Lookup(query, f"I will look up: {query}", answer) for query in dict.fromkeys(queries)]


class NoisySearchExpert(SearchExpert):
    """A ``SearchExpert`` that errs at rate ``noise``: it repeats a query, asks something else, or gives a wrong answer.

    Each decision is drawn from (``seed``, the episode's seed, its task, the turn), so a run can be repeated and an episode does
    not depend on its neighbours.

    Args:
        tasks: as for ``SearchExpert``; at least two.
        noise: chance of a mistake per turn, in [0, 1].
        seed: of the mistakes, at least 0.
        corpus: as for ``SearchExpert``.
    """

    def __init__(self, tasks: TaskSet, *, noise: float = 0.3, seed: int = 0, corpus: Corpus | None = None) -> None:
        if not 0 <= noise <= 1 or seed < 0:
            raise ValueError(f"need noise in [0, 1] and seed >= 0, got {noise} and {seed}")
        if len(tasks) < 2:
            raise ValueError(f"mistakes are taken from other tasks: need at least two, got {tasks!r}")
        super().__init__(tasks, corpus=corpus)
        self.noise = noise
        self.seed = seed

    def _act(self, episode: Episode, task: Task) -> str:
        rng = np.random.default_rng([self.seed, episode.seed, zlib.crc32(task.id.encode()), len(episode.steps)])
        if rng.random() >= self.noise:
            return super()._act(episode, task)
        other = self.tasks.sample(rng)
        asked = [step.tool.argument for step in episode.steps if step.tool is not None and step.tool.executed]
        mistake = rng.integers(3)
        if mistake == 0 and asked:
            return f"<think>Let me check that again.</think><search>{asked[-1]}</search>"
        if mistake == 1 and not episode.tool_free:
            return f"<think>This may be related.</think><search>{other.prompt}</search>"
        return _answer("I will guess.", self._plan(other)[-1].finding)


def _answer(thought: str, answer: str) -> str:
    return f"<think>{thought}</think><answer>{answer}</answer>"
