"""``agentic-gym bench``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

EXAMPLE = "agentic-gym bench math --policy http://localhost:8000/v1 --model Qwen/Qwen2.5-7B-Instruct --limit 100"

EXPERIMENTS = ("quickstart",)


@dataclass(frozen=True)
class Suite:
    """Play a suite of task sets with one policy and write a table and a picture; running it again plays what is missing."""

    policy: str = "scripted"
    """random, scripted, a model (directory, .gguf, hub id), or the URL of an OpenAI-compatible server."""
    model: str = ""
    """The model's name at the server."""
    label: str = ""
    """The policy's name in the report; empty takes the model's or the policy's."""
    output: Path = Path("runs/bench")
    """Episodes, results.json, report.md and the picture go here; several policies may share it."""
    method: str = "tir"
    """tir: with tools; base: tools forbidden."""
    limit: int | None = None
    """At most so many tasks of each set."""
    samples: int = 1
    """Episodes a task."""
    budget: int | None = None
    """Most tool calls an episode."""
    temperature: float = 0.6
    """Of sampling; 0 is greedy."""
    top_p: float = 0.95
    """Nucleus of sampling."""
    max_tokens: int = 1024
    """Most tokens of a turn."""
    parallel: int = 32
    """Episodes played side by side."""
    seed: int = 0
    """Of tasks and sampling."""


def main(arguments: Sequence[str], prog: str) -> int:
    """Run a benchmark suite or an experiment by name."""
    from agentic_gym.benchmarks.suites import SUITES
    from agentic_gym.tasks import near

    names = (*EXPERIMENTS, *SUITES)
    name, flags = (arguments[0], list(arguments[1:])) if arguments else ("--help", [])
    if name in ("-h", "--help"):
        suites = "\n".join(f"  {suite:<12}{', '.join(t.name for t in tracks)}" for suite, tracks in SUITES.items())
        _print(
            f"usage: {prog} NAME ...\n\nExperiments:\n  quickstart  an agent learns when not to use its tool (8 minutes)\n\n"
            f"Suites:\n{suites}\n\nExample: {EXAMPLE}\n`{prog} NAME --help` shows the flags."
        )
        return 0
    if name not in names:
        raise ValueError(f"there is no benchmark {name!r}.{near(name, names)} Known: {', '.join(names)}")
    return _quickstart(flags, prog) if name == "quickstart" else _suite(name, flags, prog)


def _quickstart(flags: Sequence[str], prog: str) -> int:
    from agentic_gym.benchmarks.experiments.quickstart import QuickstartConfig, run_quickstart
    from agentic_gym.configs import load_config

    run_quickstart(load_config(QuickstartConfig, overrides=flags, prog=f"{prog} quickstart"))
    return 0


def _suite(name: str, flags: Sequence[str], prog: str) -> int:
    from agentic_gym.benchmarks.runner import BenchmarkConfig, run_suite
    from agentic_gym.commands.policies import load_policy
    from agentic_gym.configs import load_config
    from agentic_gym.policies.base import Sampling

    chosen = load_config(Suite, overrides=flags, prog=f"{prog} {name}")
    config = BenchmarkConfig(
        suite=name,
        output=chosen.output,
        label=chosen.label or chosen.model or Path(chosen.policy).name,
        method=chosen.method,
        limit=chosen.limit,
        samples=chosen.samples,
        budget=chosen.budget,
        sampling=Sampling(temperature=chosen.temperature, top_p=chosen.top_p, max_tokens=chosen.max_tokens),
        parallel=chosen.parallel,
        seed=chosen.seed,
    )
    run_suite(config, lambda env: load_policy(chosen.policy, env, seed=chosen.seed, model=chosen.model))
    return 0


def _print(text: str) -> None:
    import sys

    sys.stdout.write(text + "\n")
