import gymnasium as gym
import pytest

from agentic_gym.check_env import check_text_env
from agentic_gym.envs.alfworld.env import ALFWorld
from agentic_gym.envs.alfworld.generator import generate
from agentic_gym.envs.alfworld.tasks import generated_tasks

ID = "agentic_gym/ALFWorld-v0"


@pytest.mark.parametrize("options", [{}, {"expert": "seen", "render_mode": "ansi"}, {"max_turns": 3}])
def test_the_contract_is_kept(options):
    check_text_env(gym.make(ID, **options))


def test_golden_recordings_replay_through_the_environment(golden_contents, golden_episodes):
    env = ALFWorld(list(golden_contents.values()), max_turns=500)
    for episode in golden_episodes[::4]:
        observation, info = env.reset(options={"task": episode["game"]})
        assert (observation, info["admissible_actions"]) == (
            episode["reset"]["observation"],
            episode["reset"]["admissible"],
        )
        for step in episode["steps"]:
            observation, reward, terminated, truncated, info = env.step(step["action"])
            assert observation == step["observation"], step["action"]
            assert info["admissible_actions"] == step["admissible"]
            assert (reward, terminated, info["success"]) == (step["reward"], step["done"], step["won"])
            assert not truncated


def test_tags_of_the_policy_are_stripped():
    env = gym.make(ID)
    _, info = env.reset(options={"task": 0})
    command = info["admissible_actions"][0]
    observation, *_ = env.step(f"<think>perhaps here?</think>\n<action>{command}</action>")
    _ = env.reset(options={"task": 0})
    assert env.step(command)[0] == observation
    _ = env.reset(options={"task": 0})
    assert env.step(f"<think>no tags</think> {command}")[0] == observation


def test_fifty_turns_are_the_limit_and_success_is_its_own_key():
    env = gym.make(ID)
    env.reset(seed=0)
    for turn in range(50):
        _, reward, terminated, truncated, info = env.step("look")
        assert (reward, terminated, truncated) == (0.0, False, turn == 49)
    assert (info["outcome"], info["success"], info["score"]) == ("turn_limit", False, 0.0)


@pytest.mark.parametrize("kind_index", range(6))
def test_progress_is_one_just_at_the_win(kind_index):
    env = gym.make(ID, games=generated_tasks(6), expert="full")
    _, info = env.reset(options={"task": kind_index})
    seen = [info["progress"]]
    while not info["success"]:
        *_, info = env.step(info["expert_action"])
        seen.append(info["progress"])
    assert seen[-1] == 1.0
    assert all(0.0 <= value < 1.0 for value in seen[:-1])
    assert len(set(seen)) > 1


def test_levels_are_task_types():
    env = ALFWorld(levels=["look_at_obj_in_light"], count=60)
    assert env.tasks.levels == ["look_at_obj_in_light"]
    _, info = env.reset(seed=1)
    assert info["level"] == info["task_type"] == "look_at_obj_in_light"


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match="'slow'"):
        ALFWorld(engine="slow")
    with pytest.raises(ValueError, match="'all'"):
        ALFWorld(expert="all")
    with pytest.raises(ValueError, match="juggle"):
        ALFWorld(levels=["juggle"])
    with pytest.raises(ValueError, match=r"nowhere\.tw-pddl"):
        ALFWorld("nowhere.tw-pddl")


def test_a_game_that_vanishes_leaves_nothing_half_loaded(tmp_path):
    path = generate(1).write(tmp_path)
    env = ALFWorld(path)
    path.unlink()
    with pytest.raises(ValueError, match=r"game\.tw-pddl"):
        env.reset(seed=0)
    with pytest.raises(gym.error.ResetNeeded):
        env.step("look")


def test_several_run_as_a_vector_in_their_own_processes():
    def first(mode: str) -> tuple[str, ...]:
        envs = gym.make_vec(ID, num_envs=2, vectorization_mode=mode, count=6)
        try:
            envs.reset(seed=3)
            return tuple(envs.step(["look", "inventory"])[0])
        finally:
            envs.close()

    assert first("async") == first("sync")


def test_the_expert_says_nothing_when_it_is_not_asked():
    _, info = gym.make(ID).reset(seed=0)
    assert "expert_action" not in info


def test_the_transcript_shows_roles():
    env = gym.make(ID, games=dict(generate(2).data), render_mode="ansi")
    env.reset()
    env.step("look")
    env.step("look")
    text = env.render()
    assert "> look" in text
    assert "no progress" in text
    assert "regression" in text


def test_many_environments_keep_apart():
    envs = [ALFWorld(generated_tasks(8)) for _ in range(16)]
    for i, env in enumerate(envs):
        env.reset(options={"task": i % 8})
    plans = [list(env.world.game.walkthrough) for env in envs]
    finished = 0
    while any(plans):
        for env, plan in zip(envs, plans):
            if plan:
                _, _, terminated, _, _ = env.step(plan.pop(0))
                finished += terminated
                assert terminated == (not plan)
    assert finished == 16
