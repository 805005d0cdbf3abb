"""What holds for the package as a whole."""

import doctest
import importlib
import inspect
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

from agentic_gym.benchmarks.speed import credit as speed
from agentic_gym.trainers import credit

MODULES = [m.name for m in pkgutil.iter_modules(credit.__path__)]

DESIGN = {
    "grpo.group_advantages": "(returns, *, ddof=1, eps=1e-06, divide_by_std=True)",
    "eapo.efficiency": "(calls, correct, *, beta=1.0, clamp=True)",
    "eapo.difficulty": "(correct)",
    "eapo.shape_rewards": "(rewards, calls, correct, *, beta=1.0, shape_negative=False, clamp=True)",
    "eapo.token_weights": "(logprobs, turn_ids, thought_mask, *, correct, used_tool, rho=0.2, w_pos=1.5, w_neg=1.5)",
    "otc.coefficient": "(calls, optimal, limit)",
    "reinforce_pp.whiten": "(values, weights, *, ddof=0, eps=1e-08)",
    "gigpo.step_advantages": "(step_returns, anchors, *, norm='std', ddof=1, eps=1e-06)",
    "aepo.entropy_scaled": "(advantages, entropies, mask, *, alpha=0.2, ddof=0)",
    "arpo.branch_probability": "(entropy_now, entropy_initial, *, weight=0.2, base=0.5)",
}


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_the_docstrings(name):
    module = importlib.import_module(f"agentic_gym.trainers.credit.{name}")
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize("name", DESIGN)
def test_public_signatures(name):
    module, function = name.split(".")
    signature = inspect.signature(getattr(getattr(credit, module), function))
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
    assert str(inspect.Signature(bare)) == DESIGN[name]


def test_every_module_is_named():
    assert sorted(credit.__all__) == sorted(m for m in MODULES if not m.startswith("_"))


def test_needs_numpy_only():
    code = (
        "import sys, agentic_gym.trainers.credit; print(sorted({'torch', 'transformers', 'scipy'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_examples_of_the_page():
    page = Path(__file__).resolve().parents[3] / "docs" / "credit.md"
    result = doctest.testfile(str(page), module_relative=False)
    assert result.attempted > 5
    assert result.failed == 0


def test_the_speed_program_prints_a_table(capsys):
    assert speed.main(["--episodes", "16", "--repeats", "1"]) == 0
    assert {"grpo", "eapo", "triage"} <= set(capsys.readouterr().out.split())
