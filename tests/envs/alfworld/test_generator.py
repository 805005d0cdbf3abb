import hashlib
import os
import random
import subprocess
import sys
from collections import Counter

import pytest

from agentic_gym.envs.alfworld.engine import FastEngine
from agentic_gym.envs.alfworld.expert import next_command
from agentic_gym.envs.alfworld.game import Game
from agentic_gym.envs.alfworld.generator import SPLITS, _tasks, draw_task, generate, write_games
from agentic_gym.envs.alfworld.goals import TASK_TYPES
from agentic_gym.envs.alfworld.memory import Memory
from agentic_gym.envs.alfworld.planner import distance
from agentic_gym.envs.alfworld.rooms import UNSEEN_ROOMS

TRANSCRIPTS = """
import hashlib, random
from agentic_gym.envs.alfworld.engine import FastEngine
from agentic_gym.envs.alfworld.game import Game
from agentic_gym.envs.alfworld.generator import SPLITS, generate
digest = hashlib.sha256()
for seed in range(100):
    content = generate(seed, split=SPLITS[seed % 3]).data
    engine, rng = FastEngine(Game.load(content)), random.Random(seed)
    frame = engine.reset()
    digest.update(repr((content, frame)).encode())
    for _ in range(20):
        frame = engine.step(rng.choice(frame.admissible))
        digest.update(repr(frame).encode())
print(digest.hexdigest())
"""


def check_game(seed: int, split: str, kind: str) -> None:
    game = generate(seed, split=split, task_type=kind)
    engine = FastEngine(Game.load(game.data))
    assert engine.game.goal.task_type == kind == game.trajectory["task_type"]
    assert len(engine.game.walkthrough) == distance(engine.state) > 0
    frames = [engine.step(command) for command in engine.game.walkthrough]
    assert [frame.won for frame in frames] == [False] * (len(frames) - 1) + [True]
    for memory in (None, Memory()):
        engine.reset()
        for _ in range(150):
            frame = engine.step(next_command(engine, memory))
            if memory is not None:
                memory.observe(engine.last_action, engine.state)
            if frame.won:
                break
        assert frame.won, (seed, split, kind, memory)


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("kind", TASK_TYPES)
def test_games_are_won_by_their_walkthrough_and_by_the_experts(split, kind):
    for seed in range(6):
        check_game(seed, split, kind)


@pytest.mark.slow
def test_a_thousand_games_are_won_by_their_walkthrough_and_by_the_experts():
    for i in range(1000):
        check_game(1000 + i, SPLITS[i % 3], TASK_TYPES[i // 3 % 6])


def test_splits_share_rooms_and_tasks_as_they_should():
    tasks, rooms = {split: set() for split in SPLITS}, {split: set() for split in SPLITS}
    for split in SPLITS:
        for kind in TASK_TYPES:
            for number, goals in _tasks(split, kind):
                rooms[split].add(number)
                tasks[split].update((number, goal) for goal in goals)
    assert rooms["valid_seen"] <= rooms["train"]
    assert rooms["valid_unseen"] <= UNSEEN_ROOMS
    assert not rooms["valid_unseen"] & (rooms["train"] | rooms["valid_seen"])
    assert not tasks["valid_seen"] & tasks["train"]
    assert len(rooms["train"]) == 108
    assert len(tasks["train"]) > 5 * len(tasks["valid_seen"]) > 1000


def test_some_receptacles_share_a_location_and_some_things_lie_in_none():
    games = [Game.load(generate(seed).data) for seed in range(40)]
    assert any(len(rs) > 1 for game in games for rs in game.receptacles_at)
    placed = Counter(o for game in games for inside in game.start_contents for o in inside)
    assert sum(len(game.objects) for game in games) > sum(placed.values())
    assert any(inside for game in games for inside in game.nested.values())


def test_the_sketch_is_the_task_of_the_game():
    for seed in range(30):
        goal, sentence = draw_task(seed, split="valid_unseen")
        game = generate(seed, split="valid_unseen")
        assert Game.load(game.data).task == sentence
        assert game.trajectory["pddl_params"]["object_target"] == goal.object_type


def test_two_processes_with_other_hash_seeds_agree():
    def run(seed: str) -> str:
        env = {**os.environ, "PYTHONHASHSEED": seed}
        return subprocess.run(
            [sys.executable, "-c", TRANSCRIPTS], env=env, capture_output=True, text=True, check=True
        ).stdout

    assert run("0") == run("4242")


def test_the_global_generators_are_left_alone():
    random.seed(1)
    before = random.getstate()
    generate(9)
    assert random.getstate() == before


def test_written_games_load_from_their_folder(tmp_path):
    paths = list(write_games(tmp_path, 6, split="valid_seen", seed=50))
    assert [Game.load(path).goal.task_type for path in paths] == list(TASK_TYPES)
    assert all((path.parent / "traj_data.json").is_file() for path in paths)
    digests = {hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}
    assert len(digests) == 6


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="'test'"):
        generate(0, split="test")
    with pytest.raises(ValueError, match="'juggle'"):
        generate(0, task_type="juggle")
