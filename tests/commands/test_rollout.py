"""A policy plays, and the file holds what it did."""

from pathlib import Path

import pytest

from agentic_gym.cli import main
from agentic_gym.wrappers import RecordEpisodes
from tests.policies.fake_server import chat, serving


def played(path: Path, *flags: str) -> list[tuple[str, list[str]]]:
    assert main(["rollout", "MathTools", "--episodes", "20", "--out", str(path), *flags]) == 0
    return [(e.task_id, [step.action for step in e.steps]) for e in RecordEpisodes.load(path)]


def test_the_scripted_expert(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    episodes = played(tmp_path / "e.jsonl", "--policy", "scripted", "--roles")
    assert len(episodes) == len({task for task, _ in episodes}) == 20
    out = capsys.readouterr().out
    assert "1.000" in out
    assert all(step.role is not None for e in RecordEpisodes.load(tmp_path / "e.jsonl") for step in e.steps)
    assert len({e.level for e in RecordEpisodes.load(tmp_path / "e.jsonl")}) > 2


def test_the_seed_decides(tmp_path: Path) -> None:
    runs = [played(tmp_path / f"{i}.jsonl", "--seed", seed, "--parallel", n) for i, (seed, n) in
            enumerate([("1", "3"), ("1", "20"), ("2", "20")])]  # fmt: skip
    assert runs[0] == runs[1] != runs[2]


def test_more_episodes_than_tasks(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    assert main(["rollout", "tests.toys:toys/Corridor-v0", "--episodes", "7", "--out", str(path)]) == 0
    tasks = [episode.task_id for episode in RecordEpisodes.load(path)]
    assert len(tasks) == 7
    assert set(tasks[:3]) == set(tasks[3:6]) == {"corridor-0", "corridor-1", "corridor-2"}


def test_limits_reach_the_environment(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    flags = ["--policy", "scripted", "--episodes", "3", "--out", str(path)]
    assert main(["rollout", "MathTools", *flags, "--budget", "0", "--with", "max_turns=2"]) == 0
    assert [(e.tool_calls, e.outcome) for e in RecordEpisodes.load(path)] == [(0, "budget")] * 3
    assert main(["rollout", "MathTools", *flags, "--tool-free", "--append"]) == 0
    assert [e.tool_free for e in RecordEpisodes.load(path)] == [False] * 3 + [True] * 3


def test_an_existing_file_is_not_touched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "e.jsonl"
    path.write_text("mine")
    assert main(["rollout", "MathTools", "--out", str(path)]) == 2
    assert "add --append to continue it" in capsys.readouterr().err
    assert path.read_text() == "mine"


def test_an_environment_without_an_expert(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rollout", "tests.toys:toys/Corridor-v0", "--policy", "scripted"]) == 2
    assert "Corridor has no scripted expert; there is one for MathTools" in capsys.readouterr().err


def test_a_model_that_is_no_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    assert main(["rollout", "MathTools", "--policy", str(tmp_path)]) == 2
    assert str(tmp_path) in capsys.readouterr().err


def test_a_server(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    with serving() as server:
        server.answer = lambda *_: chat("<answer>1</answer>")
        flags = ["--policy", "server", "--url", server.url, "--model", "m", "--episodes", "3", "--out", str(path)]
        assert main(["rollout", "MathTools", *flags]) == 0
        assert {request["model"] for request in server.requests} == {"m"}
    assert [[step.action for step in e.steps] for e in RecordEpisodes.load(path)] == [["<answer>1</answer>"]] * 3


def test_no_server_is_one_clear_line(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--policy", "server", "--url", "http://127.0.0.1:9/v1", "--model", "m", "--episodes", "2"]
    assert main(["rollout", "MathTools", *flags]) == 1
    err = capsys.readouterr().err
    assert "http://127.0.0.1:9" in err
    assert "Traceback" not in err


def test_a_folder_that_cannot_be_written_is_said_before_playing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr("agentic_gym.commands.rollout.recorded_rollout", lambda *_, **__: pytest.fail("it played"))
    assert main(["rollout", "MathTools", "--out", str(tmp_path / "file" / "e.jsonl")]) == 2
    assert "file" in capsys.readouterr().err
