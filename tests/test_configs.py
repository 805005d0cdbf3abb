"""Configurations: strict files, overrides, and errors that name the nearest key."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_gym.configs import ConfigError, from_mapping, load_config, parse_yaml, to_yaml


@dataclass(frozen=True)
class Sampling:
    temperature: float = 1.0
    top_p: float = 1.0

    def __post_init__(self) -> None:
        if self.temperature < 0:
            raise ValueError(f"temperature must be at least 0, got {self.temperature}")


@dataclass(frozen=True)
class Config:
    model: str = "tiny"
    lr: float = 1e-4
    steps: int = 100
    resume: bool = False
    algorithm: Literal["grpo", "eapo"] = "grpo"
    levels: tuple[int, ...] = (0, 1)
    pair: tuple[int, str] = (1, "a")
    out: Path = Path("runs")
    seed: int | None = None
    sampling: Sampling = field(default_factory=Sampling)
    extra: dict[str, int | float | bool | str | None] = field(default_factory=dict)


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "c.yaml"
    path.write_text(text)
    return path


def test_defaults_file_and_flags_in_this_order(tmp_path: Path) -> None:
    path = written(tmp_path, "lr: 1e-3\nsteps: 5\nsampling: {temperature: 0.5}\nlevels: [3]\nout: x/y\nseed: 4\n")
    config = load_config(Config, path, ["--steps", "7", "--sampling.top-p", "0.9"])
    assert config == Config(
        lr=1e-3, steps=7, levels=(3,), out=Path("x/y"), seed=4, sampling=Sampling(temperature=0.5, top_p=0.9)
    )
    assert load_config(Config) == load_config(Config, written(tmp_path, "# nothing\n")) == Config()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("stpes: 3", "unknown key 'stpes'. Did you mean 'steps'?"),
        ("sampling: {temprature: 1}", "unknown key 'sampling.temprature'. Did you mean 'temperature'?"),
        ("zzz: 3", "unknown key 'zzz'. Known keys: model, lr"),
        ("steps: 1.5", "steps: needs a whole number, got 1.5"),
        ("steps: true", "steps: needs a whole number, got True"),
        ("steps: '3'", "steps: needs a whole number, got '3'"),
        ("lr: fast", "lr: needs a number, got 'fast'"),
        ("resume: 1", "resume: needs true or false, got 1"),
        ("model: 3", "model: needs a text, got 3"),
        ("levels: 3", "levels: needs a list, got 3"),
        ("levels: abc", "levels: needs a list, got 'abc'"),
        ("levels: [1, x]", "levels: needs a whole number, got 'x'"),
        ("pair: [1]", "pair: needs 2 values, got 1"),
        ("algorithm: ppo", "algorithm: needs one of 'grpo', 'eapo'; got 'ppo'"),
        ("sampling: {temperature: -1}", "sampling: temperature must be at least 0, got -1"),
        ("sampling: 3", "sampling"),
        ("extra: {a: [1]}", "extra[a]: needs one of int, float, bool, str, null; got [1]"),
        ("extra: 3", "extra: needs keys and values, got 3"),
        ("- 1", "must hold keys and values"),
        ("a: [", "is not valid YAML"),
        ("a: !!python/object:os.system x", "is not valid YAML"),
    ],
)
def test_a_wrong_file_is_one_clear_error(tmp_path: Path, text: str, message: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load_config(Config, path)
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        from_mapping(Config, {"stpes": 1, "lr": "x", "sampling": {"top_q": 1}})
    assert len(str(caught.value).splitlines()) == 3


@pytest.mark.parametrize("text", ["1e-4", "1E5", "-2e+3", "1.5e-3", "1.0e4"])
def test_exponents_are_numbers(text: str) -> None:
    assert parse_yaml(text) == float(text)
    assert parse_yaml(f"'{text}'") == text


def test_a_missing_key_is_named() -> None:
    @dataclass
    class Needs:
        path: str

    with pytest.raises(ConfigError, match="key 'path' is missing"):
        from_mapping(Needs, {})


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"none\.yaml"):
        load_config(Config, tmp_path / "none.yaml")


@pytest.mark.parametrize(
    ("flags", "hint"),
    [
        (["--stpes", "3"], "--steps"),
        (["--sampling.temprature", "3"], "--sampling.temperature"),
        (["--lr", "x"], "--lr"),
    ],
)
def test_a_wrong_flag_names_the_right_one(flags: list[str], hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        load_config(Config, overrides=flags, prog="agentic-gym train")
    assert caught.value.code == 2
    assert hint in capsys.readouterr().err


@given(
    st.builds(
        Config, model=st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=9), lr=st.floats(0, 1),
        steps=st.integers(), resume=st.booleans(), algorithm=st.sampled_from(["grpo", "eapo"]),
        levels=st.lists(st.integers()).map(tuple), seed=st.none() | st.integers(),
        sampling=st.builds(Sampling, temperature=st.floats(0, 2)), extra=st.dictionaries(
            st.text("abc"), st.none() | st.booleans() | st.integers() | st.floats(0, 1) | st.text("1e-4.+ab:", max_size=5)
        ),
    )
)  # fmt: skip
def test_yaml_reads_back_equal(config: Config) -> None:
    again = from_mapping(Config, parse_yaml(to_yaml(config)))
    assert again == config
    assert [type(value) for value in again.extra.values()] == [type(value) for value in config.extra.values()]
