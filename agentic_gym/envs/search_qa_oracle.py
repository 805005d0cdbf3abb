"""Step roles for SearchQA, from the gold passages and the known answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentic_gym.answers import normalize_squad
from agentic_gym.roles import Role
from agentic_gym.tasks import Task
from agentic_gym.tools.search import Passage

__all__ = ["SearchOracle", "is_relevant"]

_VERDICTS = ("yes", "no", "noanswer")


class SearchOracle:
    """Labels at once, by the first rule that fits.

    - D: the right answer;
    - R: a wrong answer, or a query asked before (which brings nothing new);
    - E: a query that brings a relevant passage which the episode had not shown;
    - N: all else (only known or irrelevant passages, nothing found, a refused or invalid action).

    A passage is relevant if it is a gold passage (by id or title) or, for tasks that know none, if it holds an accepted answer.
    Where neither can tell (a yes/no question without gold passages), a search gets no label; nor does one that failed for want
    of the engine.
    """

    def begin(self, env: Any, observation: str, info: Mapping[str, Any]) -> None:
        """Nothing to forget: what the episode has shown is told by the environment."""

    def label(self, env: Any, action: str, observation: str, info: Mapping[str, Any]) -> Role | None:
        """The role of the step just taken."""
        if info["action"].kind == "answer":
            return Role.DECISIVE if info["success"] else Role.REGRESSION
        event = info["tool"]
        if event is None or event.status == "refused":
            return Role.NO_PROGRESS
        if event.status == "unavailable":
            return None
        search = info["search"]
        if search.repeated:
            return Role.REGRESSION
        task: Task = env.unwrapped.task
        relevant = [is_relevant(passage, task) for passage in search.passages if passage.id in search.new]
        if any(relevant):
            return Role.EXPLORATION
        return None if None in relevant else Role.NO_PROGRESS


def is_relevant(passage: Passage, task: Task) -> bool | None:
    """Whether a passage helps to answer; None where the task does not tell."""
    if gold := task.info.get("gold"):
        return passage.id in gold or passage.id in task.info.get("relevant", ())
    if titles := task.info.get("gold_titles"):
        return passage.title in titles
    answers = task.answer if isinstance(task.answer, tuple) else (task.answer,)
    wanted = [normalize_squad(str(answer)) for answer in answers]
    wanted = [answer for answer in wanted if answer and answer not in _VERDICTS]
    if not wanted:
        return None
    text = f" {normalize_squad(f'{passage.title} {passage.text}')} "
    return any(f" {answer} " in text for answer in wanted)
