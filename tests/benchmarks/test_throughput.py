"""The dispatcher of speed benchmarks, and that the training benchmark compares equal work."""

import subprocess
import sys
from pathlib import Path

import pytest

from agentic_gym.benchmarks import throughput

ROOT = Path(__file__).resolve().parents[2]


def test_every_benchmark_is_listed_with_what_it_says(capsys):
    assert throughput.main([]) == throughput.main(["--help"]) == 0
    shown = capsys.readouterr().out
    names = {path.stem for path in (ROOT / "benchmarks/speed").glob("*.py")} - {"__init__"}
    assert set(throughput.benchmarks()) == names >= {"training", "grading", "credit", "python"}
    for name, line in throughput.benchmarks().items():
        assert line, f"{name} does not say what it is"
        assert f"  {name}" in shown


def test_an_unknown_name_lists_the_known_ones(capsys):
    assert throughput.main(["trainig"]) == 2
    assert "there is no benchmark 'trainig'; known: " in capsys.readouterr().err


@pytest.mark.parametrize("how", [["-m", "agentic_gym.benchmarks.throughput"], [str(ROOT / "benchmarks/throughput.py")]])
def test_it_runs_as_module_and_as_file(how, tmp_path):
    command = [sys.executable, *how, "credit", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT if how[0] == "-m" else tmp_path, check=True)
    assert "usage:" in done.stdout


@pytest.mark.slow
def test_a_training_step_beside_the_plain_loop(capsys):
    pytest.importorskip("torch")
    throughput.main(["training", "--repeats", "1", "--cold-start", "20"])
    lines = capsys.readouterr().out.splitlines()
    plain, ours = (next(line.split() for line in lines if line.startswith(name)) for name in ("plain", "ours"))
    # The same problems and the same model: nearly as many tokens and turns.
    assert float(ours[2]) == pytest.approx(float(plain[2]), rel=0.3)
    assert float(ours[3]) == pytest.approx(float(plain[3]), rel=0.3)
