import io

from agentic_gym.envs.alfworld.env import ALFWorld
from agentic_gym.envs.alfworld.play import play


def test_a_person_can_ask_look_and_win():
    env = ALFWorld(render_mode="ansi", expert="full")
    env.reset(options={"task": 1})
    plan = env.world.game.walkthrough
    out = io.StringIO()
    assert play(env, ["?", "", "!", *plan], out, task=1)
    text = out.getvalue()
    assert plan[0] in text
    assert "inventory\nlook" in text
    assert text.count("decisive") >= 1
    assert text.endswith("You won.\n")


def test_quitting_and_the_end_of_the_input_end_the_game():
    env = ALFWorld(render_mode="ansi")
    assert not play(env, ["look\n", "quit\n", "look\n"], io.StringIO())
    assert not play(env, ["!"], out := io.StringIO())
    assert "not here" in out.getvalue()
    env = ALFWorld(render_mode="ansi", max_turns=1)
    assert not play(env, ["look"], out := io.StringIO())
    assert "No turns" in out.getvalue()
