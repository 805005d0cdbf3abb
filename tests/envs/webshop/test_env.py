import pickle
import random
import time
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import agentic_gym  # noqa: F401
from agentic_gym.check_env import check_text_env
from agentic_gym.envs.webshop import reward as reward_module
from agentic_gym.envs.webshop.env import WebShop

ID = "agentic_gym/WebShop-v0"


def make(**arguments: Any) -> WebShop:
    env = gym.make(ID, **{"products": 100, **arguments}).unwrapped
    assert isinstance(env, WebShop)
    return env


def with_goal_options(env: WebShop) -> int:
    return next(number for number, goal in enumerate(env.catalogue.goals) if goal.goal_options)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"observation_mode": "html", "goals": "human"},
        {"observation_mode": "url", "goal_draw": "uniform"},
        {"catalogue_seed": None},
    ],
)
def test_the_contract(arguments: dict[str, Any]) -> None:
    check_text_env(make(**arguments))


def test_task_i_is_goal_i() -> None:
    env = make()
    observation, info = env.reset(options={"task": 7})
    assert env.goal == env.catalogue.goals[7]
    assert observation == f"WebShop [SEP] Instruction: [SEP] {env.goal.instruction_text} [SEP] Search"
    assert (info["task_id"], info["clickables"], info["has_search_bar"]) == ("synthetic-7", ["search"], True)
    assert info["success"] is False
    assert "search[" in info["instructions"]


def test_a_purchase() -> None:
    env = make()
    env.reset(options={"task": with_goal_options(env)})
    asin = env.goal.asin.lower()
    env.step(f"search[{env.goal.name.lower()}]")
    env.step(f"<think>that one</think> click[{asin}]")
    _, reward, terminated, truncated, info = env.step("click[buy now]")
    assert (terminated, truncated, info["success"], info["outcome"]) == (True, False, False, "failed")
    assert 0 < reward < 1
    assert info["score"] == reward
    assert info["reward_info"]["r_option"] == 0.0
    assert info["reward_info"]["noun_source"] == "sidecar"
    assert info["clickables"] == info["admissible_actions"] == []
    with pytest.raises(gym.error.ResetNeeded):
        env.step("click[back to search]")


def test_an_invalid_action_repeats_the_page_and_costs_a_turn() -> None:
    env = make(search_anywhere=False)
    page, _ = env.reset(options={"task": 0})
    for action, complaint in [
        ("hello", "write search"),
        ("click[nope]", "nothing on this page is called 'nope'"),
        (" search[lamp]", "is no action"),
    ]:
        again, reward, terminated, truncated, info = env.step(action)
        assert (again, reward, terminated, truncated) == (page, 0.0, False, False)
        assert complaint in info["invalid"]
    env.step("search[lamp]")
    _, _, _, _, info = env.step("search[lamp]")
    assert "no search bar" in info["invalid"]
    assert info["turns_left"] == 10


def test_the_action_tag_and_malformed_actions() -> None:
    env = make()
    env.reset(options={"task": 0})
    _, _, _, _, info = env.step("<action> search[lamp] </action>")
    assert "invalid" not in info
    observation, _, _, _, info = env.step("<answer>A1</answer>")
    assert observation.startswith("Invalid action:")
    assert info["clickables"]


def test_the_turn_limit_truncates() -> None:
    env = make(max_turns=2)
    env.reset(options={"task": 0})
    env.step("x")
    _, _, terminated, truncated, info = env.step("x")
    assert (terminated, truncated, info["outcome"], info["score"]) == (False, True, "turn_limit", 0.0)


def test_admissible_actions_are_valid() -> None:
    env = make(max_turns=200)
    rng = random.Random(0)
    _, info = env.reset(options={"task": 3})
    for _ in range(150):
        action = rng.choice(info["admissible_actions"])
        _, _, terminated, _, info = env.step(action)
        assert "invalid" not in info
        if terminated:
            _, info = env.reset(options={"task": 3})


def test_splits_are_disjoint_and_keep_ids() -> None:
    test, train = make(products=1000, split="test"), make(products=1000, split="train")
    assert len(test.tasks) == 500
    assert not set(test.tasks.ids) & set(train.tasks.ids)
    _, info = train.reset(options={"task": 0})
    assert info["task_id"] == "synthetic-500"
    assert train.reset(seed=0)[1]["task_id"] in train.tasks


def test_goals_are_drawn_by_weight_shifted_by_one() -> None:
    def drawn(goal_draw: str) -> list[int]:
        env = make(products=1000, goals="synthetic", goal_draw=goal_draw)
        env.reset(seed=0)
        return [int(env.reset()[1]["task_id"].rpartition("-")[2]) for _ in range(3000)]

    weights = np.array([goal.weight for goal in make(products=1000).catalogue.goals])
    share = weights / weights.sum()
    assert np.mean(share[drawn("weighted")]) > 1.5 * np.mean(share)
    shifted = np.array(drawn("original"))
    assert shifted.min() > 0
    assert np.mean(share[shifted - 1]) > 1.5 * np.mean(share)
    assert np.mean(share[drawn("uniform")]) == pytest.approx(np.mean(share), rel=0.15)


def test_same_seed_same_episode_and_no_global_randomness() -> None:
    state = random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002
    first, second = make(), make()
    assert first.reset(seed=5)[0] == second.reset(seed=5)[0]
    assert first.step("search[<r>]")[0] == second.step("search[<r>]")[0]
    assert state == (random.getstate(), np.random.get_state()[1].tolist())  # noqa: NPY002


def test_many_environments_share_one_catalogue() -> None:
    first = make()
    started = time.process_time()
    others = [make() for _ in range(64)]
    assert (time.process_time() - started) / 64 < 0.05
    assert all(env.catalogue is first.catalogue and env.tasks is first.tasks for env in others)
    first.reset(options={"task": 0})
    first.step("search[lamp]")
    snapshot = pickle.loads(pickle.dumps(first))
    assert snapshot.visit.shop is first.catalogue
    assert snapshot.step("click[next >]")[0] == first.step("click[next >]")[0]


def test_in_a_vector() -> None:
    envs = gym.make_vec(ID, num_envs=2, vectorization_mode="sync", vector_kwargs={}, products=100)
    pages, _ = envs.reset(seed=0)
    assert len(pages) == 2
    envs.close()


def test_bad_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="got 'pdf'"):
        make(observation_mode="pdf")
    with pytest.raises(ValueError, match="got 'first'"):
        make(goal_draw="first")
    monkeypatch.setattr(reward_module.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"pip install 'agentic-gym\[webshop\]'"):
        make()


@pytest.mark.parametrize("mode", ["text", "text_rich", "url"])
def test_the_recorded_episodes(official_data: Any, golden: Any, mode: str) -> None:
    env = gym.make(ID, data=official_data, observation_mode=mode, max_turns=100)
    for row in golden("golden_trajectories.jsonl.gz"):
        if row["action"] is None:
            observation, info = env.reset(options={"task": row["goal"]})
        else:
            observation, reward, terminated, truncated, info = env.step(row["action"])
            assert (reward, terminated, truncated) == (row["reward"], row["done"], False)
        assert observation == row[mode]
        assert info["clickables"] == row["avail"]["clickables"]
        assert info["has_search_bar"] == row["avail"]["has_search_bar"]
