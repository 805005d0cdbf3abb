"""The command line: help, errors in one clear line, exit codes, interruption."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from agentic_gym.cli import COMMANDS, main
from agentic_gym.commands.bench import BENCHMARKS
from agentic_gym.commands.data import KINDS
from agentic_gym.commands.serve import SERVICES

ROOT = Path(__file__).resolve().parents[1]


def start(arguments: Sequence[str], **kwargs: object) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "agentic_gym.cli", *arguments],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT, **kwargs,  # type: ignore[call-overload]
    )  # fmt: skip


def test_the_overview_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], ["--help"], ["-h"]):
        assert main(arguments) == 0
        out = capsys.readouterr().out
        assert all(f"  {verb} " in out for verb in COMMANDS)


@pytest.mark.parametrize("verb", COMMANDS)
def test_help_shows_an_example(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, "--help"]) == 0
    out = capsys.readouterr().out
    assert f"Example: agentic-gym {verb}" in out
    assert f"usage: agentic-gym {verb}" in out


ENTRIES = [
    *([verb] for verb in COMMANDS if verb not in ("bench", "serve", "data")),
    *(["bench", name] for name in BENCHMARKS),
    *(["serve", name] for name in SERVICES),
    *(["data", name] for name in KINDS),
]


@pytest.mark.parametrize("entry", ENTRIES, ids=" ".join)
def test_every_entry_has_the_same_kind_of_help(entry: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*entry, "--help"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"usage: agentic-gym {' '.join(entry)} [-h]")
    assert " options " in out  # the head of a box; argparse would write "options:"
    assert "options:" not in out
    assert f"Example: agentic-gym {entry[0]}" in out
    assert main([*entry, "--no-such-flag"]) == 2


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("agentic-gym 0.")


def test_a_model_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    assert main(["rollout", "MathTools", "--policy", "./no-such-model"]) == 2
    assert "there is no model at no-such-model: give a directory" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["pley"], 2, "there is no command 'pley'. Did you mean 'play'?"),
        (["zzzz"], 2, "The commands: list, play"),
        (["check", "MathTols"], 2, "there is no environment 'MathTols'. Did you mean 'MathTools'?"),
        (["check", "tests.toys:toys/Nope-v0"], 2, "`Nope` doesn't exist in namespace toys"),
        (["check", "zzzz"], 2, "`agentic-gym list` shows all"),
        (["check", "MathTools", "--with", "levls=[0]"], 2, "takes no argument 'levls'. Did you mean 'levels'?"),
        (["check", "MathTools", "--with", "levels"], 2, "'levels' is no assignment: write NAME=VALUE"),
        (["check", "MathTools", "--with", "levels=[0"], 2, "the value of 'levels=[0' is not valid YAML"),
        (["check", "MathTools", "--with", "levels=[77]"], 2, "has a level in [77]; it has [0, 1, 2, 3, 4, 5]"),
        (["view", "no/such/file.jsonl"], 2, "there is no file of episodes at no/such/file.jsonl: give a JSONL file"),
        (["rollout", "MathTools", "--episodes", "0"], 2, "must be at least 1, got 0"),
        (["rollout", "MathTools", "--policy", "server"], 2, "Add --model NAME"),
        (["play", "MathTools", "--task", "no-such-task"], 2, "No task 'no-such-task'"),
    ],
)
def test_errors_are_one_clear_line(
    arguments: list[str], status: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == status
    err = capsys.readouterr().err
    assert message in err
    assert err.startswith("agentic-gym")
    assert len(err.splitlines()) == 1
    assert "Traceback" not in err


def test_a_wrong_flag_names_the_right_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rollout", "MathTools", "--epsodes", "3"]) == 2
    assert "--episodes" in capsys.readouterr().err
    assert main(["rollout"]) == 2


def test_debug_shows_the_traceback() -> None:
    with pytest.raises(ValueError, match="there is no environment"):
        main(["check", "zzzz", "--debug"])


def test_a_fault_of_the_program_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr("agentic_gym.commands.check.check_text_env", broken)
    assert main(["check", "MathTools"]) == 1
    assert "ZeroDivisionError: division by zero (unexpected; --debug shows where)" in capsys.readouterr().err


@pytest.mark.parametrize(("number", "word"), [(signal.SIGINT, "interrupted"), (signal.SIGTERM, "terminated")])
def test_a_signal_ends_it_without_a_traceback(number: signal.Signals, word: str) -> None:
    process = start(
        ["play", "MathTools", "--with", "levels=[0]"],
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert process.stdout is not None
    while "What is" not in process.stdout.readline() and process.poll() is None:
        pass
    time.sleep(0.5)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert "Traceback" not in err
    assert err.strip().endswith(f"agentic-gym play: {word}")


def test_a_reader_that_leaves_is_no_error(tmp_path: Path) -> None:
    assert (
        main(["rollout", "MathTools", "--policy", "scripted", "--episodes", "40", "--out", str(tmp_path / "e.jsonl")])
        == 0
    )
    path = tmp_path / "e.jsonl"
    path.write_text(path.read_text() * 50)
    process = start(["view", str(path)])
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr is not None
    err = process.stderr.read()
    assert process.wait(timeout=60) == 1
    assert err == ""


def test_help_is_fast() -> None:
    began = os.times()
    subprocess.run([sys.executable, "-m", "agentic_gym.cli", "--help"], check=True, capture_output=True, cwd=ROOT)
    ended = os.times()
    assert ended.children_user - began.children_user < 1.0
