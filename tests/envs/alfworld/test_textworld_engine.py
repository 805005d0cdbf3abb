"""The real engine, in lock step with the fast one. Needs the extra `alfworld`."""

import random
import sys
from concurrent.futures import ThreadPoolExecutor

import gymnasium as gym
import pytest

from agentic_gym.envs.alfworld.engine import FastEngine
from agentic_gym.envs.alfworld.game import Game
from agentic_gym.envs.alfworld.generator import SPLITS, generate, write_games
from agentic_gym.envs.alfworld.goals import TASK_TYPES
from agentic_gym.envs.alfworld.tasks import generated_tasks
from agentic_gym.envs.alfworld.textworld_engine import TextWorldEngine
from tests.envs.alfworld.worlds import bent

ODD = ("", "  look \t", "HELP", "put mug 1 in/on desk 1", "go  to desk 1", "inventory.", "take", "dance", "> look")


@pytest.fixture(scope="module")
def engine():
    pytest.importorskip("alfworld", reason="needs agentic-gym[alfworld]")
    pytest.importorskip("fast_downward", reason="needs agentic-gym[alfworld]")
    return TextWorldEngine()


def same_walk(engine, content, seed, steps):
    """Play both engines with the same commands, mostly those that change something."""
    fast, rng = FastEngine(Game.load(content)), random.Random(seed)
    engine.load(content)
    frame = fast.reset()
    assert engine.reset() == frame
    for _ in range(steps):
        weights = [
            6 if c.startswith(("take", "move", "slice", "heat", "cool", "clean", "use")) else 1
            for c in frame.admissible
        ]
        command = rng.choices(frame.admissible, weights)[0] if rng.random() < 0.9 else rng.choice(ODD)
        frame = fast.step(command)
        assert engine.step(command) == frame, command


def replay(engine, content, episodes):
    engine.load(content)
    for episode in episodes:
        frame = engine.reset()
        assert (frame.observation, frame.admissible) == (
            episode["reset"]["observation"],
            episode["reset"]["admissible"],
        )
        for step in episode["steps"]:
            frame = engine.step(step["action"])
            assert frame == (step["observation"], step["admissible"], step["won"]), step["action"]


def test_a_golden_game_replays(engine, golden_contents, golden_episodes):
    name = next(iter(golden_contents))
    replay(engine, golden_contents[name], [e for e in golden_episodes if e["game"] == name][:2])


@pytest.mark.slow
def test_all_golden_games_replay(engine, golden_contents, golden_episodes):
    for name, content in golden_contents.items():
        replay(engine, content, [e for e in golden_episodes if e["game"] == name])


def test_a_bent_game_is_the_same_on_both(engine):
    same_walk(engine, bent(7, twice=True), 7, 40)


@pytest.mark.slow
def test_many_bent_games_are_the_same_on_both(engine):
    for seed in range(30):
        same_walk(engine, bent(seed, twice=seed % 2 == 1), seed, 60)


@pytest.mark.slow
def test_generated_games_are_won_on_the_real_engine(engine):
    for i in range(30):
        game = generate(500 + i, split=SPLITS[i % 3], task_type=TASK_TYPES[i % 6])
        engine.load(game.data)
        engine.reset()
        frames = [engine.step(command) for command in game.data["walkthrough"]]
        assert [frame.won for frame in frames] == [False] * (len(frames) - 1) + [True]


def test_the_original_loader_takes_a_folder_of_generated_games(engine, tmp_path):
    from alfworld.agents.environment.alfred_tw_env import AlfredTWEnv

    paths = {str(path) for path in write_games(tmp_path, 6, split="valid_unseen")}
    config = {
        "env": {"goal_desc_human_anns_prob": 0, "task_types": [1, 2, 3, 4, 5, 6]},
        "dataset": {"eval_ood_data_path": str(tmp_path), "num_eval_games": 0},
    }
    assert set(AlfredTWEnv(config, "eval_out_of_distribution").game_files) == paths


def test_the_environment_is_the_same_on_both_engines(engine):
    tasks = generated_tasks(2, split="valid_unseen", seed=3)
    envs = [
        gym.make("agentic_gym/ALFWorld-v0", games=tasks, engine=name, expert="full") for name in ("fast", "textworld")
    ]
    results = [env.reset(seed=0, options={"task": 1}) for env in envs]
    assert results[0] == results[1]
    while not results[0][-1]["success"]:
        command = results[0][-1]["expert_action"]
        results = [env.step(command) for env in envs]
        assert results[0] == results[1]
    for env in envs:
        env.close()


def test_threads_take_turns(engine):
    def walk(seed):
        other, rng = TextWorldEngine(), random.Random(seed)
        other.load(generate(seed, task_type="look_at_obj_in_light").data)
        frame, texts = other.reset(), []
        for _ in range(5):
            frame = other.step(rng.choice(frame.admissible))
            texts.append(frame.observation)
        return texts

    arguments = list(sys.argv)
    alone = [walk(seed) for seed in range(2)]
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(walk, range(2))) == alone
    assert sys.argv == arguments


def test_without_the_packages_the_install_line_is_given(monkeypatch):
    monkeypatch.setitem(sys.modules, "textworld", None)
    monkeypatch.setitem(sys.modules, "alfworld.agents.environment.alfred_tw_env", None)
    with pytest.raises(ImportError, match=r"pip install 'agentic-gym\[alfworld\]'"):
        TextWorldEngine()
