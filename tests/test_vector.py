"""Vector environments: many at once, in this process and in others, with every way to begin anew."""

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from agentic_gym.actions import ParsedAction
from agentic_gym.episodes import ToolEvent
from agentic_gym.wrappers import ToolFree
from tests import toys

N = 16
CALL, WRONG = "<python>print(6 * 7)</python>", "<answer>-1</answer>"
MODES = ["sync", "async"]
RESETS = [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED]


@pytest.fixture(params=[(way, mode) for way in MODES for mode in RESETS], ids=lambda p: f"{p[0]}-{p[1].value}")
def envs(request: pytest.FixtureRequest) -> Iterator[Any]:
    way, mode = request.param
    envs = gym.make_vec(
        "agentic_gym/MathTools-v0",
        num_envs=N,
        vectorization_mode=way,
        vector_kwargs={"autoreset_mode": mode},
        levels=[0, 1],
        max_turns=3,
    )
    yield envs
    envs.close()


def test_a_life_of_sixteen(envs: Any) -> None:
    mode = envs.metadata["autoreset_mode"]
    observations, infos = envs.reset(seed=7)
    assert len(observations) == N
    assert all(isinstance(text, str) and "What is" in text for text in observations)
    assert len(set(infos["task_id"])) > 1
    assert infos["tool_calls"].tolist() == [0] * N

    # Half call the tool, half answer wrongly and so end.
    actions = [CALL if i % 2 else WRONG for i in range(N)]
    observations, rewards, terminated, truncated, infos = envs.step(actions)
    ended = np.arange(N) % 2 == 0
    assert terminated.tolist() == ended.tolist()
    assert not truncated.any()
    assert not rewards.any()
    last = infos["final_info"] if mode is AutoresetMode.SAME_STEP else infos
    assert [outcome for outcome, there in zip(last["outcome"], last["_outcome"]) if there] == ["failed"] * (N // 2)
    assert [last["success"][i] for i in range(N)] == [False] * N
    for i in range(1, N, 2):
        assert observations[i] == "<result>42</result>"
        assert isinstance(infos["tool"][i], ToolEvent)
        assert isinstance(infos["action"][i], ParsedAction)
        assert infos["tool"][i].status == "ok"
        assert infos["tool_calls"][i] == 1

    if mode is AutoresetMode.DISABLED:
        observations, infos = envs.reset(options={"reset_mask": ended})
        assert all("What is" in observations[i] for i in range(0, N, 2))
    if mode is AutoresetMode.SAME_STEP:
        assert all(infos["final_obs"][i] == "Wrong." for i in range(0, N, 2))

    observations, rewards, terminated, truncated, infos = envs.step([CALL] * N)
    if mode is AutoresetMode.NEXT_STEP:
        assert all("What is" in observations[i] for i in range(0, N, 2))  # these began anew and ignored the action
        assert infos["_task_id"].tolist() == ended.tolist()
    assert [observations[i] for i in range(1, N, 2)] == ["<result>42</result>"] * (N // 2)
    assert infos["tool_calls"][1::2].tolist() == [2] * (N // 2)

    envs_before = infos
    *_, truncated, infos = envs.step(["<python>print(7)</python>"] * N)
    assert truncated[1::2].all()  # the turn limit
    assert envs_before["tool_calls"][1::2].tolist() == [2] * (N // 2)


@pytest.mark.parametrize("way", MODES)
def test_the_same_seed_gives_the_same_texts(way: str) -> None:
    def texts(seed: int) -> list[tuple[str, ...]]:
        envs = gym.make_vec("toys/Corridor-v0", num_envs=4, vectorization_mode=way)
        history = [envs.reset(seed=seed)[0]]
        history += [envs.step(["right"] * 4)[0] for _ in range(8)]
        envs.close()
        return history

    assert texts(3) == texts(3)
    assert texts(3) != texts(4)


@pytest.mark.parametrize("way", MODES)
def test_admissible_lists_of_different_lengths(way: str) -> None:
    envs = gym.make_vec("toys/Corridor-v0", num_envs=8, vectorization_mode=way)
    _, infos = envs.reset(seed=0)
    lists = infos["admissible_actions"].tolist()
    assert {tuple(commands) for commands in lists} == {("right",), ("left", "right")}
    *_, infos = envs.step(["right"] * 8)
    assert all("right" in commands for commands in infos["admissible_actions"])
    envs.close()


@pytest.mark.parametrize("way", MODES)
def test_tasks_of_mixed_or_unknown_level(way: str) -> None:
    envs = gym.make_vec("toys/MixedLevels-v0", num_envs=4, vectorization_mode=way)
    seen: set[object] = set()
    for seed in range(20):
        seen |= set(envs.reset(seed=seed)[1]["level"].tolist())
    assert seen == {0, None, "hard"}
    envs.close()


@pytest.mark.parametrize("way", MODES)
def test_wrapped_environments(way: str) -> None:
    envs = gym.make_vec("toys/Sums-v0", num_envs=3, vectorization_mode=way, wrappers=[ToolFree])
    _, infos = envs.reset(seed=0, options={"tool_free": True})
    assert infos["tool_free"].tolist() == [True] * 3
    *_, infos = envs.step([CALL] * 3)
    assert [event.status for event in infos["tool"]] == ["refused"] * 3
    envs.close()


def test_one_option_for_all() -> None:
    envs = gym.make_vec("toys/Sums-v0", num_envs=3)
    _, infos = envs.reset(seed=0, options={"task": "sum-4"})
    assert infos["task_id"].tolist() == ["sum-4"] * 3
    assert toys.SUMS[4].id == "sum-4"
    envs.close()


def test_actions_of_other_types_are_refused() -> None:
    envs = gym.make_vec("toys/Sums-v0", num_envs=2)
    envs.reset(seed=0)
    with pytest.raises(TypeError, match="an action is a text, got int"):
        envs.step([1, 2])
    envs.close()
