"""The quickstart runs end to end, resumes, and says when a cold start is no good."""

import json

import pytest
from rich.console import Console

pytest.importorskip("torch")

from agentic_gym.benchmarks.experiments.quickstart import QuickstartConfig, run_quickstart


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
