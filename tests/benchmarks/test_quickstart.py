"""The quickstart runs end to end, resumes, and says when a cold start is no good."""

import json
import signal
import subprocess
import sys

import pytest
from rich.console import Console

pytest.importorskip("torch")

from agentic_gym.benchmarks.experiments.quickstart import QuickstartConfig, _check_settings, run_quickstart


@pytest.mark.slow
def test_short_run(tmp_path):
    config = QuickstartConfig(output=tmp_path, short=True, arms=("grpo", "eapo", "triage"))
    run_quickstart(config, Console(quiet=True))
    results = json.loads((tmp_path / "results.json").read_text())
    examined = results["seeds"]["0"]["examination"]
    assert set(examined) == {"before", "grpo", "eapo", "triage"}
    assert examined["eapo"]["greedy tool-free"]["all"]["calls"] == 0
    assert all(len(curve) == 2 for curve in results["seeds"]["0"]["curves"].values())
    report = (tmp_path / "report.md").read_text()
    assert results["tasks"][:12] in report
    for picture in ("learning_curves.png", "accuracy_against_calls.png"):
        assert (tmp_path / picture).stat().st_size > 5000
    stamps = {path: path.stat().st_mtime_ns for path in tmp_path.glob("seed-0/start/*")}
    run_quickstart(config, Console(quiet=True))
    assert {path: path.stat().st_mtime_ns for path in tmp_path.glob("seed-0/start/*")} == stamps


@pytest.mark.slow
def test_a_cold_start_below_its_marks_stops_with_the_figures(tmp_path):
    config = QuickstartConfig(output=tmp_path, sft_steps=5, examined=8)
    with pytest.raises(RuntimeError, match=r"did not reach its marks: easy.*--force"):
        run_quickstart(config, Console(quiet=True))


def test_unknown_arm():
    with pytest.raises(ValueError, match="unknown arm 'gpro'"):
        QuickstartConfig(arms=("gpro",))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"jobs": 0}, "jobs must be at least 1, got 0"),
        ({"examined": 0}, "examined must be at least 1, got 0"),
        ({"seeds": ()}, "seeds must be at least one"),
        ({"seeds": (-1,)}, "seeds must be a list, each a whole number of at least 0, got"),
        ({"arms": ("grpo", "grpo")}, "arms must be at least one, none of them twice"),
    ],
)
def test_wrong_settings_name_the_value(change, message):
    with pytest.raises(ValueError, match=message):
        QuickstartConfig(**change)


def test_parts_of_another_experiment_are_not_mixed_in(tmp_path):
    _check_settings(QuickstartConfig(output=tmp_path, sft_steps=60))
    _check_settings(QuickstartConfig(output=tmp_path, sft_steps=60, seeds=(0, 1)))
    with pytest.raises(ValueError, match="holds a run with sft_steps 60, not 1400: choose another --output"):
        _check_settings(QuickstartConfig(output=tmp_path))


def test_an_arm_ends_with_the_process_that_started_it(tmp_path):
    command = [sys.executable, "-m", "agentic_gym.benchmarks.experiments.quickstart", "grpo", "0", str(tmp_path), "1"]
    arm = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False)
    assert arm.returncode == -signal.SIGTERM
