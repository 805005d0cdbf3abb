"""RecordEpisodes: every episode is one line that reads back the same."""

import json
import multiprocessing
from pathlib import Path

import gymnasium as gym
import pytest

from agentic_gym.episodes import Episode
from agentic_gym.roles import Role
from agentic_gym.wrappers import RecordEpisodes, RoleLabels, ToolBudget, ToolFree
from agentic_gym.wrappers.record_episodes import append_episodes
from agentic_gym.wrappers.tool_free import NOTICE
from tests.toys import Foreign, Sums


def test_what_is_recorded(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "episodes.jsonl"
    env = RecordEpisodes(RoleLabels(ToolFree(ToolBudget(Sums(), 2))), path)
    env.reset(seed=0, options={"task": "sum-3", "tool_free": True})
    env.step("<python>1</python>")
    env.step("<answer>6</answer>")
    (episode,) = RecordEpisodes.load(path)
    assert (episode.task_id, episode.level, episode.observation, episode.tool_free) == (
        "sum-3", 1, "What is 3 + 3?", True,
    )  # fmt: skip
    assert episode.base_instructions == f"{Sums().instructions}\nYou may call tools at most 2 times."
    assert episode.instructions == f"{Sums().instructions}\n{NOTICE}"
    assert [step.kind for step in episode.steps] == ["tool", "answer"]
    assert episode.steps[0].tool is not None
    assert episode.steps[0].tool.status == "refused"
    assert [step.role for step in episode.steps] == [Role.EXPLORATION, Role.DECISIVE]
    assert (episode.success, episode.outcome, episode.score, episode.tool_calls) == (True, "solved", 1.0, 0)
    assert type(episode.steps[0].action) is str


def test_an_abandoned_episode_is_recorded_and_an_unstarted_one_is_not(tmp_path: Path) -> None:
    env = RecordEpisodes(Sums(), tmp_path / "e.jsonl")
    env.reset(seed=0)
    env.reset(seed=0)
    env.step("hm")
    env.reset(seed=0)
    env.step("hm")
    env.close()
    env.close()
    assert [(e.outcome, len(e.steps)) for e in RecordEpisodes.load(env.path)] == [("abandoned", 1), ("abandoned", 1)]


def test_an_existing_file_is_continued(tmp_path: Path) -> None:
    for _ in range(2):
        env = RecordEpisodes(Sums(), tmp_path / "e.jsonl")
        env.reset(seed=0)
        env.step("<answer>1</answer>")
        env.close()
    assert len(RecordEpisodes.load(tmp_path / "e.jsonl")) == 2


def test_hostile_text_stays_in_its_line(tmp_path: Path) -> None:
    env = RecordEpisodes(Foreign(), tmp_path / "e.jsonl")
    env.reset()
    texts = ["a\nb\r\n", "\u2028\u0085\0", "caf\u00e9 \U0001f642", '"}', "\ud800"]
    for text in texts:
        env.step(text)
    env.step("stop")
    (episode,) = RecordEpisodes.load(env.path)
    assert [step.action for step in episode.steps] == [*texts, "stop"]


@pytest.mark.parametrize("line", ["{", "[]", "{}", '{"task_id": "t"}', "null", '{"task_id": "t", "steps": 3}'])
def test_a_broken_line_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "e.jsonl"
    append_episodes(path, [Episode("t", "", "")])
    with path.open("a") as file:
        file.write(line + "\n")
    with pytest.raises(ValueError, match=r"e\.jsonl, line 2 is not a recorded episode"):
        RecordEpisodes.load(path)


def test_empty_lines_are_no_episodes(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    append_episodes(path, [Episode("t", "", "")])
    path.write_text(path.read_text() + "\n")
    assert RecordEpisodes.load(path) == [Episode("t", "", "")]


def _write(path: Path, name: str) -> None:
    for _ in range(30):
        append_episodes(path, [Episode(name, name * 40_000, "")])


def test_several_processes_write_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_write, args=(path, name)) for name in "abc"]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert sorted(line["task_id"] for line in lines) == sorted("abc" * 30)
    assert all(set(line["instructions"]) == {line["task_id"]} for line in lines)


def test_the_spec_rebuilds_the_wrapper(tmp_path: Path) -> None:
    env = RecordEpisodes(gym.make("toys/Sums-v0"), tmp_path / "e.jsonl")
    again = gym.make(env.spec)
    assert isinstance(again, RecordEpisodes)
    assert again.path == env.path


@pytest.mark.parametrize("cut", [1, 2, 20, 60])
def test_a_file_whose_writer_was_killed_is_read_and_continued(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "e.jsonl"
    append_episodes(path, [Episode("one", "", "")])
    append_episodes(path, [Episode("two", "", "caf\u00e9 \u5317\u4eac" * 20)])
    data = path.read_bytes()
    path.write_bytes(data[:-cut])
    assert [e.task_id for e in RecordEpisodes.load(path)] == ["one", "two"][: 2 if cut == 1 else 1]
    append_episodes(path, [Episode("three", "", "")])
    assert [e.task_id for e in RecordEpisodes.load(path)][-1] == "three"
    assert len(RecordEpisodes.load(path)) == (3 if cut == 1 else 2)
