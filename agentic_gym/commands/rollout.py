"""``agentic-gym rollout``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import gymnasium as gym
import numpy as np
import tyro
from rich.console import Console
from rich.table import Table
from rich.text import Text

from agentic_gym.commands.environments import make_env
from agentic_gym.commands.policies import open_policy
from agentic_gym.commands.transcript import printable
from agentic_gym.episodes import Episode
from agentic_gym.policies import Sampling
from agentic_gym.trainers.evaluation import by_level, summarise
from agentic_gym.trainers.recorded import progress_bar, recorded_rollout
from agentic_gym.trainers.rollout import EnvPool, EpisodeRequest
from agentic_gym.wrappers import RoleLabels, ToolBudget, ToolFree
from agentic_gym.wrappers.record_episodes import append_episodes

EXAMPLE = "agentic-gym rollout MathTools --policy scripted --episodes 50 --out episodes.jsonl"


def run(
    env: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="ENV")],
    /,
    *,
    policy: str = "random",
    episodes: int = 20,
    out: Path | None = None,
    append: bool = False,
    settings: Annotated[tuple[str, ...], tyro.conf.arg(name="with", metavar="NAME=VALUE")] = (),
    seed: int = 0,
    url: str = "http://localhost:8000/v1",
    model: str | None = None,
    temperature: float = 1.0,
    max_tokens: int = 512,
    budget: int | None = None,
    tool_free: bool = False,
    roles: bool = False,
    parallel: int = 32,
) -> int:
    """Let a policy play episodes of an environment, record them, and show what came of it.

    Args:
        env: a Gymnasium id, or module:id.
        policy: random, scripted (the environment's expert), server, or a model: a directory, a .gguf file or a hub id.
        episodes: how many; tasks are drawn without repetition until all were played.
        out: the JSONL file to write; without one only the figures are shown.
        append: continue the file if it exists.
        settings: constructor arguments of the environment.
        seed: of the policy and the environments.
        url: of the OpenAI-compatible server, for the policy server; the variable OPENAI_API_KEY holds its key if it wants one.
        model: its name at the server.
        temperature: of a model's sampling; 0 is greedy.
        max_tokens: most tokens of a model's turn.
        budget: at most so many tool calls an episode.
        tool_free: no tool at all.
        roles: label each step with the environment's oracle.
        parallel: episodes played side by side.
    """
    for name, value, least in (("episodes", episodes, 1), ("parallel", parallel, 1), ("seed", seed, 0)):
        if value < least:
            raise ValueError(f"--{name} must be at least {least}, got {value}")
    if out is not None:
        if out.exists() and not append and (not out.is_file() or out.stat().st_size):
            raise ValueError(f"{out} exists: choose another --out, or add --append to continue it")
        out.parent.mkdir(parents=True, exist_ok=True)
        append_episodes(out, [])  # what cannot be written is said before anything is played

    def make() -> gym.Env[str, str]:
        made = make_env(env, settings)
        if budget is not None:
            made = ToolBudget(made, budget)
        if tool_free:
            made = ToolFree(made, active=True)
        return RoleLabels(made) if roles else made

    console = Console(stderr=True)
    with EnvPool(make) as pool:
        first = make()
        pool.give_back(first)
        requests = _requests(first, episodes, seed)
        sampling = Sampling(temperature=temperature, max_tokens=max_tokens)
        with open_policy(policy, first, seed=seed, url=url, model=model) as agent, progress_bar(console) as progress:
            bar = progress.add_task("episodes", total=len(requests))
            played = recorded_rollout(
                agent,
                pool,
                requests,
                sampling,
                parallel=parallel,
                path=out,
                on_finished=lambda _: progress.advance(bar),
            )
    _report(Console(), played)
    if out is not None:
        console.print(f"episodes in {out}; read them with: agentic-gym view {out}", markup=False, soft_wrap=True)
    return 0


def _requests(env: gym.Env[str, str], n: int, seed: int) -> list[EpisodeRequest]:
    n_tasks = len(getattr(env.unwrapped, "tasks", ())) or n
    rng = np.random.default_rng(seed)
    order = [int(task) for _ in range(0, n, n_tasks) for task in rng.permutation(n_tasks)]
    return [EpisodeRequest(task, int(rng.integers(2**32))) for task in order[:n]]


def _report(console: Console, episodes: Sequence[Episode]) -> None:
    table = Table("level", "episodes", "success", "score", "calls", "turns", "ill-formed", "masked")
    levels = by_level(episodes)
    rows = [(str(level), summary) for level, summary in levels.items() if level is not None]
    for name, s in [*rows, ("all", summarise(episodes))]:
        figures = (s.success, s.score, s.calls, s.turns, s.ill_formed)
        table.add_row(Text(printable(name)), str(s.episodes), *(f"{value:.3f}" for value in figures), str(s.masked))
    console.print(table)
    unread = sum(episode.outcome == "context_limit" and not episode.steps for episode in episodes)
    if unread:
        console.print(f"{unread} episodes never began: their prompt is longer than the policy's window", style="red")
    errors = [episode.error for episode in episodes if episode.error]
    if errors:
        console.print(f"{len(errors)} episodes do not count; the first: {printable(errors[0])}", style="red", markup=False)
