"""The tables of docs/training.md against the dataclasses, the algorithms and a real run."""

from __future__ import annotations

import dataclasses
import fnmatch
import inspect
import re
import typing
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from agentic_gym.configs import ConfigError, from_mapping, parse_yaml, to_yaml
from agentic_gym.policies.base import Sampling
from agentic_gym.trainers import run as run_module
from agentic_gym.trainers.algorithm import LossVariant
from agentic_gym.trainers.algorithms import ALGORITHMS, make_algorithm
from agentic_gym.trainers.config import EnvConfig, OptimizerConfig, SFTConfig, TrainConfig
from agentic_gym.trainers.grpo import train
from agentic_gym.trainers.rollout import EnvPool
from agentic_gym.trainers.run import Run
from tests.doc_tables import table

PAGE = Path(__file__).resolve().parents[2] / "docs" / "training.md"


# Settings.


def fields(cls: type, prefix: str = "") -> dict[str, tuple[Any, Any]]:
    """Dotted name -> (type, default as plain data); ``sft.optimizer`` is one row."""
    plain = parse_yaml(to_yaml(cls()))
    found: dict[str, tuple[Any, Any]] = {}
    for name, kind in typing.get_type_hints(cls).items():
        if dataclasses.is_dataclass(kind) and cls is not SFTConfig:
            found |= fields(kind, f"{prefix}{name}.")
        else:
            found[prefix + name] = (kind, plain[name])
    return found


def settings() -> dict[str, dict[str, str]]:
    return {row["field"]: row for row in table(PAGE, "Settings")}


def test_every_field_is_in_the_table() -> None:
    assert list(settings()) == list(fields(TrainConfig))


def test_defaults() -> None:
    for name, (kind, default) in fields(TrainConfig).items():
        written = parse_yaml(settings()[name]["default"])
        if kind is OptimizerConfig:
            ordinary = parse_yaml(to_yaml(OptimizerConfig()))
            written = {**ordinary, **written}
        assert written == default, name


def test_what_is_accepted() -> None:
    """The border of every range is accepted, what lies just outside is refused; choices are exactly those of the type."""
    checked = 0
    for name, row in settings().items():
        kind, accepted = fields(TrainConfig)[name][0], row["accepted"]
        whole = int in (kind, *typing.get_args(kind))
        choices = next((set(typing.get_args(k)) for k in (kind,) if typing.get_origin(k) is typing.Literal), None)
        if kind is bool:
            choices = {"true", "false"}
        if choices is not None:
            assert set(accepted.split(", ")) == choices, name
        elif bound := re.fullmatch(r"(>=|>|=) (\d+)", accepted):
            sign, border = bound[1], int(bound[2])
            inside = border if sign != ">" else border + 1e-9
            outside = border if sign == ">" else border - 1 if whole else border - 0.001
            assert takes(name, inside), f"{name} refuses {inside}"
            assert not takes(name, outside), f"{name} accepts {outside}"
            if sign == "=":
                assert not takes(name, border + 0.001)
        elif name == "optimizer.betas":
            assert takes(name, [0.0, 0.9])
            assert not takes(name, [0.9, 1.0])
            assert not takes(name, [-0.1, 0.9])
        else:
            assert accepted in ("text", "path", "mapping", "list", "as `optimizer`") or "below" in accepted, name
            continue
        checked += 1
    assert checked > 25


def takes(name: str, value: Any) -> bool:
    data: Any = value
    for part in reversed(name.split(".")):
        data = {part: data}
    try:
        from_mapping(TrainConfig, data)
    except ConfigError:
        return False
    return True


def test_every_flag_exists(capsys: pytest.CaptureFixture[str]) -> None:
    from agentic_gym.cli import main

    assert main(["train", "--help"]) == 0
    shown = capsys.readouterr().out
    for name in settings():
        flag = f"--{name}".replace("_", "-").replace(".settings", ".with")
        file_only = "file only" in settings()[name]["meaning"]
        assert (re.search(rf"{re.escape(flag)}[ .,\n]", shown) is not None) != file_only, flag


def test_what_a_resumed_run_may_change() -> None:
    (sentence,) = re.findall(r"Only these settings may differ: (.*?);", PAGE.read_text())
    assert set(re.findall(r"`(\w+)`", sentence)) == run_module._MAY_CHANGE


# Algorithms.


def described(part: Any) -> str:
    """A part by its class and what differs from the class's defaults."""
    if part is None:
        return ""
    changed = [
        f"{field.name}={getattr(part, field.name)!r}"
        for field in dataclasses.fields(part)
        if field.default is not dataclasses.MISSING and getattr(part, field.name) != field.default
    ]
    return type(part).__name__ + (f"({', '.join(changed)})" if changed else "")


def algorithm_tables() -> list[list[dict[str, str]]]:
    return [table(PAGE, "Choosing the algorithm", which) for which in range(4)]


def test_parts_of_algorithms() -> None:
    rows = algorithm_tables()[0]
    assert [row["name"] for row in rows] == list(ALGORITHMS)
    for row in rows:
        algorithm = make_algorithm(row["name"])
        plan = algorithm.plan
        assert row["rows (tool-free)"] == f"{plan.group_size}" + (f" ({plan.tool_free})" if plan.tool_free else "")
        parts = {
            "reward": algorithm.shaping, "episode advantage": algorithm.advantage, "step credit": algorithm.segments,
            "token credit": algorithm.tokens,
        }  # fmt: skip
        for column, part in parts.items():
            assert row[column] == described(part), (row["name"], column)
        assert row["loss"] == described(algorithm.loss).removeprefix("LossVariant").strip("()"), row["name"]
        assert ("roles" in row["needs"]) == (row["step credit"] == "RoleCredit")


def test_parameters_of_algorithms() -> None:
    rows = algorithm_tables()[2]
    assert [row["name"] for row in rows] == list(ALGORITHMS)
    for row in rows:
        shown = [
            f"{p.name}={p.default.__name__ if callable(p.default) else repr(p.default)}"
            for p in inspect.signature(ALGORITHMS[row["name"]]).parameters.values()
            if p.kind is not p.VAR_KEYWORD
        ]
        assert row["parameters and defaults"].removesuffix(", and those of `eapo`").strip("`") == ", ".join(shown)


def test_parameters_of_the_loss() -> None:
    rows = {row["parameter"]: parse_yaml(row["default"]) for row in algorithm_tables()[3]}
    defaults = {field.name: field.default for field in dataclasses.fields(LossVariant)}
    assert rows == {**defaults, "dynamic_sampling": False}


# A run.


RULES: dict[str, dict[str, Any]] = {
    "eapo": {"group_size": 4, "tool_free": 1},
    "value_baseline": {"group_size": 4},
    "grpo": {"group_size": 4, "dynamic_sampling": True},
}


@pytest.fixture
def runs(policy: Any, make_env: Any, tasks: Any, tmp_path: Path) -> list[Run]:
    """Two rounds of three algorithms; the environment labels roles."""
    done = []
    for name, parameters in RULES.items():
        config = TrainConfig(
            output=tmp_path / name, sampling=Sampling(max_tokens=16), iterations=2, tasks_per_iteration=3,
            optimizer=OptimizerConfig(lr=1e-3, mini_batches=2, tokens_per_micro_batch=400),
        )  # fmt: skip
        with EnvPool(make_env) as pool, Run(config) as run:
            train(policy, pool, [task.id for task in tasks], make_algorithm(name, **parameters), config, run)
        done.append(run)
    return done


def test_metrics_and_files(runs: list[Run]) -> None:
    rows = {row["key"]: row for row in table(PAGE, "What to watch")}
    found = {run: {re.sub(r"^level .*/", "level L/", key) for row in run.metrics() for key in row} for run in runs}
    assert set().union(*found.values()) == set(rows)
    everywhere = set.intersection(*found.values())
    assert {key for key, row in rows.items() if row["only"] in ("dynamic_sampling", "a value head")} == (
        set(rows) - everywhere
    )
    named = " ".join(row["key"] for which in (1, 2) for row in table(PAGE, "What to watch", which))
    assert {re.sub("level [02]", "level L", key) for key in re.findall(r"(?:level )?\w+/\w+", named)} <= set(rows)

    patterns = [row["path"] for row in table(PAGE, "The run directory")]
    for run in runs:
        paths = [p.relative_to(run.folder).as_posix() for p in run.folder.rglob("*") if p.is_file()]
        for path in paths:
            assert any(fnmatch.fnmatch(path, pattern) for pattern in patterns), f"{path} is not on the page"
        for pattern in patterns:
            assert fnmatch.filter(paths, pattern), f"there is no {pattern}"


def test_configs_of_the_page() -> None:
    """Classes named here are those that the table covers."""
    hints = {kind for kind in typing.get_type_hints(TrainConfig).values() if dataclasses.is_dataclass(kind)}
    assert {EnvConfig, SFTConfig, OptimizerConfig, Sampling} <= hints
