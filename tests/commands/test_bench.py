"""bench finds its benchmark and gives it a typed configuration."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from agentic_gym.benchmarks.experiments import quickstart
from agentic_gym.cli import main
from agentic_gym.commands.bench import BENCHMARKS
from agentic_gym.commands.options import take_option


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    configs: list[Any] = []
    monkeypatch.setattr(quickstart, "run_quickstart", configs.append)
    return configs


def test_flags_and_file(ran: list[Any], tmp_path: Path) -> None:
    path = tmp_path / "q.yaml"
    path.write_text("seeds: [3, 4]\niterations: 5\n")
    assert main(["bench", "quickstart", "--short", "--config", str(path), "--iterations", "6"]) == 0
    (config,) = ran
    assert (config.short, config.seeds, config.iterations) == (True, (3, 4), 6)
    assert dataclasses.replace(config, short=False, seeds=(0,), iterations=80) == quickstart.QuickstartConfig()


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["bench", "quickstrt"], 2, "there is no benchmark 'quickstrt'. Did you mean 'quickstart'?"),
        (["bench", "quickstart", "--config"], 2, "--config needs a value"),
        (["bench", "quickstart", "--itrations", "3"], 2, "--iterations"),
        (["bench", "quickstart", "--config", "none.yaml"], 2, "there is no configuration file at none.yaml: give a YAML file"),
    ],
)
def test_errors(
    arguments: list[str], status: int, message: str, ran: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == status
    assert message in capsys.readouterr().err
    assert not ran


def test_a_wrong_key_in_the_file(ran: list[Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "q.yaml"
    path.write_text("itertions: 5\n")
    assert main(["bench", "quickstart", "--config", str(path)]) == 2
    assert "unknown key 'itertions'. Did you mean 'iterations'?" in capsys.readouterr().err


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in BENCHMARKS)
    for name in BENCHMARKS:
        assert main(["bench", name, "--help"]) == 0
        assert f"usage: agentic-gym bench {name}" in capsys.readouterr().out


def test_take_option() -> None:
    assert take_option(["a", "--config=x=y", "b"], "--config") == ("x=y", ["a", "b"])
    assert take_option(["a"], "--config") == (None, ["a"])
    assert take_option(["--config", "1", "--config", "2"], "--config") == ("2", [])
