import json
import math
import shutil
from collections import Counter

import pytest

from agentic_gym.envs.alfworld.alfred import read_trials, rebuild, rebuild_folder
from agentic_gym.envs.alfworld.engine import FastEngine
from agentic_gym.envs.alfworld.game import Game
from agentic_gym.envs.alfworld.game_file import GameFileError
from agentic_gym.envs.alfworld.rooms import UNSEEN_ROOMS, load_rooms, type_of
from agentic_gym.envs.alfworld.scene import identifier
from agentic_gym.envs.alfworld.tasks import alfworld_tasks


@pytest.fixture(scope="module")
def rebuilt(alfworld_data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("alfworld")
    return folder, rebuild_folder(alfworld_data, folder, ("valid_seen", "valid_unseen"))


def test_nearly_all_validation_trials_become_games(rebuilt):
    _, report = rebuilt
    assert report == {
        "valid_seen": Counter({"rebuilt": 184, "already done at the start": 3}),
        "valid_unseen": Counter({"rebuilt": 186, "already done at the start": 6}),
    }


def test_rebuilt_games_are_called_so_and_are_in_the_usual_layout(rebuilt):
    folder, _ = rebuilt
    tasks = alfworld_tasks(folder, split="valid_unseen")
    assert "rebuilt from ALFRED" in repr(tasks)
    assert len(tasks) == 186
    assert tasks[0].id.startswith("valid_unseen/")
    assert alfworld_tasks(folder / "json_2.1.1", split="valid_unseen") == tasks
    assert {int(task.id.split("/")[1].rpartition("-")[2]) for task in tasks} <= UNSEEN_ROOMS


def test_a_rebuilt_game_keeps_the_peoples_sentences(rebuilt, alfworld_data):
    folder, _ = rebuilt
    trial = next(read_trials(alfworld_data, "valid_seen"))
    beside = json.loads((folder / "json_2.1.1" / "valid_seen" / trial.name / "traj_data.json").read_text())
    assert [a["task_desc"] for a in beside["turk_annotations"]["anns"]] == trial.sentences
    assert beside["task_type"] == trial.task_type


def test_what_the_plan_picks_up_lies_where_the_plan_says(alfworld_data):
    right = total = 0
    for trial in read_trials(alfworld_data, "valid_unseen"):
        room = load_rooms()[trial.room]
        problem = rebuild_or_none(trial)
        if problem is None:
            continue
        for step in trial.plan:
            if step.get("action") == "PickupObject" and "coordinateReceptacleObjectId" in step:
                kind, numbers = step["coordinateReceptacleObjectId"]
                spot = (numbers[0] / 4, numbers[4] / 4, numbers[2] / 4)
                homes = [r for r in room.receptacles if type_of(r) == kind]
                best = min(homes, key=lambda r: math.dist([float(n) for n in r.split("|")[1:4]], spot), default=None)
                total += 1
                right += best is not None and place_of(problem, step["objectId"]) == best
    assert total > 150
    assert right / total > 0.97


def rebuild_or_none(trial):
    try:
        return rebuild(trial, "valid_unseen").data["pddl_problem"]
    except ValueError:
        return None


def place_of(problem, name):
    start = f"(inReceptacle {identifier(name)} "
    found = [line for line in problem.splitlines() if line.startswith(start)]
    readable = found[0].removeprefix(start).rstrip(")") if found else ""
    return readable.replace("_bar_", "|").replace("_minus_", "-").replace("_plus_", "+").replace("_dot_", ".")


def test_alfreds_own_folders_give_the_same_games(alfworld_data, tmp_path):
    trial = next(read_trials(alfworld_data, "valid_seen"))
    path = tmp_path / "json_2.1.0" / "valid_seen" / trial.name / "traj_data.json"
    path.parent.mkdir(parents=True)
    data = {
        "task_type": trial.task_type,
        "pddl_params": trial.params,
        "scene": {
            "scene_num": trial.room,
            "init_action": trial.start,
            "object_poses": [
                {"objectName": f"{kind}_ab12", "position": dict(zip("xyz", position))} for kind, position in trial.poses
            ],
        },
        "turk_annotations": {"anns": [{"task_desc": sentence} for sentence in trial.sentences]},
        "plan": {"high_pddl": [{"planner_action": step} for step in trial.plan]},
    }
    path.write_text(json.dumps(data))
    assert list(read_trials(tmp_path, "valid_seen")) == [trial]
    assert rebuild(trial, "valid_seen") == rebuild(next(read_trials(tmp_path, "valid_seen")), "valid_seen")
    path.write_text("{}")
    with pytest.raises(GameFileError, match="traj_data"):
        list(read_trials(tmp_path, "valid_seen"))


def test_rebuilt_games_are_won_by_their_walkthrough(rebuilt):
    folder, _ = rebuilt
    for path in sorted((folder / "json_2.1.1").rglob("game.tw-pddl"))[::6]:
        engine = FastEngine(Game.load(path))
        assert [engine.step(command).won for command in engine.game.walkthrough][-1]


def test_bad_sources_are_named(tmp_path, alfworld_data):
    with pytest.raises(GameFileError, match="valid_seen"):
        list(read_trials(tmp_path, "valid_seen"))
    shutil.copy(alfworld_data / "valid_seen.jsonl.gz", tmp_path / "valid_seen.jsonl.gz")
    whole = (tmp_path / "valid_seen.jsonl.gz").read_bytes()
    (tmp_path / "valid_seen.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(GameFileError, match=r"valid_seen.jsonl.gz: broken"):
        list(read_trials(tmp_path, "valid_seen"))
