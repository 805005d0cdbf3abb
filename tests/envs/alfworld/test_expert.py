import random

import gymnasium as gym
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import agentic_gym  # noqa: F401  (registers the environment)
from agentic_gym.envs.alfworld.engine import FastEngine
from agentic_gym.envs.alfworld.expert import next_command, noisy
from agentic_gym.envs.alfworld.game import Game
from agentic_gym.envs.alfworld.memory import Memory
from tests.envs.alfworld.worlds import bent


def play(env, policy, task):
    observation, info = env.reset(options={"task": task})
    done = False
    while not done:
        observation, _, terminated, truncated, info = env.step(policy(observation, info))
        done = terminated or truncated
    return info


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 20_000), walk=st.integers(), steps=st.integers(0, 30))
def test_the_experts_command_is_always_admissible(seed, walk, steps):
    engine, rng, memory = FastEngine(Game.load(bent(seed, twice=True))), random.Random(walk), Memory()
    for _ in range(steps):
        engine.step(rng.choice(engine.admissible))
        memory.observe(engine.last_action, engine.state)
        assert next_command(engine) in engine.admissible
        assert next_command(engine, memory) in engine.admissible


def test_the_searching_expert_does_not_take_what_it_has_not_seen():
    env = gym.make("agentic_gym/ALFWorld-v0", expert="seen", split="valid_unseen", max_turns=150).unwrapped
    for task in range(12):
        _, info = env.reset(options={"task": task})
        while not info["success"]:
            action = env.world.commands.actions.get(info["expert_action"])
            if action is not None and action.verb == "take":
                assert action.target in env.memory.seen
            *_, info = env.step(info["expert_action"])


def test_mistakes_cost_turns_and_a_wanderer_hardly_ever_wins():
    env = gym.make("agentic_gym/ALFWorld-v0", expert="full")
    turns = {}
    for rate in (0.0, 0.4, 1.0):
        results = [play(env, noisy(rate, seed=1), task) for task in range(30)]
        turns[rate] = sum(50 - info["turns_left"] for info in results)
        assert all(info["success"] for info in results) or rate > 0
    assert turns[0.0] < turns[0.4] < turns[1.0]


def test_the_noise_is_the_same_for_the_same_seed():
    env = gym.make("agentic_gym/ALFWorld-v0")
    _, info = env.reset(options={"task": 0})
    policies = [noisy(1.0, seed=3), noisy(1.0, seed=3)]
    assert [policies[0]("", info) for _ in range(20)] == [policies[1]("", info) for _ in range(20)]


def test_misuse_is_explained():
    with pytest.raises(ValueError, match=r"1\.5"):
        noisy(1.5)
    with pytest.raises(ValueError, match="expert="):
        noisy(0.0)("", {"admissible_actions": ["look"]})
