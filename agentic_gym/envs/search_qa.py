"""SearchQA-v0: think, search, read, answer.

- ``SearchQA``: the environment.
- ``SearchEvent``: what one search brought, as ``info["search"]`` tells it.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

from agentic_gym.actions import ParsedAction
from agentic_gym.answers import exact_match, token_f1
from agentic_gym.envs.search_qa_oracle import SearchOracle
from agentic_gym.envs.search_world import DEFAULT_LEVELS, shared_world
from agentic_gym.envs.search_world.questions import SPLITS
from agentic_gym.episodes import ToolEvent
from agentic_gym.roles import OnlineJudge
from agentic_gym.task_sources import DATA_VARIABLE, SOURCES, TaskSource, load_tasks, qa_record
from agentic_gym.tasks import Task, TaskSet, read_records
from agentic_gym.text_env import TextEnv, Transition
from agentic_gym.tools.retrieval import open_retriever
from agentic_gym.tools.search import Passage, Retriever, SearchReply, SearchTool

__all__ = ["SearchEvent", "SearchQA"]

_QA_SETS = tuple(name for name, source in SOURCES.items() if source.metric != "math")


class SearchEvent(NamedTuple):
    """What one executed search brought."""

    query: str
    passages: tuple[Passage, ...]
    """Best first."""
    new: tuple[str, ...]
    """Ids of the passages that this episode had not shown before."""
    repeated: bool
    """Whether the episode had asked the same query before; it was then answered from memory."""


class SearchQA(TextEnv):
    """Questions whose answers stand in an encyclopedia, with a search engine as the tool.

    The agent may call ``<search>query</search>`` and reads the best passages inside ``<result>...</result>``;
    ``<answer>...</answer>`` ends the episode. With nothing given it is a fictional encyclopedia that needs no download
    (``SearchWorld``).

    Args:
        tasks: a ``TaskSet``, a file of questions, a data set's name (``"nq"``, ``"hotpotqa"``, ... see ``task_sources``), or
            ``"world"``, ``"world-dev"``, ``"world-test"``: the fictional encyclopedia's splits. None is ``"world"``.
        retriever: a ``Retriever``, a JSONL corpus (searched with BM25) or the address of a server of Search-R1's protocol. May be
            left out for the fictional encyclopedia only.
        levels: keep only tasks of these levels; for the fictional encyclopedia 0 to 4, the number of searches a question needs
            (by default 0 to 3, which fit four turns).
        metric: what is rewarded: "em" (exact match) or "f1" (token overlap), each the best over the accepted answers; None takes
            what is usual for a named data set, else "em". ``success`` is an exact match with both.
        top_k: passages per result.
        max_tokens: budget of a result, in approximate tokens.
        max_turns, instructions, render_mode: see ``TextEnv``.

    Raises:
        ValueError: an unknown metric, or tasks without a retriever or without answers.

    Example:
        >>> import gymnasium as gym, agentic_gym
        >>> env = gym.make("agentic_gym/SearchQA-v0", levels=[1])
        >>> question, info = env.reset(seed=0)
        >>> observation, reward, terminated, truncated, info = env.step(f"<search>{question}</search>")
        >>> observation.startswith("<result>Doc 1(Title: "), len(info["search"].new), info["tool_calls"]
        (True, 3, 1)
    """

    blocking: ClassVar[bool] = True

    def __init__(
        self,
        tasks: TaskSet | str | Path | None = None,
        *,
        retriever: Retriever | str | Path | None = None,
        levels: Collection[int | str] | None = None,
        metric: Literal["em", "f1"] | None = None,
        top_k: int = 3,
        max_tokens: int = 500,
        max_turns: int = 4,
        instructions: str | None = None,
        render_mode: str | None = None,
    ) -> None:
        if metric is None:
            metric = "f1" if isinstance(tasks, str) and tasks in SOURCES and SOURCES[tasks].metric == "f1" else "em"
        if metric not in ("em", "f1"):
            raise ValueError(f"metric must be 'em', 'f1' or None, got {metric!r}")
        tasks, engine = _resolve(tasks, retriever, levels)
        unanswered = next((task for task in tasks if task.answer is None or task.answer == ()), None)
        if unanswered is not None:
            raise ValueError(f"task {unanswered.id!r} of {tasks.name!r} has no answer to grade with")
        self.metric = metric
        self._search = _EpisodeSearch(SearchTool(engine, top_k=top_k, max_tokens=max_tokens))
        super().__init__(
            tasks, tools=[self._search], max_turns=max_turns, instructions=instructions, render_mode=render_mode
        )

    @property
    def retriever(self) -> Retriever:
        """The engine, shared with every environment that was given the same one."""
        return self._search.tool.retriever

    def _begin(self, task: Task) -> str:
        self._search.forget()
        return task.prompt

    def _act(self, action: ParsedAction) -> Transition:
        golds = _golds(self.task)
        exact, f1 = exact_match(action.argument, golds), token_f1(action.argument, golds)
        score = exact if self.metric == "em" else f1
        text = "Right." if exact else "Wrong."
        return Transition(text, score, terminated=True, success=bool(exact), score=score, info={"em": exact, "f1": f1})

    def _after_tool(self, event: ToolEvent, reply: str) -> Mapping[str, Any]:
        return {"search": self._search.last}

    def _default_instructions(self) -> str:
        return super()._default_instructions() + " Give a name, a number or a date and nothing else."

    def oracle(self) -> OnlineJudge:
        """Roles from the known answer and the gold passages."""
        return SearchOracle()

    def close(self) -> None:
        """Nothing to release here: the retriever is shared."""


class _EpisodeSearch:
    """The search tool with the memory of one episode: what was asked and what was shown."""

    def __init__(self, tool: SearchTool) -> None:
        self.tool = tool
        self.name = tool.name
        self.description = tool.description
        self.forget()

    def forget(self) -> None:
        self.last: SearchEvent | None = None
        self._replies: dict[str, SearchReply] = {}
        self._shown: set[str] = set()

    def run(self, argument: str) -> SearchReply:
        key = " ".join(argument.casefold().split())
        reply = self._replies.get(key)
        repeated = reply is not None
        if reply is None:
            reply = self.tool.run(argument)
            if reply.status == "ok":
                self._replies[key] = reply
        else:
            reply = replace(reply, text=f"{reply.text}\n(You asked this before.)", seconds=0.0)
        new = tuple(passage.id for passage in reply.passages if passage.id not in self._shown)
        self._shown.update(new)
        self.last = SearchEvent(argument, reply.passages, new, repeated)
        return reply


def _resolve(
    tasks: TaskSet | str | Path | None, retriever: Retriever | str | Path | None, levels: Collection[int | str] | None
) -> tuple[TaskSet, Retriever]:
    """The tasks and the engine that the arguments name."""
    if tasks is None or tasks in ("world", *(f"world-{split}" for split in SPLITS)):
        world = shared_world()
        split = SPLITS[0] if tasks in (None, "world") else str(tasks).removeprefix("world-")
        found = world.tasks(split, levels=DEFAULT_LEVELS if levels is None else levels)
        return found, world.retriever if retriever is None else open_retriever(retriever)
    if retriever is None:
        raise ValueError(
            f"tasks {tasks!r:.60} need something to search: pass retriever=, a JSONL corpus of id, title, text, "
            "the address of a search server, or an object with search(queries, k)"
        )
    if not isinstance(tasks, TaskSet):
        tasks = _load(tasks)
    return tasks if levels is None else tasks.filter(levels=levels), open_retriever(retriever)


def _load(tasks: str | Path) -> TaskSet:
    """A named data set or a file of questions, read once per process while it stays as it is."""
    if str(tasks) in _QA_SETS:
        return _named(str(tasks), os.environ.get(DATA_VARIABLE))
    path = Path(tasks).resolve()
    if not path.exists():
        raise FileNotFoundError(f"no data set and no file {str(tasks)!r}; known data sets: {', '.join(_QA_SETS)}")
    stat = path.stat()
    return _file(path, stat.st_size, stat.st_mtime_ns)


@lru_cache(maxsize=16)
def _named(name: str, data_folder: str | None) -> TaskSet:
    """Keyed by the folder too, because that is where ``load_tasks`` looks."""
    return load_tasks(name)


@lru_cache(maxsize=16)
def _file(path: Path, size: int, mtime_ns: int) -> TaskSet:
    """Questions in any of the usual layouts. Keyed by size and time too, so that a rewritten file is read anew."""
    name = path.name.split(".")[0]
    tasks = TaskSource(name, hub="", convert=qa_record, metric="em").build(read_records(path), "test", str(path))
    if not tasks:
        raise ValueError(f"{path} holds no question: give a file with at least one record")
    return tasks


def _golds(task: Task) -> tuple[str, ...]:
    """The accepted answers as texts."""
    answers = task.answer if isinstance(task.answer, tuple) else (task.answer,)
    return tuple(map(str, answers))
