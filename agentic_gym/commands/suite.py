"""The suites of ``agentic-gym bench``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from agentic_gym.benchmarks.runner import BenchmarkConfig, run_suite
from agentic_gym.commands.policies import open_policy
from agentic_gym.policies.base import Sampling
from agentic_gym.ranges import Checked, Count, Natural, NonNegative, Range

__all__ = ["ArithmeticSuite", "MathSuite", "run"]


@dataclass(frozen=True)
class ArithmeticSuite(Checked):
    """Play generated problems with one policy and write a table and a picture; run again, it plays what is missing.

    Example: agentic-gym bench arithmetic --policy server --url http://localhost:8000/v1 --model Qwen/Qwen2.5-7B-Instruct
    """

    suite: ClassVar[str] = "arithmetic"

    policy: str = "scripted"
    """random, scripted, server, or a model: a directory, a .gguf file or a hub id."""
    url: str = "http://localhost:8000/v1"
    """server: its base URL."""
    model: str | None = None
    """server: which of its models."""
    label: str = ""
    """The policy's name in the report; empty takes the model's or the policy's."""
    output: Path = Path("runs/bench")
    """Episodes, results.json, report.md and the picture go here; several policies may share it."""
    method: str = "tir"
    """tir: with tools; base: tools forbidden."""
    limit: Count | None = None
    """At most so many tasks of each set."""
    samples: Count = 1
    """Episodes a task."""
    budget: Natural | None = None
    """Most tool calls an episode."""
    temperature: NonNegative = 0.6
    """Of a model's sampling; 0 is greedy."""
    top_p: Annotated[float, Range(above=0, most=1)] = 0.95
    """Nucleus of a model's sampling."""
    max_tokens: Count = 1024
    """Most tokens of a model's turn."""
    parallel: Count = 32
    """Episodes played side by side."""
    seed: Natural = 0
    """Of tasks and sampling."""


@dataclass(frozen=True)
class MathSuite(ArithmeticSuite):
    """Play the mathematics sets that are at hand with one policy and write a table and a picture.

    Files are looked for in $AGENTIC_GYM_DATA, then on the hub. Run again, it plays what is missing.

    Example: agentic-gym bench math --policy server --url http://localhost:8000/v1 --model Qwen/Qwen2.5-7B-Instruct --limit 100
    """

    suite: ClassVar[str] = "math"


def run(chosen: ArithmeticSuite) -> None:
    """Play the suite of ``chosen``."""
    config = BenchmarkConfig(
        suite=chosen.suite,
        output=chosen.output,
        label=chosen.label or chosen.model or Path(chosen.policy).resolve().name,
        method=chosen.method,
        limit=chosen.limit,
        samples=chosen.samples,
        budget=chosen.budget,
        sampling=Sampling(temperature=chosen.temperature, top_p=chosen.top_p, max_tokens=chosen.max_tokens),
        parallel=chosen.parallel,
        seed=chosen.seed,
    )
    run_suite(config, lambda env: open_policy(chosen.policy, env, seed=chosen.seed, url=chosen.url, model=chosen.model))
