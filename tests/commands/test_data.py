"""data tells where files go, and fills a folder when asked."""

import pytest

from agentic_gym.cli import main


def test_what_there_is(capsys):
    assert main(["data"]) == 0
    assert "alfworld" in capsys.readouterr().out


def test_where_task_files_go(capsys):
    assert main(["data", "tasks"]) == 0
    shown = capsys.readouterr().out
    assert "AGENTIC_GYM_DATA" in shown
    assert "openai/gsm8k" in shown
    assert main(["data", "webshop"]) == 0
    assert "WEBSHOP_DATA" in capsys.readouterr().out


def test_alfworld_without_flags_says_where(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path))
    assert main(["data", "alfworld"]) == 0
    assert str(tmp_path) in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


def test_alfworld_generates(capsys, tmp_path):
    assert main(["data", "alfworld", "--out", str(tmp_path), "--generate", "2"]) == 0
    assert len(list(tmp_path.rglob("game.tw-pddl"))) == 6


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["data", "alfword"], 2, "Did you mean 'alfworld'"),
        (["data", "alfworld", "--form", "x"], 2, "--from"),
        (["data", "alfworld", "--generate", "-1"], 2, "generate must be at least 0, got -1"),
    ],
)
def test_errors(arguments, status, message, capsys):
    assert main(arguments) == status
    assert message in capsys.readouterr().err
