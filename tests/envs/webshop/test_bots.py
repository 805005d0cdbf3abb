import gymnasium as gym
import pytest

import agentic_gym  # noqa: F401
from agentic_gym.envs.webshop.bots import OracleBot, RandomBot, rule_bot
from agentic_gym.policies.base import as_policy


def play(env: gym.Env[str, str], bot, task: int) -> float:  # type: ignore[no-untyped-def]
    page, info = env.reset(options={"task": task})
    terminated = truncated = False
    reward = 0.0
    while not (terminated or truncated):
        page, step_reward, terminated, truncated, info = env.step(bot(page, info))
        reward = float(step_reward)
        assert "invalid" not in info
    return reward


@pytest.fixture
def env() -> gym.Env[str, str]:
    return gym.make("agentic_gym/WebShop-v0", products=100)


def test_their_order(env: gym.Env[str, str]) -> None:
    tasks = range(0, 240, 6)
    chance, rule, oracle = (
        sum(play(env, bot, task) for task in tasks) / len(tasks) for bot in (RandomBot(0), rule_bot, OracleBot(env))
    )
    assert chance < rule < oracle == 1.0


def test_the_random_bot_repeats_itself_with_its_seed(env: gym.Env[str, str]) -> None:
    assert [play(env, RandomBot(3), task) for task in range(5)] == [play(env, RandomBot(3), task) for task in range(5)]


def test_the_oracle_continues_from_anywhere(env: gym.Env[str, str]) -> None:
    bot = OracleBot(env)
    page, info = env.reset(options={"task": 1})
    for action in ("search[the of]", "click[next >]", "click[back to search]", "search[set]", "click[next >]"):
        page, _, _, _, info = env.step(action)
    terminated = False
    while not terminated:
        page, reward, terminated, truncated, info = env.step(bot(page, info))
        assert not truncated
    assert reward == 1.0


def test_bots_are_policies_and_the_oracle_needs_its_shop(env: gym.Env[str, str]) -> None:
    as_policy(RandomBot())
    as_policy(rule_bot)
    with pytest.raises(TypeError, match="OracleBot plays WebShop"):
        OracleBot(gym.make("CartPole-v1"))
