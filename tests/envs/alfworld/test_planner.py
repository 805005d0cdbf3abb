import random

from hypothesis import given, settings
from hypothesis import strategies as st

from agentic_gym.envs.alfworld.engine import FastEngine
from agentic_gym.envs.alfworld.game import Game
from agentic_gym.envs.alfworld.generator import generate
from agentic_gym.envs.alfworld.planner import distance, is_exact, plan
from tests.envs.alfworld.worlds import bent

IDLE = ("help", "inventory", "look", "examine", "slice")


def after(engine: FastEngine, command: str) -> FastEngine:
    other = engine.copy()
    other.step(command)
    return other


def wander(seed: int, walk: int, steps: int) -> FastEngine:
    engine, rng = FastEngine(Game.load(bent(seed))), random.Random(walk)
    frame = engine.reset()
    for _ in range(steps):
        busy = [c for c in frame.admissible if c.startswith(("take", "move", "open", "heat", "cool", "clean", "use"))]
        frame = engine.step(rng.choice(busy if busy and rng.random() < 0.6 else frame.admissible))
    return engine


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 20_000), walk=st.integers(), steps=st.integers(0, 40))
def test_the_distance_is_exact(seed, walk, steps):
    """L is exact if it is 0 just at the goal and elsewhere 1 more than the least L among the next states."""
    engine = wander(seed, walk, steps)
    length = distance(engine.state)
    assert (length == 0) == engine.state.won()
    if length:
        commands = [c for c in engine.admissible if not c.startswith(IDLE)]
        nexts = [distance(after(engine, command).state) for command in commands]
        assert length == 1 + min(n for n in nexts if n is not None)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 20_000), walk=st.integers(), steps=st.integers(0, 40))
def test_a_plan_is_admissible_and_wins(seed, walk, steps):
    engine = wander(seed, walk, steps)
    actions = plan(engine.state)
    assert actions is not None
    for action in actions:
        command = engine.commands.text(*action)
        assert command in engine.admissible
        engine.step(command)
    assert engine.state.won()


def test_a_plan_uses_known_objects_only():
    engine = FastEngine(Game.load(generate(12, task_type="pick_heat_then_place_in_recep").data))
    assert plan(engine.state, known=()) is None
    one = next(iter(engine.game.candidates))
    actions = plan(engine.state, known={one})
    assert actions is not None
    assert {action.target for action in actions if action.verb == "take"} == {one}


def test_a_game_without_the_needed_thing_has_no_distance():
    content = dict(generate(3, task_type="pick_and_place_simple").data)
    game = Game.load(content)
    kind = game.goal.object_type
    lines = content["pddl_problem"].splitlines()
    content["pddl_problem"] = "\n".join(
        line for line in lines if not line.lower().startswith(f"(pickupable {kind[:-4]}_bar_")
    )
    assert distance(FastEngine(Game.load(content)).state) is None


def test_a_lamp_that_can_be_carried_makes_the_distance_inexact():
    content = dict(generate(4, task_type="look_at_obj_in_light").data)
    assert is_exact(Game.load(content))
    lamp = next(line for line in content["pddl_problem"].splitlines() if line.startswith("(toggleable"))
    content["pddl_problem"] = content["pddl_problem"].replace(lamp, lamp + lamp.replace("toggleable", "pickupable"))
    assert not is_exact(Game.load(content))
