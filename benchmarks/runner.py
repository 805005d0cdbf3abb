"""Run a suite: a policy, a method, a table.

Every finished batch is on disk before the next begins, and a run that is started again plays only what is missing or was lost
to infrastructure. What was played otherwise (another budget, sampling or task set) is not mixed in: that is refused.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from rich.console import Console
from rich.markup import escape

from agentic_gym import __version__
from agentic_gym.benchmarks.suites import SUITES, Track
from agentic_gym.episodes import Episode
from agentic_gym.files import exclusive, read_json, write_text
from agentic_gym.policies.base import Policy, Sampling
from agentic_gym.ranges import Checked, Count, Natural
from agentic_gym.tasks import TaskSet, near
from agentic_gym.trainers.evaluation import Summary, by_level, summarise
from agentic_gym.trainers.recorded import progress_bar, recorded_rollout
from agentic_gym.trainers.rollout import EnvPool, EpisodeRequest
from agentic_gym.wrappers import RecordEpisodes, ToolBudget, ToolFree

__all__ = ["METHODS", "BenchmarkConfig", "run_suite"]

METHODS: Mapping[str, str] = {
    "tir": "the agent may use its tools",
    "base": "tools are forbidden: the model alone",
}
"""The two training-free rows that papers compare with."""

PolicyFactory = Callable[[gym.Env[str, str]], AbstractContextManager[Policy]]


@dataclass(frozen=True)
class BenchmarkConfig(Checked):
    """What to play and how."""

    suite: str = "math"
    output: Path = Path("runs/bench")
    """Episodes, ``results.json``, ``report.md`` and the picture go here."""
    label: str = "policy"
    """The policy's name in the report."""
    method: str = "tir"
    """See ``METHODS``."""
    limit: Count | None = None
    """At most so many tasks a track, chosen at random but always the same; None plays all."""
    samples: Count = 1
    """Episodes a task; the report gives their mean (Pass@1)."""
    budget: Natural | None = None
    """Most tool calls an episode."""
    sampling: Sampling = Sampling(temperature=0.6, top_p=0.95)  # noqa: RUF009  (frozen)
    parallel: Count = 32
    """Episodes played side by side."""
    seed: Natural = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.suite not in SUITES:
            raise ValueError(f"unknown suite {self.suite!r}.{near(self.suite, SUITES)} Known: {', '.join(SUITES)}")
        if self.method not in METHODS:
            raise ValueError(f"unknown method {self.method!r}; known: {', '.join(METHODS)}")
        if not self.folder_name.strip("._"):
            raise ValueError(f"the label {self.label!r} names no policy: give one with letters, --label NAME")

    @property
    def folder_name(self) -> str:
        """The label as the name of a folder."""
        return re.sub(r"[^\w.+=@-]", "_", self.label)


def run_suite(config: BenchmarkConfig, policy_for: PolicyFactory, console: Console | None = None) -> dict[str, Any]:
    """Play the suite and write the report; returns the results as written to ``results.json``.

    Args:
        policy_for: opens the policy for an environment of a track.

    Raises RuntimeError when no track has data or another process is playing for the same label and method, ValueError when the
    folder holds episodes played with other settings.
    """
    from agentic_gym.benchmarks.report import write_report

    console = console or Console(stderr=True)
    folder = config.output / config.folder_name / config.method
    with exclusive(folder):
        results = _play(config, policy_for, folder, console)
        write_text(folder / "results.json", json.dumps(results, indent=1) + "\n")
    console.print(write_report(config.output))
    console.print(f"table, picture and episodes: {config.output}", markup=False, highlight=False, soft_wrap=True)
    return results


def _play(config: BenchmarkConfig, policy_for: PolicyFactory, folder: Path, console: Console) -> dict[str, Any]:
    """The results of every track that has data."""
    results: dict[str, Any] = {
        "version": __version__,
        "config": json.loads(json.dumps(asdict(config), default=str)),
        "tracks": {},
        "left_out": {},
    }
    for track in SUITES[config.suite]:
        try:
            tasks = track.tasks()
        except (OSError, ImportError, ValueError) as error:
            results["left_out"][track.name] = " ".join(str(error).split())
            console.print(f"[yellow]{track.name} is left out:[/] {escape(str(error))}", highlight=False)
            continue
        episodes = _play_track(config, track, tasks, policy_for, folder / f"{track.name}.jsonl", console)
        results["tracks"][track.name] = {
            "tasks": len({episode.task_id for episode in episodes}),
            "sha256": tasks.content_hash,
            **_figures(summarise(episodes)),
            "levels": {str(level): _figures(summary) for level, summary in by_level(episodes).items()},
        }
    if not results["tracks"]:
        raise RuntimeError(f"no track of {config.suite} has data: {next(iter(results['left_out'].values()))}")
    return results


def _figures(summary: Summary) -> dict[str, Any]:
    """Plain data; what no episode counts for is None, since JSON knows no NaN."""
    return {name: None if math.isnan(value) else value for name, value in asdict(summary).items()}


def _play_track(
    config: BenchmarkConfig, track: Track, tasks: TaskSet, policy_for: PolicyFactory, path: Path, console: Console
) -> list[Episode]:
    requests = _requests(config, tasks)
    _check_settings(config, tasks, path)
    done = {(e.task_id, e.seed): e for e in RecordEpisodes.load(path) if not e.masked} if path.exists() else {}
    missing = [request for request in requests if (request.task, request.seed) not in done]

    def make() -> gym.Env[str, str]:
        env = track.make(tasks)
        if config.budget is not None:
            env = ToolBudget(env, config.budget)
        return ToolFree(env, active=config.method == "base")

    with EnvPool(make) as pool, progress_bar(console) as progress:
        bar = progress.add_task(track.name, total=len(requests), completed=len(requests) - len(missing))
        first = pool.take()
        pool.give_back(first)
        if missing:
            with policy_for(first) as policy:
                played = recorded_rollout(
                    policy,
                    pool,
                    missing,
                    config.sampling,
                    parallel=config.parallel,
                    path=path,
                    on_finished=lambda _: progress.advance(bar),
                )
            done |= {(e.task_id, e.seed): e for e in played}
    return [done[str(request.task), request.seed] for request in requests]


def _check_settings(config: BenchmarkConfig, tasks: TaskSet, path: Path) -> None:
    """Episodes found at ``path`` must have been played as ``config`` says; what decides that is written beside them."""
    settings = {
        "label": config.label,
        "budget": config.budget,
        "sampling": json.loads(json.dumps(asdict(config.sampling))),
        "tasks": tasks.content_hash,
    }
    beside = path.with_suffix(".settings.json")
    if path.exists() and beside.exists():
        for name, before in read_json(beside, "settings file", fix="delete it together with the episodes beside it").items():
            if settings.get(name) != before:
                raise ValueError(
                    f"{path} was played with {name} {before!r}, not {settings.get(name)!r}: choose another label or output, "
                    "or delete it"
                )
    write_text(beside, json.dumps(settings, indent=1) + "\n")


def _requests(config: BenchmarkConfig, tasks: TaskSet) -> list[EpisodeRequest]:
    rng = np.random.default_rng(config.seed)
    chosen = rng.permutation(len(tasks))[: config.limit].tolist()
    seeds = rng.integers(2**32, size=(len(chosen), config.samples)).tolist()
    return [EpisodeRequest(tasks[i].id, seed) for i, row in zip(chosen, seeds) for seed in row]
