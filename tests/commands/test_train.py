"""train reads its configuration and hands it over."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from agentic_gym.cli import main
from agentic_gym.configs import from_mapping, load_config, parse_yaml, to_yaml
from agentic_gym.trainers import launch
from agentic_gym.trainers.config import TrainConfig

FILE = """
model: some/model
env: {kwargs: {levels: 3, cache: true}, tool_budget: 2}
algorithm: {name: eapo, parameters: {beta: 0.5, group_size: 8}}
optimizer: {lr: 1e-5, betas: [0.9, 0.95]}
"""


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[TrainConfig]:
    configs: list[TrainConfig] = []

    def record(config: TrainConfig, *_: Any, **__: Any) -> Path:
        configs.append(config)
        return Path("checkpoint")

    monkeypatch.setattr(launch, "launch", record)
    return configs


def test_a_file_and_flags(launched: list[TrainConfig], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(FILE)
    flags = ["--optimizer.lr", "2e-6", "--algorithm.with", "beta=0.25", "--output", "runs/mine"]
    assert main(["train", str(path), *flags]) == 0
    (config,) = launched
    assert (config.model, config.optimizer.lr, config.optimizer.betas) == ("some/model", 2e-6, (0.9, 0.95))
    assert config.algorithm.settings == ("beta=0.25",)
    assert config.algorithm.parameters["group_size"] == 8
    assert (config.env.kwargs, config.env.tool_budget) == ({"levels": 3, "cache": True}, 2)
    assert config.output == Path("runs/mine")
    assert "trained: checkpoint" in capsys.readouterr().err


def test_short_names_of_environments(launched: list[TrainConfig], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--model", "m", "--env.id", "webshop"]) == 0
    assert launched[0].env.id == "agentic_gym/WebShop-v0"
    assert main(["train", "--model", "m", "--env.id", "webshp"]) == 2
    assert "Did you mean 'WebShop'?" in capsys.readouterr().err


def test_flags_alone(launched: list[TrainConfig]) -> None:
    assert main(["train", "--model", "m", "--iterations", "3"]) == 0
    assert (launched[0].model, launched[0].iterations) == ("m", 3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("modle: x", "unknown key 'modle'. Did you mean 'model'?"),
        ("optimizer: {lrr: 1}", "unknown key 'optimizer.lrr'. Did you mean 'lr'?"),
        ("sampling: {top_p: 0.5}", "training needs sampling.top_p = 1"),
        ("iterations: 0", "iterations must be at least 1, got 0"),
    ],
)
def test_a_wrong_file(
    text: str, message: str, launched: list[TrainConfig], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(text)
    assert main(["train", str(path)]) == 2
    assert message in capsys.readouterr().err
    assert not launched


def test_a_configuration_reads_back(tmp_path: Path) -> None:
    config = from_mapping(TrainConfig, parse_yaml(FILE))
    path = tmp_path / "run.yaml"
    path.write_text(to_yaml(config))
    assert load_config(TrainConfig, path) == config
