import gymnasium as gym
import pytest

from agentic_gym.envs.alfworld.generator import generate
from agentic_gym.envs.alfworld.tasks import generated_tasks
from agentic_gym.roles import OnlineJudge, Role
from agentic_gym.wrappers.role_labels import RoleLabels

D, E, N, R = Role.DECISIVE, Role.EXPLORATION, Role.NO_PROGRESS, Role.REGRESSION


@pytest.fixture
def kitchen():
    """Heat something that lies in the open, away from its place and from the microwave."""
    for seed in range(100):
        tasks = generated_tasks(1, seed=seed, task_types=["pick_heat_then_place_in_recep"])
        env = RoleLabels(gym.make("agentic_gym/ALFWorld-v0", games=tasks, max_turns=200))
        env.reset(options={"task": 0})
        plan = env.unwrapped.world.game.walkthrough
        verbs = [command.split()[0] for command in plan]
        if verbs[:4] == ["go", "take", "go", "heat"] and verbs[4:] == ["go", "move"]:
            return env, plan
    raise AssertionError("no such game")


def role(env, command):
    return env.step(command)[4]["role"]


def test_the_oracle_is_an_online_judge(kitchen):
    env, _ = kitchen
    assert isinstance(env.unwrapped.oracle(), OnlineJudge)


def test_the_plan_explores_first_and_is_decisive_then(kitchen):
    env, plan = kitchen
    # The thing is not known at the first step; what follows walks to known needs or does something.
    assert [role(env, command) for command in plan] == [E, D, D, D, D, D]


def test_damage_and_its_repair(kitchen):
    env, plan = kitchen
    go, take, *_ = plan
    thing, place = take.removeprefix("take ").split(" from ")
    role(env, go)
    assert role(env, take) is D
    assert role(env, f"move {thing} to {place}") is R
    assert role(env, take) is D


def test_a_wrong_thing_in_the_hand_is_a_regression(kitchen):
    env, plan = kitchen
    role(env, plan[0])
    wanted = plan[1].removeprefix("take ").split(" from ")[0].split()[0]
    others = [c for c in env.unwrapped.world.admissible if c.startswith("take") and not c.startswith(f"take {wanted} ")]
    if others:
        assert role(env, others[0]) is R


def test_a_first_look_is_harmless_and_a_second_one_is_not(kitchen):
    env, _ = kitchen
    assert [role(env, c) for c in ("look", "look", "inventory", "dance", "dance", "", "")] == [N, R, N, N, R, N, R]


def test_exploring_ends_when_everything_needed_is_known(kitchen):
    env, plan = kitchen
    game = env.unwrapped.world.game
    needed = {plan[0].removeprefix("go to ")}
    far = [
        r
        for r in range(len(game.receptacles))
        if game.receptacles[r] not in needed
        and len(game.receptacles_at[game.receptacle_at[r]]) == 1
        and not set(game.start_contents[r]) & game.candidates
        and r not in game.openable
    ]
    first, second = (game.receptacles[r] for r in far[:2])
    assert role(env, f"go to {first}") is E
    assert role(env, f"go to {second}") is E
    assert role(env, f"go to {first}") is R
    assert role(env, plan[0]) is E
    # From here on the way to the next need is known, so a detour is not exploration any more.
    role(env, plan[1])
    assert role(env, f"go to {second}") in (N, R)


def test_roles_do_not_depend_on_the_renderer():
    tasks = generated_tasks(6)
    for index in range(6):
        plain = RoleLabels(gym.make("agentic_gym/ALFWorld-v0", games=tasks))
        drawn = RoleLabels(gym.make("agentic_gym/ALFWorld-v0", games=tasks, render_mode="ansi"))
        for env in (plain, drawn):
            env.reset(options={"task": index})
        plan = plain.unwrapped.world.game.walkthrough
        assert [role(plain, c) for c in plan] == [role(drawn, c) for c in plan]


def test_where_the_distance_is_not_exact_no_role_is_guessed():
    content = dict(generate(4, task_type="look_at_obj_in_light").data)
    lamp = next(line for line in content["pddl_problem"].splitlines() if line.startswith("(toggleable"))
    content["pddl_problem"] = content["pddl_problem"].replace(lamp, lamp + lamp.replace("toggleable", "pickupable"))
    env = RoleLabels(gym.make("agentic_gym/ALFWorld-v0", games=content))
    _, info = env.reset()
    assert info["distance_exact"] is False
    assert role(env, "look") is None
