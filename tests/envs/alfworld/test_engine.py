import random
from concurrent.futures import ThreadPoolExecutor

from hypothesis import given, settings
from hypothesis import strategies as st

from agentic_gym.envs.alfworld.engine import FastEngine
from agentic_gym.envs.alfworld.game import Game
from agentic_gym.envs.alfworld.generator import generate
from tests.envs.alfworld.worlds import bent


def test_golden_recordings_replay_byte_for_byte(golden_games, golden_episodes):
    steps = 0
    for episode in golden_episodes:
        engine = FastEngine(golden_games[episode["game"]])
        frame = engine.reset()
        assert frame.observation == episode["reset"]["observation"]
        assert frame.admissible == episode["reset"]["admissible"]
        for step in episode["steps"]:
            frame = engine.step(step["action"])
            where = (episode["game"], episode["kind"], step["action"])
            assert frame.observation == step["observation"], where
            assert frame.admissible == step["admissible"], where
            assert (frame.won, frame.won, float(frame.won)) == (step["won"], step["done"], step["reward"]), where
            steps += 1
    assert steps > 3000


def test_recorded_walkthroughs_win(golden_games):
    for game in golden_games.values():
        engine = FastEngine(game)
        frames = [engine.step(command) for command in game.walkthrough]
        assert [frame.won for frame in frames] == [False] * (len(frames) - 1) + [True]


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 5_000), command=st.text(max_size=30))
def test_a_command_that_is_not_admissible_changes_nothing(seed, command):
    engine = FastEngine(Game.load(generate(seed).data))
    before = engine.reset()
    if command.strip() in before.admissible:
        return
    after = engine.step(command)
    assert after.observation == "Nothing happens."
    assert (after.admissible, after.won) == (before.admissible, before.won)
    assert engine.last_action is None


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 5_000), walk=st.integers())
def test_commands_are_sorted_unique_and_all_do_what_they_say(seed, walk):
    engine, rng = FastEngine(Game.load(bent(seed, twice=True))), random.Random(walk)
    frame = engine.reset()
    for _ in range(30):
        assert frame.admissible == sorted(set(frame.admissible))
        command = rng.choice(frame.admissible)
        frame = engine.step(f"  {command}\n")
        assert engine.last_action is not None
        assert frame.observation != "Nothing happens."


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 5_000), walk=st.integers())
def test_reset_brings_back_the_first_state(seed, walk):
    engine, rng = FastEngine(Game.load(bent(seed))), random.Random(walk)
    first = frame = engine.reset()
    for _ in range(30):
        frame = engine.step(rng.choice(frame.admissible))
    assert engine.reset() == first


def test_the_old_put_syntax_and_near_misses_do_nothing(golden_games):
    engine = FastEngine(next(iter(golden_games.values())))
    engine.reset()
    for command in ("", "Look", "look.", "> look", "go  to toilet 1", "go to toilet", "put cloth 1 in/on toilet 1"):
        assert engine.step(command).observation == "Nothing happens."


def test_receptacles_at_one_location_are_used_without_walking():
    for seed in range(200):
        engine = FastEngine(Game.load(generate(seed).data))
        shared = next((rs for rs in engine.game.receptacles_at if len(rs) > 1), None)
        if shared:
            break
    first, second = (engine.game.receptacles[r] for r in shared[:2])
    commands = engine.step(f"go to {first}").admissible
    assert f"examine {second}" in commands
    assert f"go to {second}" not in commands
    listed = ", ".join(engine.game.receptacles[r] for r in shared[:-1])
    assert engine.step("look").observation.startswith(f"You are facing the {listed}, and ")


def test_a_copy_is_independent():
    engine = FastEngine(Game.load(generate(1).data))
    for command in engine.game.walkthrough[:2]:
        engine.step(command)
    copy, before = engine.copy(), engine.admissible
    for command in engine.game.walkthrough[2:]:
        engine.step(command)
    assert engine.state.won()
    assert not copy.state.won()
    assert copy.admissible == before


def test_threads_do_not_disturb_each_other():
    def transcript(seed: int) -> list[str]:
        engine, rng = FastEngine(Game.load(generate(seed % 4).data)), random.Random(seed)
        frame, texts = engine.reset(), []
        for _ in range(60):
            frame = engine.step(rng.choice(frame.admissible))
            texts.append(frame.observation)
        return texts

    alone = [transcript(seed) for seed in range(12)]
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(transcript, range(12))) == alone
