"""A person plays."""

import io
from pathlib import Path

import pytest

from agentic_gym.cli import main
from agentic_gym.wrappers import RecordEpisodes


def typed(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))


def test_a_game_from_first_to_last(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    typed(monkeypatch, "\nhm\n<python>\nx = 6 * 2\nprint(x)</python>\n<answer>10</answer>\n")
    record = tmp_path / "e.jsonl"
    assert main(["play", "MathTools", "--task", "add-1-9", "--record", str(record)]) == 0
    out = capsys.readouterr().out
    assert "What is 1 + 9?" in out
    assert "Invalid action: No action found." in out
    assert "<result>12</result>" in out
    assert "solved  score 1  calls 1  turns 3" in out
    (episode,) = RecordEpisodes.load(record)
    assert [step.kind for step in episode.steps] == ["malformed", "tool", "answer"]
    assert episode.steps[1].action == "<python>\nx = 6 * 2\nprint(x)</python>"


def test_leaving_early(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    typed(monkeypatch, "hm\n")
    assert main(["play", "MathTools", "--seed", "0"]) == 0
    assert "left before the end" in capsys.readouterr().out


def test_limits(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    typed(monkeypatch, "<python>print(1)</python>\n")
    assert main(["play", "MathTools", "--task", "0", "--budget", "0"]) == 0
    out = capsys.readouterr().out
    assert "You may call tools at most 0 times." in out
    assert "refused" in out
    typed(monkeypatch, "<python>print(1)</python>\n")
    assert main(["play", "MathTools", "--task", "0", "--budget", "0", "--tool-free"]) == 0
    out = capsys.readouterr().out
    assert "tools are forbidden" in out
    assert "You may call tools" not in out
    assert "refused" in out


def test_admissible_actions_are_shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    typed(monkeypatch, "right\nright\nright\n")
    assert main(["play", "tests.toys:toys/Corridor-v0", "--seed", "0"]) == 0
    out = capsys.readouterr().out
    assert "right" in out
    assert "solved" in out
