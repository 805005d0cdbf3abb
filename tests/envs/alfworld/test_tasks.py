import json

import pytest

from agentic_gym.envs.alfworld.game_file import GameFileError
from agentic_gym.envs.alfworld.generator import generate, write_games
from agentic_gym.envs.alfworld.goals import TASK_TYPES
from agentic_gym.envs.alfworld.tasks import alfworld_tasks, generated_tasks, load_game, load_tasks
from agentic_gym.tasks import TaskSet


@pytest.fixture
def folder(tmp_path):
    for split in ("train", "valid_seen"):
        for _ in write_games(tmp_path / "json_2.1.1", 6, split=split):
            pass
    return tmp_path


def test_generated_tasks_cycle_through_the_types():
    tasks = generated_tasks(12, split="valid_seen", seed=5)
    assert [task.level for task in tasks] == [*TASK_TYPES, *TASK_TYPES]
    assert [load_game(task).task for task in tasks] == [task.prompt for task in tasks]
    assert tasks.content_hash == generated_tasks(12, split="valid_seen", seed=5).content_hash
    assert tasks.content_hash != generated_tasks(12, split="train", seed=5).content_hash


def test_a_folder_a_file_a_list_and_a_content_are_all_understood(folder):
    whole = load_tasks(folder / "json_2.1.1" / "train")
    files = sorted((folder / "json_2.1.1" / "train").rglob("game.tw-pddl"))
    assert len(whole) == len(files) == 6
    assert [load_game(task).task for task in load_tasks([str(file) for file in files])] == [t.prompt for t in whole]
    assert len(load_tasks(str(files[0]))) == 1
    assert load_game(load_tasks(json.loads(files[0].read_text()))[0]).task == whole[0].prompt
    assert load_tasks(whole) is whole


def test_the_data_folder_is_found_by_variable_and_the_hash_does_not_hang_on_it(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("ALFWORLD_DATA", str(folder))
    tasks = alfworld_tasks(split="train")
    assert [load_game(task).task for task in tasks] == [task.prompt for task in tasks]
    moved = folder.rename(tmp_path.parent / f"{tmp_path.name}-moved")
    monkeypatch.setenv("ALFWORLD_DATA", str(moved))
    assert alfworld_tasks(split="train").content_hash == tasks.content_hash


def test_a_wrong_data_folder_is_named_with_the_fix(tmp_path, monkeypatch):
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path / "wrong"))
    with pytest.raises(GameFileError, match=r"wrong.*ALFWORLD_DATA.*agentic-gym data alfworld"):
        alfworld_tasks()
    (tmp_path / "train").mkdir()
    with pytest.raises(GameFileError, match="no playable"):
        alfworld_tasks(tmp_path)
    with pytest.raises(ValueError, match="'test'"):
        alfworld_tasks(tmp_path, split="test")


def test_sliced_movable_and_unsolvable_games_of_a_folder_are_left_out(tmp_path):
    game = generate(1)
    for name in ("pick-1/a", "pick_Sliced-1/a", "pick_movable-1/a"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "game.tw-pddl").write_text(json.dumps(game.data))
    (tmp_path / "pick-1" / "b").mkdir()
    (tmp_path / "pick-1" / "b" / "game.tw-pddl").write_text(json.dumps({**game.data, "solvable": False}))
    assert load_tasks(tmp_path).ids == ("pick-1/a",)


def test_one_broken_file_in_a_folder_is_named(folder):
    path = next((folder / "json_2.1.1" / "train").rglob("game.tw-pddl"))
    path.write_text(path.read_text()[:1000])
    with pytest.raises(GameFileError, match=r"game\.tw-pddl.*cut off"):
        load_tasks(folder)


def test_a_game_that_cannot_be_won_is_refused():
    content = dict(generate(3, task_type="pick_and_place_simple").data)
    content["pddl_problem"] = "\n".join(
        line for line in content["pddl_problem"].splitlines() if "(pickupable" not in line
    )
    with pytest.raises(GameFileError, match="cannot be won"):
        load_game(load_tasks(content)[0])


def test_a_task_of_another_kind_is_refused():
    task = TaskSet.from_records([{"prompt": "1 + 1", "answer": "2"}])[0]
    with pytest.raises(GameFileError, match="names no game"):
        load_game(task)
