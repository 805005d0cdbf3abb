"""Recorded episodes in the terminal, hostile ones too."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from agentic_gym.cli import main
from agentic_gym.commands.transcript import ROLE_STYLES, printable, show_episode
from agentic_gym.episodes import Episode, Step, ToolEvent
from agentic_gym.roles import Role
from agentic_gym.wrappers.record_episodes import append_episodes

CALL = ToolEvent("python", "1+1", "ok", 0.25)
WASTED = Step("hm", "Invalid", 0.0, "malformed", None, Role.NO_PROGRESS)
EPISODES = [
    Episode(
        "sum-1", "Add.", "What is 1 + 1?", level=0, outcome="solved", success=True, score=1.0,
        steps=[
            Step("<python>1+1</python>", "<result>2</result>", 0.0, "tool", CALL, Role.DECISIVE),
            Step("[bold]<answer>2</answer>[/bold]", "Right.", 1.0, "answer", None, Role.DECISIVE),
        ],
    ),
    Episode("sum-2", "Add.", "What?", outcome="turn_limit", steps=[WASTED]),
    Episode("sum-3", "Add.", "What?", outcome="masked", error="the tool died", tool_free=True),
]  # fmt: skip


@pytest.fixture
def file(tmp_path: Path) -> str:
    append_episodes(tmp_path / "e.jsonl", EPISODES)
    return str(tmp_path / "e.jsonl")


def test_everything_is_shown(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["view", file]) == 0
    out = capsys.readouterr().out
    for text in (
        "1  sum-1  level 0", "What is 1 + 1?", "decisive", "tool python ok 0.25 s", "<result>2</result>", "reward 1",
        "[bold]<answer>2</answer>[/bold]", "solved  score 1  calls 1  turns 2", "no progress", "malformed", "turn_limit",
        "tool-free", "the tool died", "3 of 3 episodes",
    ):  # fmt: skip
        assert text in out
    assert "Add." not in out
    assert "\x1b" not in out  # no colours where there is no terminal


@pytest.mark.parametrize(
    ("flags", "shown"),
    [
        (["--only", "solved"], "1 of 3"),
        (["--only", "failed"], "1 of 3"),
        (["--only", "masked"], "1 of 3"),
        (["--task", "sum-2"], "1 of 3"),
        (["--limit", "2"], "2 of 3"),
    ],
)
def test_choosing(file: str, flags: list[str], shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["view", file, *flags]) == 0
    assert f"{shown} episodes" in capsys.readouterr().out


def test_instructions_on_demand(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["view", file, "--instructions"]) == 0
    assert "Add." in capsys.readouterr().out


def test_a_broken_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "broken.jsonl"
    path.write_text("{\n")
    assert main(["view", str(path)]) == 2
    assert "broken.jsonl, line 1 is not a recorded episode" in capsys.readouterr().err


def test_every_role_has_a_colour() -> None:
    assert set(ROLE_STYLES) == set(Role)
    assert len(set(ROLE_STYLES.values())) == 4


@given(st.text(alphabet=st.characters(), max_size=60))
def test_a_model_cannot_drive_the_terminal(text: str) -> None:
    episode = Episode(
        f"t{text}",
        text,
        text,
        outcome="failed",
        error=text,
        steps=[Step(text, text, 0.0, "tool", ToolEvent(text, text, "ok"))],
    )
    console = Console(force_terminal=False, width=200, record=True, file=open("/dev/null", "w", encoding="utf-8"))  # noqa: SIM115
    show_episode(console, episode, number=1, instructions=True)
    console.file.close()
    assert not set(printable(text)) & {chr(i) for i in [*range(9), *range(11, 32), *range(127, 160)]}
    assert "\x1b" not in console.export_text(styles=False)


def test_hostile_fields_of_a_foreign_file_are_harmless(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = "\x1b]0;owned\x07[red]"
    step = Step(bad, bad, 0.0, bad, ToolEvent(bad, bad, bad))  # type: ignore[arg-type]
    append_episodes(tmp_path / "e.jsonl", [Episode(bad, bad, bad, bad, outcome=bad, error=bad, steps=[step])])
    assert main(["view", str(tmp_path / "e.jsonl"), "--instructions"]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\x07" not in out


def test_a_limit_below_one_is_refused(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["view", file, "--limit", "-1"]) == 2
    assert "--limit must be at least 1, got -1" in capsys.readouterr().err
