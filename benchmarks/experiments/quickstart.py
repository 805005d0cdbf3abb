"""The quickstart: a tiny agent learns when not to use its tool.

One model is cold-started on scripted demonstrations; from that start it is trained twice, with GRPO and with EAPO, on the
same problems. Then all three are examined on problems that none of them has seen. Whatever is measured is what is printed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import gymnasium as gym
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, TaskID, TextColumn, TimeElapsedColumn

from agentic_gym.benchmarks.experiments import tiny
from agentic_gym.episodes import Episode
from agentic_gym.files import exclusive, read_json
from agentic_gym.policies.base import Sampling
from agentic_gym.ranges import Checked, Count, Natural
from agentic_gym.trainers.evaluation import Summary, by_level, summarise
from agentic_gym.wrappers import RoleLabels, ToolFree

__all__ = ["ARMS", "Arm", "QuickstartConfig", "run_quickstart"]

LEVEL_NAMES = {tiny.EASY: "easy", tiny.MIDDLE: "middle", tiny.HARD: "hard"}
ENV_ARGUMENTS: Mapping[str, Any] = {"max_turns": 3, "instructions": "", "cache": True}
"""Two calls and the answer; no prose, which the tiny model has never read; what the code of a product prints is remembered."""
TURN_TOKENS = 24


@dataclass(frozen=True)
class Arm:
    """One way to train from the common start."""

    algorithm: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    tool_free_prompt: str = "sampled"


ARMS: dict[str, Arm] = {
    "grpo": Arm("grpo"),
    "eapo": Arm("eapo"),
    "eapo-normal-prompt": Arm("eapo", tool_free_prompt="normal"),
    "eapo-no-tool-free": Arm("eapo", {"tool_free": 0}),
    "eapo-no-shaping": Arm("eapo", {"beta": 0.0}),
    "eapo-no-weights": Arm("eapo", {"w_pos": 1.0, "w_neg": 1.0}),
    "triage": Arm("triage", {"group_size": 16, "bad_format": -1.0}),
    "eapo+triage": Arm("eapo+triage"),
}
"""What can be compared; the quickstart itself runs the first two."""


@dataclass(frozen=True)
class QuickstartConfig(Checked):
    """Train a tiny agent with and without EAPO and compare them.

    Example: agentic-gym bench quickstart --seeds 0 1 2
    """

    output: Path = Path("runs/quickstart")
    """Checkpoints, figures and pictures; finished parts found here are not run again."""
    seeds: tuple[Natural, ...] = (0,)
    """One complete run each: cold start, every arm, examination."""
    arms: tuple[str, ...] = ("grpo", "eapo")
    """Which arms of ``ARMS`` to train."""
    sft_steps: Count = 1400
    """Updates of the cold start, 64 demonstrations each."""
    iterations: Count = 80
    """Rollout-and-update rounds of every arm."""
    examined: Count = 256
    """Unseen problems of each level in the examination."""
    short: bool = False
    """A few steps of everything, to see that it runs; the figures mean nothing."""
    force: bool = False
    """Go on even when the cold start does not reach its marks."""
    jobs: Count = 2
    """Arms trained at once, one thread each."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for arm in self.arms:
            if arm not in ARMS:
                raise ValueError(f"unknown arm {arm!r}; known: {', '.join(ARMS)}")
        for name, values in (("seeds", self.seeds), ("arms", self.arms)):
            if not values or len(set(values)) < len(values):
                raise ValueError(f"{name} must be at least one, none of them twice; got {values}")


def run_quickstart(config: QuickstartConfig, console: Console | None = None) -> Path:
    """Run everything and return the folder with ``report.md``, ``results.json`` and the pictures.

    Raises RuntimeError when a cold start misses its marks (unless forced) or an arm fails.
    """
    try:
        import matplotlib  # noqa: F401
        import torch  # noqa: F401
        from transformers.utils.logging import disable_progress_bar
    except ImportError as error:
        raise ImportError(f"the quickstart needs pip install 'agentic-gym[math,train]' ({error})") from error

    from agentic_gym.benchmarks.experiments.quickstart_report import write_report

    disable_progress_bar()
    console = console or Console()
    if config.short:
        config = replace(config, sft_steps=min(config.sft_steps, 60), iterations=2, examined=16, force=True)
    with exclusive(config.output):
        _check_settings(config)
        results = _run_seeds(config, console)
        tiny.save_json(config.output / "results.json", results)
        console.print(write_report(config.output, results, config.arms))
    if config.short:
        console.print("[yellow]A smoke test: hardly anything was trained, and the figures mean nothing.[/]")
    console.print("[bold]Pictures and figures:[/]", escape(f"{config.output}/  ({results['seconds']:.0f} s)"))
    return config.output


def _check_settings(config: QuickstartConfig) -> None:
    """Parts found in the folder are not run again, so they must be of the same experiment."""
    path = config.output / "settings.json"
    settings = {name: getattr(config, name) for name in ("sft_steps", "iterations", "examined")}
    if path.exists():
        for name, before in read_json(path, "settings file", fix="delete the folder, or choose another --output").items():
            if settings.get(name) != before:
                raise ValueError(
                    f"{config.output} holds a run with {name} {before}, not {settings.get(name)}: choose another --output, or "
                    "delete it"
                )
    tiny.save_json(path, settings)


def _run_seeds(config: QuickstartConfig, console: Console) -> dict[str, Any]:
    started = time.monotonic()
    results: dict[str, Any] = {"config": json.loads(json.dumps(asdict(config), default=str)), "seeds": {}}
    for seed in config.seeds:
        folder = config.output / f"seed-{seed}"
        start = folder / "start"
        _cold_start(config, seed, start, console)
        examined = {"before": _examination(start, config.examined, seed, folder / "before.json")}
        _check_marks(examined["before"], config.force, console)
        _train_arms(config, seed, folder, console)
        for arm in config.arms:
            last = sorted((folder / arm / "checkpoints").glob("step-*"))[-1]
            examined[arm] = _examination(last, config.examined, seed, folder / arm / "examination.json")
        curves = {arm: _metrics(folder / arm) for arm in config.arms}
        results["seeds"][str(seed)] = {"examination": examined, "curves": curves}
    results["tasks"] = tiny.tiny_tasks("test").content_hash
    results["seconds"] = round(time.monotonic() - started, 1)
    return results


# The cold start.


def _cold_start(config: QuickstartConfig, seed: int, folder: Path, console: Console) -> None:
    if (folder / "config.json").exists():
        return
    import torch

    from agentic_gym.policies.formats import InlineFormat
    from agentic_gym.policies.transformers import TransformersPolicy
    from agentic_gym.trainers.config import OptimizerConfig
    from agentic_gym.trainers.sft import demonstration_trace, supervised

    torch.set_num_threads(1)  # two threads wait for each other as soon as anything else runs
    tokenizer = tiny.build_tokenizer()
    model = tiny.build_model(tokenizer, seed=seed)
    policy = TransformersPolicy(model, tokenizer, format=InlineFormat(tokenizer, tiny.TEMPLATE))
    n = config.sft_steps * 16
    episodes = tiny.demonstrations(tiny.tiny_tasks("train"), n, seed=seed)
    traces = [demonstration_trace(episode, policy) for episode in episodes]
    size = sum(p.numel() for p in model.parameters())
    with _progress(console) as progress:
        bar = progress.add_task(f"cold start, seed {seed} ({size:,} parameters)", total=config.sft_steps, figures="")
        supervised(
            policy,
            traces,
            OptimizerConfig(lr=4e-3, schedule="cosine", warmup=50, tokens_per_micro_batch=1000),
            steps=config.sft_steps,
            batch=64,
            seed=seed,
            on_step=lambda step, loss: progress.update(bar, completed=step + 1, figures=f"loss {loss:.3f}"),
        )
    partial = folder.with_name("start.partial")
    partial.mkdir(parents=True, exist_ok=True)
    policy.save_pretrained(partial)
    partial.rename(folder)


MARKS: tuple[tuple[str, Callable[[dict[str, Any]], float], float, float], ...] = (
    ("easy, tools forbidden, greedy: accuracy", lambda e: e["greedy tool-free"]["easy"]["success"], 0.9, 1.0),
    ("hard, tools forbidden, greedy: accuracy", lambda e: e["greedy tool-free"]["hard"]["success"], 0.0, 0.2),
    ("hard, T = 0.6: accuracy of episodes with calls", lambda e: e["T=0.6"]["hard"]["success_with_calls"], 0.9, 1.0),
    ("easy, T = 1: calls", lambda e: e["T=1"]["easy"]["calls"], 0.3, 1.3),
)
"""What a cold start must show for the comparison to mean anything: (what, where, lowest, highest)."""


def _check_marks(before: dict[str, Any], force: bool, console: Console) -> None:
    missed = [
        f"{what} is {value(before):.3f}, not within {low} to {high}"
        for what, value, low, high in MARKS
        if not low <= value(before) <= high
    ]
    if not missed:
        return
    text = "The cold start did not reach its marks: " + "; ".join(missed) + "."
    if not force:
        raise RuntimeError(f"{text} Raise sft_steps, take another seed, or go on regardless with --force")
    console.print(f"[yellow]{text} Going on regardless.[/]")


# Training.


def _train_arms(config: QuickstartConfig, seed: int, folder: Path, console: Console) -> None:
    """Train every arm in a process of its own, ``jobs`` at a time, and show where they are."""
    waiting = list(config.arms)
    running: dict[str, subprocess.Popen[bytes]] = {}
    with _progress(console) as progress:
        bars: dict[str, TaskID] = {
            arm: progress.add_task(f"{arm}, seed {seed}", total=config.iterations, figures="") for arm in config.arms
        }
        try:
            while waiting or running:
                while waiting and len(running) < config.jobs:
                    arm = waiting.pop(0)
                    running[arm] = _start_arm(config, arm, seed, folder)
                time.sleep(0.3)
                for arm, process in list(running.items()):
                    code = process.poll()
                    _show(progress, bars[arm], _metrics(folder / arm))
                    if code is None:
                        continue
                    del running[arm]
                    if code != 0:
                        log = (folder / arm / "log.txt").read_text(errors="replace").strip().splitlines()
                        raise RuntimeError(f"training {arm} failed: {log[-1] if log else f'exit code {code}'}")
        finally:
            for process in running.values():
                process.terminate()
            for process in running.values():
                process.wait()


def _start_arm(config: QuickstartConfig, arm: str, seed: int, folder: Path) -> subprocess.Popen[bytes]:
    (folder / arm).mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", __spec__.name if __spec__ else __name__, arm, str(seed), str(folder)]
    with (folder / arm / "log.txt").open("wb") as log:
        return subprocess.Popen([*command, str(config.iterations)], stdin=subprocess.PIPE, stdout=log, stderr=log)


def train_arm(arm: str, seed: int, folder: Path, iterations: int) -> None:
    """Train one arm from ``folder/start`` into ``folder/arm``."""
    import torch

    from agentic_gym.policies.transformers import TransformersPolicy
    from agentic_gym.trainers.algorithms import make_algorithm
    from agentic_gym.trainers.config import AlgorithmConfig, EnvConfig, FormatConfig, OptimizerConfig, TrainConfig
    from agentic_gym.trainers.grpo import train
    from agentic_gym.trainers.rollout import EnvPool
    from agentic_gym.trainers.run import Run

    torch.set_num_threads(1)
    chosen = ARMS[arm]
    tasks = _mixture(tiny.tiny_tasks("train"), seed)
    policy = TransformersPolicy.from_pretrained(folder / "start", dtype="float32", device="cpu")
    config = TrainConfig(
        model=str(folder / "start"),
        output=folder / arm,
        env=EnvConfig(kwargs=dict(ENV_ARGUMENTS), roles="triage" in arm),
        format=FormatConfig("inline", tiny.TEMPLATE),
        algorithm=AlgorithmConfig(chosen.algorithm, dict(chosen.parameters)),
        sampling=Sampling(max_tokens=TURN_TOKENS),
        optimizer=OptimizerConfig(lr=1e-4, schedule="linear", mini_batches=3, tokens_per_micro_batch=1500),
        iterations=iterations,
        tasks_per_iteration=12,
        tool_free_prompt="normal" if chosen.tool_free_prompt == "normal" else "sampled",
        seed=seed,
        checkpoint_every=20,
    )
    algorithm = make_algorithm(chosen.algorithm, **chosen.parameters)
    pool = EnvPool(lambda: make_env(tasks_of="train", roles="triage" in arm))
    with pool, Run(config, context={"tasks": tiny.tiny_tasks("train").content_hash}) as run:
        train(policy, pool, tasks, algorithm, config, run)


def _mixture(tasks: Any, seed: int) -> list[str]:
    """Ids of 800 easy, 400 middle and 1200 hard problems."""
    import numpy as np

    rng = np.random.default_rng((seed, 3))
    ids = []
    for level, count in ((tiny.EASY, 800), (tiny.MIDDLE, 400), (tiny.HARD, 1200)):
        pool = [task.id for task in tasks if task.level == level]
        ids += [pool[i] for i in rng.choice(len(pool), count, replace=False)]
    return ids


_TASKS: dict[str, Any] = {}


def make_env(*, tasks_of: str, roles: bool = False) -> gym.Env[str, str]:
    """MathTools on the laboratory's tasks, with forced tool-free episodes possible."""
    if tasks_of not in _TASKS:
        _TASKS[tasks_of] = tiny.tiny_tasks(tasks_of)
    env: gym.Env[str, str] = gym.make("agentic_gym/MathTools-v0", tasks=_TASKS[tasks_of], **ENV_ARGUMENTS)
    env = ToolFree(env, notice=tiny.NOTICE)
    return RoleLabels(env) if roles else env


# The examination.


def _examination(model: Path, per_level: int, seed: int, cache: Path) -> dict[str, Any]:
    """Accuracy and calls by level, greedy and sampled, with tools and without."""
    if cache.exists():
        return dict(read_json(cache, "examination", fix="delete it, and it is made again"))
    from agentic_gym.policies.transformers import TransformersPolicy
    from agentic_gym.trainers.evaluation import evaluate
    from agentic_gym.trainers.rollout import EnvPool

    policy = TransformersPolicy.from_pretrained(model, dtype="float32", device="cpu")
    ids = [task.id for task in tiny.tiny_tasks("test", per_level=per_level, seed=99)]
    manners = {
        "greedy": (Sampling(temperature=0.0, max_tokens=TURN_TOKENS), False),
        "T=0.6": (Sampling(temperature=0.6, top_p=0.95, max_tokens=TURN_TOKENS), False),
        "T=1": (Sampling(max_tokens=TURN_TOKENS), False),
        "greedy tool-free": (Sampling(temperature=0.0, max_tokens=TURN_TOKENS), True),
    }
    result: dict[str, Any] = {}
    with EnvPool(lambda: make_env(tasks_of="test")) as pool:
        for name, (sampling, tool_free) in manners.items():
            episodes = evaluate(policy, pool, ids, sampling, seed=seed, tool_free=tool_free)
            result[name] = {
                LEVEL_NAMES[int(level or 0)]: _figures(summary, [e for e in episodes if e.level == level])
                for level, summary in by_level(episodes).items()
            }
            result[name]["all"] = _figures(summarise(episodes), episodes)
    tiny.save_json(cache, result)
    return result


def _figures(summary: Summary, episodes: Sequence[Episode]) -> dict[str, float]:
    with_calls = [e for e in episodes if e.tool_calls > 0]
    return {**asdict(summary), "success_with_calls": summarise(with_calls).success if with_calls else 0.0}


# What a person sees.


def _progress(console: Console) -> Progress:
    columns = (*Progress.get_default_columns()[:3], TimeElapsedColumn(), TextColumn("{task.fields[figures]}"))
    return Progress(*columns, console=console)


def _show(progress: Progress, bar: TaskID, metrics: Sequence[Mapping[str, float]]) -> None:
    if not metrics:
        return
    last = metrics[-1]
    figures = f"reward {last['credit/reward']:.2f}  calls {last['rollout/calls']:.2f}"
    progress.update(bar, completed=len(metrics), figures=figures)


def _metrics(folder: Path) -> list[dict[str, float]]:
    path = folder / "metrics.jsonl"
    if not path.exists():
        return []
    lines = path.read_text().splitlines()
    # The writer may be in the middle of a line.
    return [json.loads(line) for line in lines if line.endswith("}")]


def _end_with_parent() -> None:
    """Wait for the end of standard input, which comes when the process that started us is gone, even if it was killed."""
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    threading.Thread(target=_end_with_parent, daemon=True).start()
    train_arm(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))
