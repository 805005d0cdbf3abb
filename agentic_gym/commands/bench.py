"""``agentic-gym bench``."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from agentic_gym.commands.options import take_option
from agentic_gym.configs import load_config
from agentic_gym.tasks import near

EXAMPLE = "agentic-gym bench quickstart --seeds 0 1 2"


class Benchmark(NamedTuple):
    """A benchmark: a typed configuration and a function of it."""

    module: str
    config: str
    function: str
    summary: str


BENCHMARKS: Mapping[str, Benchmark] = MappingProxyType(
    {
        "quickstart": Benchmark(
            "agentic_gym.benchmarks.experiments.quickstart",
            "QuickstartConfig",
            "run_quickstart",
            "a tiny agent learns when not to use its tool: GRPO against EAPO, minutes on a CPU",
        ),
        "arithmetic": Benchmark(
            "agentic_gym.commands.suite",
            "ArithmeticSuite",
            "run",
            "generated problems of six levels, any policy; no data needed",
        ),
        "math": Benchmark(
            "agentic_gym.commands.suite",
            "MathSuite",
            "run",
            "arithmetic, GSM8K, MATH-500, MATH, AIME 24 and 25, any policy",
        ),
    }
)
"""name -> where it is; adding one is one line."""


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark that is named first, with its own flags or a YAML file (``--config``)."""
    name = arguments[0] if arguments else "--help"
    if name in ("-h", "--help"):
        lines = [f"  {name:<14}{benchmark.summary}" for name, benchmark in BENCHMARKS.items()]
        head = "usage: agentic-gym bench NAME [--config FILE] [flags]\n\nRun a benchmark.\n\nExample: " + EXAMPLE
        tail = "agentic-gym bench NAME --help shows its flags; they override those of a YAML --config FILE."
        sys.stdout.write("\n".join([head, "", *lines, "", tail, ""]))
        return 0
    if name not in BENCHMARKS:
        hint = near(name, BENCHMARKS, 1) or f" There are: {', '.join(BENCHMARKS)}."
        raise ValueError(f"there is no benchmark {name!r}.{hint}")
    benchmark = BENCHMARKS[name]
    path, flags = take_option(arguments[1:], "--config")
    module = importlib.import_module(benchmark.module)
    config = load_config(getattr(module, benchmark.config), path, flags, prog=f"agentic-gym bench {name}")
    getattr(module, benchmark.function)(config)
    return 0
