"""``agentic-gym doctor``."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
from collections.abc import Callable, Iterator
from typing import NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from agentic_gym import __version__

EXAMPLE = "agentic-gym doctor"

_EXTRAS = (
    ("math", ("sympy", "math_verify"), "grading of symbolic answers"),
    (
        "train",
        ("torch", "transformers", "safetensors", "tensorboard", "matplotlib"),
        "models as policies, training, plots",
    ),
    ("gguf", ("gguf",), "GGUF model files"),
    ("data", ("datasets", "pyarrow"), "data sets from the hub, parquet files"),
    ("webshop", ("rapidfuzz",), "WebShop"),
    ("dense", ("sentence_transformers", "faiss"), "search by vectors"),
    ("serve", ("starlette", "uvicorn"), "servers"),
    ("alfworld", ("alfworld",), "the original ALFWorld engine"),
)
"""(extra, the modules it brings, what needs it)."""


class Finding(NamedTuple):
    """One line of the report."""

    name: str
    state: str
    """ok, missing (an extra that is not installed) or failed."""
    detail: str


def run() -> int:
    """Show what works on this machine, and what to install for the rest. Fails when a core part does not work."""
    from agentic_gym.tools.sandbox import doctor as sandbox_report

    findings = [*_checks(), *_extras()]
    table = Table(box=None, show_header=False, pad_edge=False)
    styles = {"ok": "green", "missing": "yellow", "failed": "bold red"}
    for finding in findings:
        table.add_row(finding.name, Text(finding.state, style=styles[finding.state]), Text(finding.detail))
    console = Console()
    console.print(f"agentic-gym {__version__}, Python {platform.python_version()}, {platform.platform()}", markup=False)
    console.print(table)
    console.print(sandbox_report(), markup=False, highlight=False)
    return int(any(finding.state == "failed" for finding in findings))


def _checks() -> Iterator[Finding]:
    checks: tuple[tuple[str, Callable[[], str]], ...] = (
        ("python tool", _sandbox),
        ("grader", _grader),
        ("device", _device),
    )
    for name, check in checks:
        try:
            yield Finding(name, "ok", check())
        except Exception as error:
            yield Finding(name, "failed", f"{type(error).__name__}: {error}")


def _sandbox() -> str:
    from agentic_gym.tools.python import PythonTool
    from agentic_gym.tools.sandbox import default_sandbox

    reply = PythonTool().run("print(6 * 7)")
    if reply.text != "42":
        raise RuntimeError(f"print(6 * 7) gave {reply.text!r} ({reply.sandbox_status})")
    return f"code runs isolated at level {default_sandbox().level!r}, {reply.seconds * 1000:.0f} ms a call"


def _grader() -> str:
    from agentic_gym.answers import grade_math

    if not grade_math("0.5", "1/2").correct:
        raise RuntimeError("0.5 was not graded equal to 1/2")
    if _missing(("sympy", "math_verify")):
        return "exact answers; symbolic ones need the extra math"
    grade = grade_math(r"\frac{\sqrt{8}}{2}", r"\sqrt{2}")
    if not grade.correct:
        raise RuntimeError(f"the symbolic grader gave {grade}")
    return "exact and symbolic answers"


def _device() -> str:
    if _missing(("torch",)):
        return "no torch: environments and scripted policies only"
    from agentic_gym.policies.devices import describe_device

    return describe_device()


def _extras() -> Iterator[Finding]:
    for extra, modules, use in _EXTRAS:
        missing = _missing(modules)
        if missing:
            yield Finding(extra, "missing", f"{use}: pip install 'agentic-gym[{extra}]'")
        else:
            yield Finding(extra, "ok", ", ".join(f"{name} {_version(name)}" for name in modules))


def _missing(modules: tuple[str, ...]) -> list[str]:
    return [name for name in modules if importlib.util.find_spec(name) is None]


def _version(module: str) -> str:
    try:
        return importlib.metadata.version(module.replace("_", "-"))
    except importlib.metadata.PackageNotFoundError:
        return ""
