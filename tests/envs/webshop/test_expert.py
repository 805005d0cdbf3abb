import gymnasium as gym
import pytest

import agentic_gym  # noqa: F401
from agentic_gym.envs.webshop.expert import ShopExpert
from agentic_gym.episodes import Episode


@pytest.fixture
def env() -> gym.Env[str, str]:
    return gym.make("agentic_gym/WebShop-v0", products=100)


def play(env: gym.Env[str, str], expert: ShopExpert, task: int, seed: int = 0) -> Episode:
    page, info = env.reset(options={"task": task})
    episode = Episode(info["task_id"], info["instructions"], page, seed=seed, info=info)
    while not episode.done:
        (response,) = expert.respond([episode])
        episode.record(response, *env.step(response.text))  # type: ignore[arg-type]
    return episode


def test_it_solves_what_it_is_given(env: gym.Env[str, str]) -> None:
    expert = ShopExpert(env)
    assert all(play(env, expert, task).success for task in range(0, 240, 9))


def test_it_goes_on_after_foreign_steps(env: gym.Env[str, str]) -> None:
    page, info = env.reset(options={"task": 3})
    episode = Episode(info["task_id"], info["instructions"], page, info=info)
    for text in ("hm", " search[lamp]", "search[set]", "<answer>x</answer>", "<action>click[next >]</action>"):
        action = ShopExpert(env).respond([episode])[0]
        episode.record(type(action)(text), *env.step(text))  # type: ignore[arg-type]
    while not episode.done:
        (response,) = ShopExpert(env).respond([episode])
        episode.record(response, *env.step(response.text))  # type: ignore[arg-type]
    assert episode.success


def test_mistakes_depend_on_the_seeds_alone(env: gym.Env[str, str]) -> None:
    def actions(seed: int, episode_seed: int) -> list[str]:
        expert = ShopExpert(env, mistake_rate=0.5, seed=seed)
        return [step.action for step in play(env, expert, 7, episode_seed).steps]

    assert actions(0, 0) == actions(0, 0)
    assert len({tuple(actions(seed, number)) for seed in range(3) for number in range(3)}) > 3


def test_bad_arguments(env: gym.Env[str, str]) -> None:
    with pytest.raises(ValueError, match="got 2"):
        ShopExpert(env, mistake_rate=2)
    with pytest.raises(TypeError, match="ShopExpert plays WebShop"):
        ShopExpert(gym.make("CartPole-v1"))
